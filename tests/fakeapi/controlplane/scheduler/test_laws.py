"""Invariants of scheduling, in fifty random clusters of some minutes, by their seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from contextlib import AsyncExitStack, suppress
from random import Random
from typing import Any

import orjson
import pytest

from extender.kube.decoders.cluster_objects import decode_budget, decode_node
from extender.kube.decoders.pods import decode_pod
from extender.kube.rest.api_errors import ApiError
from extender.protocol.verb_context import Search
from fakeapi import VirtualCluster
from fakeapi.controlplane.scheduler.options import Call, ExtenderFunction, Reply
from fakeapi.testing.extenders import InProcessReprieve
from policies import Snapshot, assemble, decide_filter, decide_preemption
from policies.kubernetes.releases import NEWEST
from policies.kubernetes.snapshot import Pod
from tests.builders import Document, manifest, pdb_json
from tests.fakeapi.controlplane.scheduler.stages import (
    SchedulerStage,
    X,
    Y,
    configured,
    node,
    passing,
    pod,
)
from tests.properties.sampling import seeds

WITHOUT_KUBELETS, WITH_KUBELETS = "scheduler", "scheduler,kubelet,disruption"
"""Without kubelets victims are deleted at once; with them they have a grace period."""
SETTLING_SECONDS = 60.0
"""Less than unschedulable pods wait without an event: events must wake them."""


def failing_sometimes(rng: Random) -> ExtenderFunction:
    """Build an extender that fails 30 % of its calls."""

    def answer(call: Call) -> Reply:
        return passing(call) if rng.random() < 0.7 else Reply(500, b"")

    return answer


def random_cluster(rng: Random) -> list[Document]:
    """Build nodes, some of them tainted, and a budget."""
    taints = [["only=vips:NoSchedule"] if rng.random() < 0.2 else [] for _ in range(6)]
    nodes = [
        node(f"n{i}", str(rng.randint(1, 4)), taints=taints[i], labels={"zone": "ab"[i % 2]})
        for i in range(rng.randint(1, 6))
    ]
    return [*nodes, pdb_json("apps", match={"app": "a"}, allowed=0)]


def random_pod(rng: Random, name: str, grace: int) -> Document:
    """Build a pod."""
    spec: Document = {"terminationGracePeriodSeconds": grace and rng.choice((0, grace))}
    if rng.random() < 0.3:
        spec["tolerations"] = [{"key": "only", "operator": "Exists"}]
    if rng.random() < 0.2:
        spec["nodeSelector"] = {"zone": rng.choice("abc")}
    cpu = rng.choice(("0", "500m", "1", "2", "3"))
    labels = {"app": rng.choice("abc")}
    return pod(name, cpu, priority=rng.choice((0, 0, 10, 100)), labels=labels, spec=spec)


async def change_randomly(stage: SchedulerStage, rng: Random) -> None:
    """Create and delete pods for a while, and wait until the scheduler is idle."""
    grace = 5 if "kubelet" in stage.cluster.control_plane.run else 0
    stage.load(*random_cluster(rng))
    for number in range(rng.randint(8, 20)):
        await stage.create_pod(random_pod(rng, f"p{number}", grace))
        if rng.random() < 0.4:
            await stage.passes(rng.choice((0.0, 0.5, 3.0, 20.0)))
        if rng.random() < 0.2:
            with suppress(ApiError):  # it may have been preempted
                await stage.end(f"p{rng.randint(0, number)}")
    await stage.passes(SETTLING_SECONDS)


class RequestedCpu:
    """Compares the requests of pods with the CPU of their nodes; it decodes each version once."""

    def __init__(self, nodes: Collection[Document]) -> None:
        read = [decode_node(orjson.dumps(each)) for each in nodes]
        self._allocatable = {node.name: node.allocatable.milli_cpu for node in read}
        self._known: dict[str, tuple[str, int]] = {}

    def fits(self, pods: Collection[Document]) -> bool:
        used: Counter[str] = Counter()
        for each in pods:
            node, cpu = self._read(each)
            used[node] += cpu
        return all(cpu <= self._allocatable[node] for node, cpu in used.items() if node)

    def _read(self, document: Document) -> tuple[str, int]:
        version = document["metadata"]["resourceVersion"]
        if version not in self._known:
            pod = decode_pod(orjson.dumps(document), NEWEST)
            node = "" if pod.finished else pod.node_name or ""
            self._known[version] = node, pod.requests.milli_cpu
        return self._known[version]


def read(cluster: VirtualCluster) -> tuple[Snapshot, list[Pod]]:
    """Return a snapshot of the cluster, and its pending pods."""
    by_kind: dict[str, list[bytes]] = {}
    for each in cluster.export():
        by_kind.setdefault(each["kind"], []).append(orjson.dumps(each))
    pods = [decode_pod(raw, NEWEST) for raw in by_kind.get("Pod", ())]
    budgets = [decode_budget(raw) for raw in by_kind["PodDisruptionBudget"]]
    snapshot = assemble([decode_node(raw) for raw in by_kind["Node"]], pods, budgets)
    return snapshot, [pod for pod in pods if pod.node_name is None]


def check(cluster: VirtualCluster) -> None:
    """Check that no node was ever overcommitted, and that every pod that fits is bound."""
    nodes = [each for each in cluster.export() if each["kind"] == "Node"]
    cluster.history("pods").always(RequestedCpu(nodes).fits)
    snapshot, pending = read(cluster)
    for each in pending:
        assert not decide_filter(each, snapshot).feasible, f"{each.key} fits and was not placed"
        decision = decide_preemption(each, snapshot)
        assert decision.chosen is None, f"{each.key} may preempt on {decision.chosen}"


ENTRIES: list[dict[str, Any]] = [{}, {"nodeCacheCapable": False}, {"ignorable": True}]


@pytest.mark.parametrize("seed", seeds(5, 50))
async def test_no_node_is_ever_overcommitted_and_every_pod_that_fits_is_placed(seed: int) -> None:
    rng = Random(seed)
    search = rng.choice(tuple(Search))
    reprieve = InProcessReprieve(search)
    extenders: dict[str, ExtenderFunction] = {}
    entries = []
    if seed % 3:
        extenders[X] = reprieve
        entries.append(rng.choice(ENTRIES))
    if seed % 2:
        extenders[Y] = failing_sometimes(Random(seed))
        entries.append({"urlPrefix": Y, "ignorable": True})
    async with AsyncExitStack() as stack:
        run = WITHOUT_KUBELETS if seed % 5 else WITH_KUBELETS
        made = VirtualCluster(
            run=run, seed=seed, extenders=extenders, scheduler=configured(*entries)
        )
        await stack.enter_async_context(made)
        await stack.enter_async_context(reprieve.following(made))
        await change_randomly(SchedulerStage(made), rng)
        check(made)


async def create_gangs(stage: SchedulerStage, rng: Random, priority: int) -> dict[str, int]:
    """Create gangs of equal pods of one core beside other pods; return their minimum counts."""
    stage.load(*random_cluster(rng))
    counts = {f"gang-{n}": rng.randint(1, 5) for n in range(rng.randint(1, 3))}
    pods = [random_pod(rng, f"p{n}", 0) for n in range(rng.randint(0, 12))]
    for name, count in counts.items():
        gang = {"schedulingPolicy": {"gang": {"minCount": count}}, "priority": priority}
        stage.load(manifest("PodGroup", name, namespace="default", spec=gang))
        spec = {"schedulingGroup": {"podGroupName": name}}
        size = count + rng.randint(0, 2)
        pods += [pod(f"{name}-{n}", priority=priority, spec=dict(spec)) for n in range(size)]
    rng.shuffle(pods)
    for each in pods:
        await stage.create_pod(each)
        if rng.random() < 0.2:
            await stage.passes(rng.choice((0.5, 3.0)))
    await stage.passes(SETTLING_SECONDS)
    return counts


def cores_for(priority: int, snapshot: Snapshot) -> int:
    """Return the cores that are free for pods without tolerations if all lower pods leave."""
    return sum(
        (state.node.allocatable.milli_cpu - sum(
            pod.requests.milli_cpu for pod in state.pods if pod.priority >= priority
        )) // 1000
        for state in snapshot.nodes.values()
        if not state.node.taints
    )  # fmt: skip


@pytest.mark.parametrize("seed", seeds(10, 100))
async def test_a_gang_is_placed_as_a_whole_or_not_at_all(seed: int) -> None:
    """It is placed if there is room without the pods of lower priority."""
    rng, priority = Random(seed), 100
    reprieve = InProcessReprieve(rng.choice(tuple(Search)))
    extenders: dict[str, ExtenderFunction] = {X: reprieve, Y: failing_sometimes(Random(seed))}
    scheduler = configured({}, {"urlPrefix": Y, "ignorable": True})
    async with AsyncExitStack() as stack:
        made = VirtualCluster(
            run=WITHOUT_KUBELETS, seed=seed, extenders=extenders, scheduler=scheduler
        )
        await stack.enter_async_context(made)
        await stack.enter_async_context(reprieve.following(made))
        counts = await create_gangs(SchedulerStage(made), rng, priority)
        nodes = [each for each in made.export() if each["kind"] == "Node"]
        made.history("pods").always(RequestedCpu(nodes).fits)
        snapshot, _ = read(made)
    room = cores_for(priority, snapshot)
    for name, count in counts.items():
        bound = len(snapshot.group_members.get(f"default/{name}", ()))
        assert bound >= count or (bound == 0 and room < count)


async def test_the_same_seed_gives_the_same_history() -> None:
    results = []
    for _ in range(2):
        async with VirtualCluster(run=WITH_KUBELETS, seed=9, extenders={X: passing}) as cluster:
            await change_randomly(SchedulerStage(cluster), Random(9))
            calls = [(each.pod, each.at_ns, each.answer) for each in cluster.scheduler.trace]
            results.append((calls, await SchedulerStage(cluster).places()))
    assert results[0] == results[1]
