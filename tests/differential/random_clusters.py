"""Random small clusters, and pods to be scheduled: the same for the same seed and number.

Amounts, priorities and labels come from tiny ranges, so that exact fits, overcommitted nodes,
spent budgets and ties between nodes are common. Start times all differ, and of the pods on a node
that have one priority at most one has none, since upstream leaves the order of equal pods open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final
from uuid import UUID

from tests.builders import Document, container_json, node_json, pdb_json, pod_json, rfc3339
from tests.differential import devices, pod_groups, requirements, volumes

NAMESPACES: Final = ("red", "blue")
DEVICE: Final = "example.com/device"
SCHEDULER: Final = "default-scheduler"

_PRIORITIES: Final = (-10, 0, 0, 10, 10, 50, 100)
_URGENCIES: Final = (10, 50, 100, 100, 1000, 1000)
_EPOCH: Final = 1_750_000_000
_YEAR_2100: Final = 4_100_000_000


@dataclass(frozen=True, slots=True)
class Generated:
    """The objects of a cluster, and the pods that are then created one after another."""

    items: Sequence[Document]
    pods: Sequence[Document]


def generate(seed: int, number: int) -> Generated:
    """Return a cluster by seed and number."""
    return _Generator(Random(f"{seed}/{number}")).cluster()


class _Generator:
    def __init__(self, draw: Random) -> None:
        self._draw = draw
        self._started = list(range(_EPOCH, _EPOCH + 1000))
        draw.shuffle(self._started)
        self._unstarted: set[tuple[str, int]] = set()

    def cluster(self) -> Generated:
        draw = self._draw
        nodes = [self._node(f"n{n}") for n in range(draw.randint(2, 6))]
        names = [node["metadata"]["name"] for node in nodes]
        storage = volumes.storage(draw, names)
        storage += devices.devices(draw, names, NAMESPACES)
        storage += pod_groups.pod_groups(draw, NAMESPACES)
        residents = [
            self._running(f"p{node}-{n}", f"n{node}")
            for node in range(len(nodes))
            for n in range(draw.randint(0, 7))
        ]
        budgets = [self._budget(f"b{n}") for n in range(draw.randint(0, 4))]
        nominated = [
            self._nominated_elsewhere(f"other-{n}", f"n{draw.randrange(len(nodes))}")
            for n in range(draw.choice((0, 0, 0, 1, 2)))
        ]
        newcomers = [self._pending(f"new-{n}") for n in range(draw.randint(2, 4))]
        return Generated([*nodes, *storage, *budgets, *residents, *nominated], newcomers)

    def _node(self, name: str) -> Document:
        draw = self._draw
        zone = draw.choice("aabbc")
        labels = {"kubernetes.io/hostname": name, "zone": zone, "disk": draw.choice(("hdd", "ssd"))}
        if draw.random() < 0.06:
            del labels[draw.choice(list(labels))]
        node = node_json(
            name,
            cpu=draw.choice(("2", "4", "4", "6")),
            memory="8Gi",
            pods=draw.choice(("4", "6", "110", "110")),
            others={DEVICE: draw.choice("12")} if draw.random() < 0.5 else {},
            labels=labels,
            taints=requirements.taints(draw),
            unschedulable=True if draw.random() < 0.06 else None,
        )
        return {**node, "status": {**node["status"], **requirements.declared_features(draw)}}

    def _running(self, name: str, node: str) -> Document:
        draw = self._draw
        priority = draw.choice(_PRIORITIES)
        spec = self._spec(seldom=0.25)
        started = self._start(node, priority)
        leaving = draw.random() < 0.08
        containers = self._containers(draw.choice(("250m", "500m", "1", "1", "2")))
        status = requirements.resized(draw, containers)
        if leaving and draw.random() < 0.5:
            status["conditions"] = [_preempted()]
        pod = pod_json(
            name,
            on=node,
            priority=priority,
            labels=requirements.labels(draw),
            namespace=draw.choice(NAMESPACES),
            uid=self._uid(),
            phase=draw.choices(("Running", "Pending", "Succeeded"), (18, 1, 1))[0],
            started=started,
            containers=containers,
            metadata=_leaving() if leaving else None,
            spec=spec,
            status=status,
        )
        mounted = requirements.missing_claim(draw, volumes.mounted(draw, pod))
        return pod_groups.member(draw, mounted)

    def _nominated_elsewhere(self, name: str, node: str) -> Document:
        """Return a pending pod of another scheduler, nominated to a node."""
        draw = self._draw
        return pod_json(
            name,
            priority=draw.choice((10, 1000)),
            labels=requirements.labels(draw),
            namespace=draw.choice(NAMESPACES),
            uid=self._uid(),
            containers=self._containers("1"),
            spec={"schedulerName": "other-scheduler"},
            status={"nominatedNodeName": node},
        )

    def _pending(self, name: str) -> Document:
        draw = self._draw
        preempts = "Never" if draw.random() < 0.03 else "PreemptLowerPriority"
        pod = pod_json(
            name,
            priority=draw.choice(_URGENCIES),
            labels=requirements.labels(draw),
            namespace=draw.choice(NAMESPACES),
            uid=self._uid(),
            containers=self._containers(draw.choice(("500m", "1", "2", "2", "3", "4", "5"))),
            spec={
                **self._spec(seldom=0.7),
                **requirements.placement(draw),
                "preemptionPolicy": preempts,
            },
        )
        mounted = requirements.missing_claim(draw, volumes.mounted(draw, pod))
        return devices.claiming(draw, mounted)

    def _spec(self, seldom: float) -> Document:
        """Return the fields that running and waiting pods share; affinity at the given rate."""
        draw = self._draw
        spec: Document = {"schedulerName": SCHEDULER, "terminationGracePeriodSeconds": 300}
        if draw.random() < seldom:
            spec |= requirements.affinity(draw)
        spec |= requirements.pod_resources(draw) | requirements.host_users(draw)
        if draw.random() < 0.08:
            spec["overhead"] = {"cpu": "250m"}
        if draw.random() < 0.15:
            restart = {"restartPolicy": "Always"} if draw.random() < 0.5 else {}
            amounts = {"cpu": draw.choice(("500m", "1", "3"))}
            ports = requirements.ports(draw)
            spec["initContainers"] = [container_json("init", amounts, **restart, **ports)]
        return spec

    def _containers(self, cpu: str) -> list[Document]:
        draw = self._draw
        requests = {"cpu": cpu, "memory": draw.choice(("128Mi", "1Gi", "3Gi"))}
        if draw.random() < 0.1:
            requests[DEVICE] = "1"
        fields = requirements.ports(draw) | requirements.required_features(draw)
        containers = [container_json("main", requests, **fields)]
        if draw.random() < 0.1:
            containers.append(container_json("second", {"cpu": "250m"}))
        return containers

    def _budget(self, name: str) -> Document:
        draw = self._draw
        budget = pdb_json(
            name,
            match=draw.choice(({"app": "web"}, {"app": "db"}, {"tier": "a"}, {}, None)),
            allowed=draw.choice((0, 0, 1, 1, 2, 3)),
            namespace=draw.choice(NAMESPACES),
            disrupted=draw.choice(((), (), ("p0-0",), ("p1-1", "p0-2"))),
        )
        if draw.random() < 0.3:
            budget["spec"]["selector"] = {"matchExpressions": [requirements.expression(draw)]}
        if draw.random() < 0.2:
            budget["spec"]["unhealthyPodEvictionPolicy"] = "AlwaysAllow"
        return budget

    def _start(self, node: str, priority: int) -> int | None:
        if self._draw.random() < 0.1 and (node, priority) not in self._unstarted:
            self._unstarted.add((node, priority))
            return None
        return self._started.pop()

    def _uid(self) -> str:
        return str(UUID(int=self._draw.getrandbits(128), version=4))


def _leaving() -> Document:
    return {"deletionTimestamp": rfc3339(_YEAR_2100), "deletionGracePeriodSeconds": 300}


def _preempted() -> Document:
    return {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "lastTransitionTime": rfc3339(_EPOCH),
    }
