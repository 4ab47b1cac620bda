"""What holds in every cluster: fifty random ones live for some minutes, by their seeds."""

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
from fakeapi.controlplane.scheduler.configuration import Call, ExtenderFunction, Reply
from fakeapi.testing.extenders import InProcessReprieve
from policies import Snapshot, assemble, decide_filter, decide_preemption
from policies.kubernetes.releases import NEWEST
from policies.kubernetes.snapshot import Pod
from tests.fakeapi.controlplane.scheduler.stages import (
    Document,
    SchedulerStage,
    X,
    Y,
    configured,
    node,
    passing,
    pdb_json,
    pod,
)
from tests.sampling import seeds

ALONE, IN_COMPANY = "scheduler", "scheduler,kubelet,disruption"
"""What runs: without kubelets victims are gone at once, with them they take their time."""
SETTLING_SECONDS = 60.0
"""Less than pods that fit nowhere wait without an event: what may help must wake them."""


def moody(rng: Random) -> ExtenderFunction:
    """Build an extender that fails now and then."""

    def answer(call: Call) -> Reply:
        return passing(call) if rng.random() < 0.7 else Reply(500, b"")

    return answer


def a_cluster(rng: Random) -> list[Document]:
    """Make up nodes, some of them out of bounds for most, and a budget."""
    taints = [["only=vips:NoSchedule"] if rng.random() < 0.2 else [] for _ in range(6)]
    nodes = [
        node(f"n{i}", str(rng.randint(1, 4)), taints=taints[i], labels={"zone": "ab"[i % 2]})
        for i in range(rng.randint(1, 6))
    ]
    return [*nodes, pdb_json("apps", match={"app": "a"}, allowed=0)]


def a_pod(rng: Random, name: str, grace: int) -> Document:
    """Make up a pod."""
    spec: Document = {"terminationGracePeriodSeconds": grace and rng.choice((0, grace))}
    if rng.random() < 0.3:
        spec["tolerations"] = [{"key": "only", "operator": "Exists"}]
    if rng.random() < 0.2:
        spec["nodeSelector"] = {"zone": rng.choice("abc")}
    cpu = rng.choice(("0", "500m", "1", "2", "3"))
    labels = {"app": rng.choice("abc")}
    return pod(name, cpu, priority=rng.choice((0, 0, 10, 100)), labels=labels, spec=spec)


async def live(stage: SchedulerStage, rng: Random) -> None:
    """Let pods come and go for a while, and then things settle."""
    grace = 5 if "kubelet" in stage.cluster.control_plane.run else 0
    stage.load(*a_cluster(rng))
    for number in range(rng.randint(8, 20)):
        await stage.create_pod(a_pod(rng, f"p{number}", grace))
        if rng.random() < 0.4:
            await stage.passes(rng.choice((0.0, 0.5, 3.0, 20.0)))
        if rng.random() < 0.2:
            with suppress(ApiError):  # it may have gone for another one
                await stage.end(f"p{rng.randint(0, number)}")
    await stage.passes(SETTLING_SECONDS)


class Scales:
    """Tells which nodes hold pods that request more than there is; versions are read once."""

    def __init__(self, nodes: Collection[Document]) -> None:
        read = [decode_node(orjson.dumps(each)) for each in nodes]
        self._room = {node.name: node.allocatable.milli_cpu for node in read}
        self._known: dict[str, tuple[str, int]] = {}

    def hold(self, pods: Collection[Document]) -> bool:
        used: Counter[str] = Counter()
        for each in pods:
            node, cpu = self._read(each)
            used[node] += cpu
        return all(cpu <= self._room[node] for node, cpu in used.items() if node)

    def _read(self, document: Document) -> tuple[str, int]:
        version = document["metadata"]["resourceVersion"]
        if version not in self._known:
            pod = decode_pod(orjson.dumps(document), NEWEST)
            node = "" if pod.finished else pod.node_name or ""
            self._known[version] = node, pod.requests.milli_cpu
        return self._known[version]


def read(cluster: VirtualCluster) -> tuple[Snapshot, list[Pod]]:
    """Return the cluster as it is now, and the pods that are not placed."""
    by_kind: dict[str, list[bytes]] = {}
    for each in cluster.export():
        by_kind.setdefault(each["kind"], []).append(orjson.dumps(each))
    pods = [decode_pod(raw, NEWEST) for raw in by_kind.get("Pod", ())]
    budgets = [decode_budget(raw) for raw in by_kind["PodDisruptionBudget"]]
    snapshot = assemble([decode_node(raw) for raw in by_kind["Node"]], pods, budgets)
    return snapshot, [pod for pod in pods if pod.node_name is None]


def check(cluster: VirtualCluster) -> None:
    """See that nothing was ever overcommitted, and that who could be placed has been."""
    nodes = [each for each in cluster.export() if each["kind"] == "Node"]
    cluster.history("pods").always(Scales(nodes).hold)
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
        extenders[Y] = moody(Random(seed))
        entries.append({"urlPrefix": Y, "ignorable": True})
    async with AsyncExitStack() as stack:
        run = ALONE if seed % 5 else IN_COMPANY
        made = VirtualCluster(
            run=run, seed=seed, extenders=extenders, scheduler=configured(*entries)
        )
        await stack.enter_async_context(made)
        await stack.enter_async_context(reprieve.following(made))
        await live(SchedulerStage(made), rng)
        check(made)


async def test_the_same_seed_gives_the_same_history() -> None:
    stories = []
    for _ in range(2):
        async with VirtualCluster(run=IN_COMPANY, seed=9, extenders={X: passing}) as cluster:
            await live(SchedulerStage(cluster), Random(9))
            told = [(each.pod, each.at_ns, each.answer) for each in cluster.scheduler.trace]
            stories.append((told, await SchedulerStage(cluster).places()))
    assert stories[0] == stories[1]
