"""Builders for WorkloadSpreads and what they are about, as Kubernetes writes them.

files(spread_json("web", subset("a", 2), subset("b")), clone_set_json("web"), member_json("web-1"))
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from extender.kube.manifests import Manifest
from extender.kube.pods import epoch_ns
from extender.spreadfiles import SpreadFiles
from policies.spreading.quirks import FIXED, Quirks
from policies.spreading.reconciling import SpreadRules
from policies.spreading.versions import DEFAULT_VERSIONED_KINDS

Document = dict[str, Any]
NOW = "2026-01-01T12:00:00Z"


def files(*documents: Mapping[str, Any]) -> SpreadFiles:
    """Give documents as if they had been read from files."""
    return SpreadFiles(
        [Manifest(each["kind"], msgspec.json.encode(each), "cluster.json") for each in documents],
        "cluster.json",
    )


def moment(text: str) -> int:
    """Give a time in nanoseconds since the epoch."""
    return epoch_ns(datetime.fromisoformat(text))


def rules(quirks: Quirks = FIXED, kinds: frozenset[str] = DEFAULT_VERSIONED_KINDS) -> SpreadRules:
    """Give rules."""
    return SpreadRules(kinds, quirks)
