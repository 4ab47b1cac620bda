"""The bodies of calls as files: built once, so that sending costs the load client little.

Each preempt call offers nodes with the victims that kube-scheduler finds in the initial state, half
of them among the nodes that change most.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from extender.kube.decoders.pods import decode_pod
from policies import Snapshot
from policies.kubernetes.releases import NEWEST
from tests.bench.clusters import encoded, offers, preemptor
from tests.builders import Document
from tests.load.mixes import KINDS, NODES, Kind
from tests.load.pod_changes import hot_nodes

_SEED: Final = 7
_REQUESTS: Final = ({"cpu": "1", "memory": "2Gi"}, {"cpu": "2", "memory": "4Gi"})
"""Requests of filtered pods: one fits next to one of the changing pods, the other only alone."""


def preemptors(kind: Kind) -> Iterator[Document]:
    """Return the distinct pods of the kind's calls."""
    for number in range(kind.bodies):
        pod = preemptor(_variant(kind, number), NODES)
        name = f"{kind.name}-{number}"
        pod["metadata"] |= {"name": name, "uid": f"uid-{name}"}
        if kind.verb == "filter":
            pod["spec"]["containers"][0]["resources"]["requests"] = _REQUESTS[
                number % len(_REQUESTS)
            ]
        yield pod


def _variant(kind: Kind, number: int) -> str:
    if kind.verb == "filter":
        return "small"
    return "large" if number % 3 == 2 else "plain"


def build(kind: Kind, snapshot: Snapshot) -> list[bytes]:
    """Return the bodies of all calls of a kind; the same each time."""
    rng = random.Random(_SEED)
    build_one = _filter if kind.verb == "filter" else _preempt
    return [encoded(build_one(kind, pod, snapshot, rng)) for pod in preemptors(kind)]


def write(directory: Path, snapshot: Snapshot) -> None:
    """Write the bodies of all kinds."""
    directory.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        for number, body in enumerate(build(kind, snapshot)):
            (directory / f"{kind.name}-{number}.json").write_bytes(body)


def read(directory: Path) -> Mapping[str, Sequence[bytes]]:
    """Read the bodies by kind."""
    return {
        kind.name: [
            (directory / f"{kind.name}-{number}.json").read_bytes() for number in range(kind.bodies)
        ]
        for kind in KINDS
    }


def _filter(kind: Kind, pod: Document, snapshot: Snapshot, _: random.Random) -> dict[str, Any]:
    return {"Pod": pod, "Nodes": None, "NodeNames": sorted(snapshot.nodes)[: kind.nodes]}


def _preempt(kind: Kind, pod: Document, snapshot: Snapshot, rng: random.Random) -> dict[str, Any]:
    names = _names(kind.nodes, snapshot, rng)
    offered = offers(decode_pod(encoded(pod), NEWEST), snapshot, names)
    return {"Pod": pod, "NodeNameToVictims": None, "NodeNameToMetaVictims": offered}


def _names(size: int, snapshot: Snapshot, rng: random.Random) -> list[str]:
    hot = hot_nodes(snapshot.nodes)
    chosen = rng.sample(hot, min(size // 2, len(hot)))
    others = sorted(frozenset(snapshot.nodes).difference(chosen))
    return sorted([*chosen, *rng.sample(others, size - len(chosen))])
