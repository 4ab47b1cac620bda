"""Definitions of kinds that come with a part of the control plane.

A part that keeps objects of a kind that is not built in is of no use without it, so the kind is
there from the beginning. Its definition is the one in deploy/crds, as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import orjson

SHIPPED: Final[Mapping[str, str]] = {"workloadspread": "workloadspreads.json"}
"""Part → the file with its kind's definition."""


def definitions_of(parts: Iterable[str]) -> list[dict[str, Any]]:
    """Return the definitions that come with some parts of the control plane."""
    files = [SHIPPED[part] for part in parts if part in SHIPPED]
    return [orjson.loads(Path(__file__).with_name(file).read_bytes()) for file in files]
