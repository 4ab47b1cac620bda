"""The cases of podgroups.json by kind, and their releases and snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from extender.kube.decoders.cluster_objects import decode_budget, decode_node
from extender.kube.decoders.pod_groups import decode_composite_pod_group, decode_pod_group
from extender.kube.decoders.pods import decode_pod
from policies.kubernetes.pod_groups import PodGroups
from policies.kubernetes.releases import Release, release
from policies.kubernetes.snapshot import Snapshot, assemble
from tests.builders import encoded

CASES: list[dict[str, Any]] = msgspec.json.decode(
    (Path(__file__).parent / "podgroups.json").read_bytes()
)["cases"]


def of(kind: str) -> list[Any]:
    """Return the cases of a kind as parameters, named by their id."""
    return [pytest.param(case, id=case["id"]) for case in CASES if case["kind"] == kind]


def release_of(case: Mapping[str, Any], version: str = "1.37") -> Release:
    """Return a release with the gates of a case."""
    gates = {name.partition(" ")[0]: enabled for name, enabled in case["gates"].items()}
    return release(version, gates)


def snapshot_of(case: Mapping[str, Any]) -> Snapshot:
    """Return the objects of a case."""
    read = release_of(case)
    groups = [decode_pod_group(encoded(each)) for each in case.get("podGroups", ())]
    composites = [
        decode_composite_pod_group(encoded(each)) for each in case.get("compositePodGroups", ())
    ]
    cluster = assemble(
        nodes=[decode_node(encoded(each)) for each in case.get("nodes", ())],
        pods=[decode_pod(encoded(each), read) for each in case.get("pods", ())],
        budgets=[decode_budget(encoded(each)) for each in case.get("pdbs", ())],
    )
    named = PodGroups({it.key: it for it in groups}, {it.key: it for it in composites})
    return replace(cluster, pod_groups=named)
