"""Clusters whose pods leak: their usage, and so the expected evictions, are known at any time.

Nodes have 4Gi of memory and 8Gi of disk. On them run a *hoarder* of low priority that leaks
slowly, a *gobbler* of higher priority that leaks fast, a *modest* one within its request, and a
critical *agent* that leaks beyond its request, too. ReplicaSets keep them; an evicted pod is
replaced on a node that has no taint. How fast pods leak differs from node to node.

Usage, pressure and ranks are computed here without the code under test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from extender.kube.decoders.object_meta import parse_time
from extender.kube.rest.client import Selection
from extender.kube.rest.resources import NODES, PODS, REPLICA_SETS
from fakeapi import VirtualCluster
from tests.builders import Document, container_json, manifest
from tests.stage import Stage, decode

MI: Final = 2**20
SECOND: Final = 10**9
CAPACITY: Final = {"memory": 4096 * MI, "disk": 8192 * MI}
NODES_OWN: Final = {"memory": 256 * MI, "disk": (2048 + 1024) * MI}
THRESHOLD: Final = {"memory": 200 * MI, "disk": 1024 * MI}
REQUESTED: Final = {"memory": "memory", "disk": "ephemeral-storage"}
SIGNAL: Final = {"memory": "memory.available", "disk": "nodefs.available"}
CONDITION: Final = {"memory": "MemoryPressure", "disk": "DiskPressure"}
TRANSITION: Final = 300 * SECOND
CRITICAL: Final = "system-node-critical"
LOGS: Final = 64 * 2**10  # the logs of a container by default


@dataclass(frozen=True)
class Leak:
    """One kind of pods: Mi that are requested, used at first, and in the end, and when it leaks."""

    app: str
    priority: int
    request: int
    first: int
    last: int
    after: int
    over: int


LEAKS: Final = {
    each.app: each
    for each in (
        Leak("hoarder", 0, 300, 100, 2600, 120, 2400),
        Leak("gobbler", 1000, 200, 100, 3800, 300, 900),
        Leak("modest", 0, 600, 500, 500, 0, 0),
        Leak("agent", 2_000_001_000, 100, 100, 500, 60, 3000),
    )
}


@dataclass(frozen=True)
class PodRun:
    """A pod that ran on a node from ``began`` to ``ended``; times in nanoseconds."""

    name: str
    uid: str
    node: str
    leak: Leak
    began: int
    ended: int | None
    evicted: bool

    def uses(self, resource: str, at: int) -> int:
        """Return its usage at a time, in bytes."""
        leak, pace = self.leak, 1 + int(self.node[-1]) % 5 * 0.25
        over = round(leak.over * pace) * SECOND
        leaked = min(max(0, at - self.began - leak.after * SECOND), over)
        growth = (leak.last - leak.first) * MI
        used = leak.first * MI + (growth * leaked // over if over else 0)
        return used + (LOGS if resource == "disk" else 0)

    def above(self, resource: str, at: int) -> int:
        """Return its usage above its request."""
        return self.uses(resource, at) - self.leak.request * MI

    def rank(self, resource: str, at: int) -> tuple[bool, int, int, str]:
        """Return its place in the order of eviction: the least is evicted first."""
        above = self.above(resource, at)
        return above <= 0, self.leak.priority, -above, self.name


def leak_script(resource: str, count: int) -> Document:
    """Return the simulation script for so many nodes."""
    pods = []
    for leak in LEAKS.values():
        for digit in range(10):
            over = round(leak.over * (1 + digit % 5 * 0.25))
            grows = {"after": f"{leak.after}s", resource: f"{leak.last}Mi", "over": f"{over}s"}
            match = {"labels": {"app": leak.app}, "nodes": [f"*{digit}"]}
            stages = [{resource: f"{leak.first}Mi"}, grows]
            pods.append({"match": match, "start": 0, "stop": 0, "stages": stages})
    capacity = {"memory": "4Gi", "ephemeral-storage": "8Gi"}
    config = {"evictionHard": {SIGNAL[resource]: f"{THRESHOLD[resource] // MI}Mi"}}
    return {
        "register": [{"name": "node-{:02}", "count": count, "capacity": capacity}],
        "pods": pods,
        "nodes": [{"config": config}],
    }


def replica_set(leak: Leak, resource: str, replicas: int) -> Document:
    """Build the ReplicaSet that keeps pods of one kind."""
    labels = {"app": leak.app}
    container = container_json(requests={REQUESTED[resource]: f"{leak.request}Mi"})
    priority = CRITICAL if leak.priority > 10**9 else f"p{leak.priority}"
    pod_spec = {"containers": [container], "priorityClassName": priority}
    template = {"metadata": {"labels": labels}, "spec": pod_spec}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return manifest("ReplicaSet", leak.app, metadata={"uid": leak.app}, spec=spec)


class LeakingCluster(Stage):
    """A cluster whose pods leak one resource; tests run its kubelets."""

    def __init__(self, cluster: VirtualCluster, resource: str, count: int) -> None:
        super().__init__(cluster)
        self.resource = resource
        classes = [("p0", 0), ("p1000", 1000)]
        self.load(*(manifest("PriorityClass", name, value=value) for name, value in classes))
        self.load(*(replica_set(each, resource, count) for each in LEAKS.values()))

    async def run(self, seconds: int, every: int = 5) -> None:
        """Let time pass, and bind unbound pods."""
        for _ in range(0, seconds, every):
            await self.passes(every)
            await self.schedule()

    async def schedule(self) -> None:
        """Bind pods to nodes without taints, each kind to those that have the fewest of it."""
        unbound = Selection(field_selector="spec.nodeName=")
        waiting = (await self.client.list(PODS, decode, unbound)).items
        if not waiting:
            return
        nodes = await self.all(NODES)
        free = [each["metadata"]["name"] for each in nodes if not each["spec"].get("taints")]
        taken = [
            (each["spec"].get("nodeName"), each["metadata"]["labels"]["app"])
            for each in await self.all(PODS)
            if _is_active(each)
        ]
        for each in waiting if free else ():
            app, name = each["metadata"]["labels"]["app"], each["metadata"]["name"]
            node = min(free, key=lambda it: (taken.count((it, app)), it))
            taken.append((node, app))
            await self.bind(name, node)

    def pod_runs(self) -> list[PodRun]:
        """List where and when pods ran, from their history."""
        *_, last = self.cluster.history("pods").states()
        return list(_pod_runs(last))

    async def check_replicas(self) -> None:
        """Check that each ReplicaSet has its replicas, and that bound pods are ready."""
        sets = await self.all(REPLICA_SETS)
        expected = {each["metadata"]["name"]: each["spec"]["replicas"] for each in sets}
        active = [each for each in await self.all(PODS) if _is_active(each)]
        assert Counter(each["metadata"]["labels"]["app"] for each in active) == expected
        for each in active:
            ready = [c["status"] for c in each["status"]["conditions"] if c["type"] == "Ready"]
            assert ready == ["True"] or "nodeName" not in each["spec"], each["metadata"]["name"]

    def pressed(self, node: str) -> list[tuple[int, int | None]]:
        """List from when to when a node reported pressure; None: it does still."""
        found: list[tuple[int, int | None]] = []
        for change in self.cluster.history("nodes", "", node):
            for each in change.object["status"].get("conditions", ()):
                if each["type"] == CONDITION[self.resource]:
                    at = parse_time(each["lastTransitionTime"])
                    open_ = found and found[-1][1] is None
                    if each["status"] == "True" and not open_:
                        found.append((at, None))
                    elif each["status"] != "True" and open_:
                        found[-1] = found[-1][0], at
        return found


def _is_active(pod: Document) -> bool:
    return pod["status"]["phase"] not in ("Failed", "Succeeded")


def _pod_runs(pods: Iterable[Document]) -> Iterator[PodRun]:
    for each in pods:
        status = each["status"]
        [state] = [one["state"] for one in status.get("containerStatuses", ())] or [{}]
        times: Any = state.get("terminated") or state.get("running")
        if times is None:
            continue
        ended = times.get("finishedAt")
        yield PodRun(
            each["metadata"]["name"],
            each["metadata"]["uid"],
            each["spec"]["nodeName"],
            LEAKS[each["metadata"]["labels"]["app"]],
            parse_time(times["startedAt"]),
            parse_time(ended) if ended else None,
            status.get("reason") == "Evicted",
        )
