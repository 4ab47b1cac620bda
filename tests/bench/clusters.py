"""The benchmark clusters, the same on every machine: nodes full of pods, and the pods that want in.

from tests.builders import Document

Everything is drawn from splitmix64 with state 42, so that another program can build the same
cluster. Node i has 32 cpu, 64Gi and 110 pods, and 30 pods of 1 cpu and 2Gi; for each pod three
numbers are drawn: its priority, its app, and whether its tier is web. All start times differ.

The pods that want in: *plain* needs 6 victims wherever it goes; *constrained* as well, and has
anti-affinity and spread constraints besides; *large* needs 28 and cannot but break budgets; *small*
fits everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import isqrt
from typing import Final

import orjson

from extender.kube.decoders.cluster_objects import decode_budget, decode_namespace, decode_node
from extender.kube.decoders.pods import decode_pod
from policies import DEFAULT_RULES, decide_filter, post_filter
from policies.kubernetes.releases import NEWEST, Release
from policies.kubernetes.snapshot import Pod, Snapshot, assemble
from tests.builders import Document, manifest, node_json, pdb_json, pod_json

PREFIX = "node-"
"""The prefix of node names."""

_MASK = 2**64 - 1
_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
_PRIORITIES = (0, 10, 50, 100)
_HOSTNAME = "kubernetes.io/hostname"
_ZONE = "topology.kubernetes.io/zone"
_ASKED: Final[Mapping[str, tuple[int, int]]] = {
    "plain": (8, 16),
    "constrained": (8, 16),
    "large": (30, 60),
    "medium": (3, 6),
    "small": (1, 2),
}
"""Cores and GiB that each preemptor asks for."""


def cluster(nodes: int, pods_per_node: int = 30, budgets: int = 100) -> Iterator[Document]:
    """Return nodes, disruption budgets, and pods, in this order."""
    yield manifest("Namespace", "default")
    yield from (_node(index) for index in range(nodes))
    yield from (_budget(index) for index in range(budgets))
    draw = _Splitmix(42)
    for node in range(nodes):
        for index in range(pods_per_node):
            yield _running(draw, node, index, nodes)


def preemptor(variant: str, nodes: int) -> Document:
    """Return a pending pod of priority 1000 for a cluster of ``nodes`` nodes (see the module)."""
    cpu, memory = _ASKED[variant]
    constrained = variant == "constrained"
    labels = {"app": "preemptor"} | ({"tier": "web"} if constrained else {})
    requests = {"cpu": str(cpu), "memory": f"{memory}Gi"}
    pod = _pod(f"preemptor-{variant}", labels, 1000, requests)
    if constrained:
        pod["spec"] |= _constraints(nodes)
    return pod


def average_container() -> Document:
    """Return a container with as many bytes as a usual one has."""
    environment = [{"name": f"SETTING_{n}", "value": f"a value that says {n}"} for n in range(20)]
    return {"name": "c", "image": "registry.example/c:1", "env": environment}


def encoded(document: Document) -> bytes:
    """Return a document as JSON."""
    return orjson.dumps(document)


def snapshot_of(documents: Iterator[Document], release: Release = NEWEST) -> Snapshot:
    """Decode documents as the extender does, into the snapshot that it would decide on."""
    raw: dict[str, list[bytes]] = {}
    for each in documents:
        raw.setdefault(each["kind"], []).append(encoded(each))
    return assemble(
        map(decode_node, raw.get("Node", ())),
        (decode_pod(each, release) for each in raw.get("Pod", ())),
        map(decode_budget, raw.get("PodDisruptionBudget", ())),
        {each.name: each.labels for each in map(decode_namespace, raw.get("Namespace", ()))},
    )


def pending(variant: str, nodes: int, release: Release = NEWEST) -> Pod:
    """Return a preemptor as the extender decodes it."""
    return decode_pod(encoded(preemptor(variant, nodes)), release)


def offers(pod: Pod, snapshot: Snapshot, names: Sequence[str]) -> Document:
    """Return the nodes and victims that kube-scheduler offers to an extender, as JSON."""
    filtering = decide_filter(pod, snapshot, DEFAULT_RULES, names)
    candidates = post_filter(filtering, snapshot, DEFAULT_RULES, names).candidates
    return {
        node: {
            "Pods": [{"UID": victim.uid} for victim in candidate.victims.pods],
            "NumPDBViolations": candidate.victims.violations,
        }
        for node, candidate in candidates.items()
    }


class _Splitmix:
    def __init__(self, state: int) -> None:
        self._state = state

    def __call__(self, bound: int) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return (mixed ^ (mixed >> 31)) % bound


def _node(index: int) -> Document:
    name = f"{PREFIX}{index:05}"
    labels = {_HOSTNAME: name, _ZONE: f"zone-{index % 5}"}
    return node_json(name, cpu="32", memory="64Gi", labels=labels, uid=f"uid-{name}")


def _budget(index: int) -> Document:
    return pdb_json(f"pdb-{index:03}", match={"app": f"app-{index}"}, allowed=index % 6)


def _running(draw: _Splitmix, node: int, index: int, nodes: int) -> Document:
    priority = _PRIORITIES[draw(4)]
    app = f"app-{draw(500)}"
    tier = "web" if draw(10) == 0 else "batch"
    requests = {"cpu": "1", "memory": "2Gi"}
    pod = _pod(f"p-{node:05}-{index:02}", {"app": app, "tier": tier}, priority, requests)
    started = _EPOCH + timedelta(seconds=((30 * node + index) * 7919 + 12345) % (30 * nodes))
    pod["spec"]["nodeName"] = f"{PREFIX}{node:05}"
    pod["status"] = {"phase": "Running", "startTime": f"{started:%Y-%m-%dT%H:%M:%SZ}"}
    return pod


def _pod(name: str, labels: dict[str, str], priority: int, requests: dict[str, str]) -> Document:
    return pod_json(
        name,
        uid=f"uid-{name}",
        labels=labels,
        priority=priority,
        containers=[{"name": "c", "resources": {"requests": requests}}],
        spec={"schedulerName": "default-scheduler"},
    )


def _constraints(nodes: int) -> Document:
    """Return anti-affinity to some apps on a host, and spread constraints by zone and by host."""
    apps = {"key": "app", "operator": "In", "values": [f"app-{i}" for i in range(490, 500)]}
    repelled = {"labelSelector": {"matchExpressions": [apps]}, "topologyKey": _HOSTNAME}
    zone_skew = isqrt(9 * nodes // 4)  # floor(1.5 * sqrt(nodes)), without a float
    return {
        "affinity": {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [repelled]}
        },
        "topologySpreadConstraints": [_spread(_ZONE, zone_skew), _spread(_HOSTNAME, 5)],
    }


def _spread(topology_key: str, max_skew: int) -> Document:
    return {
        "maxSkew": max_skew,
        "topologyKey": topology_key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"tier": "web"}},
    }
