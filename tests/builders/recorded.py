"""Recorded cases of real controllers and schedulers; tests/recorded/README.md describes them."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from extender.kube.decoders.cluster_objects import decode_budget, decode_namespace, decode_node
from extender.kube.decoders.pods import decode_pod
from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import Snapshot, assemble
from tests.builders.manifests import encoded


def read_recorded(file: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the cases of a compressed file by name."""
    path = Path(__file__).parents[1] / "recorded" / file
    lines = msgspec.json.Decoder().decode_lines(gzip.decompress(path.read_bytes()))
    return {each["name"]: each for each in lines}


def decode_cluster(items: Sequence[Mapping[str, Any]], release: Release) -> Snapshot:
    """Decode the nodes, pods, budgets and namespaces of a cluster."""

    def of_kind(kind: str) -> Iterator[bytes]:
        return (encoded(item) for item in items if item["kind"] == kind)

    namespaces = map(decode_namespace, of_kind("Namespace"))
    return assemble(
        nodes=map(decode_node, of_kind("Node")),
        pods=(decode_pod(raw, release) for raw in of_kind("Pod")),
        budgets=map(decode_budget, of_kind("PodDisruptionBudget")),
        namespaces={each.name: each.labels for each in namespaces},
    )
