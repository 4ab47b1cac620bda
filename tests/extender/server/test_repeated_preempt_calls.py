"""Repeated preempt calls: kube-scheduler asks again if not all victims were deleted."""

from __future__ import annotations

from typing import Final

import pytest

from extender.cluster.scheduler_cache import SchedulerCache
from tests.builders import node, pod, pod_json
from tests.extender.conftest import Extender, filter_body, live_cluster, preempt_body, served
from tests.extender.go_decoder import filtered, preempted

OFFERS: Final = {"node_1": ["web", "api"], "node_2": ["db"]}


def full_nodes() -> SchedulerCache:
    """Build two nodes full of pods; the less important ones are on the first."""
    return live_cluster(
        node("node-1", cpu="2"),
        node("node-2", cpu="2"),
        pod("web", on="node-1", cpu="1"),
        pod("api", on="node-1", cpu="1"),
        pod("db", on="node-2", cpu="2", priority=5),
        pod("vip", cpu="2", priority=10),
        pod("rival", cpu="2", priority=9),
    )


async def ask(
    extender: Extender, name: str = "vip", priority: int = 10, nominated: str = ""
) -> dict[str, tuple[str, ...]]:
    """Return the victims of the answer by node."""
    status = {"nominatedNodeName": nominated} if nominated else {}
    asking = pod_json(name, cpu="2", priority=priority, status=status)
    reply = await extender.post("/preempt", preempt_body(asking, **OFFERS))
    assert reply.status == 200
    answer = preempted(reply.body, extender.service.cluster.snapshot())
    return {name: victims.uids for name, victims in answer.items()}


@pytest.mark.parametrize("nominated", ["", "node-1"])
async def test_a_repeated_call_gets_the_same_answer_while_the_victims_stay(nominated: str) -> None:
    async with served(full_nodes()) as extender:
        first = await ask(extender)
        assert first == {"node-1": ("api", "web")}
        assert await ask(extender, nominated=nominated) == first
        assert extender.service.cluster.assumed_count == 1


async def test_a_repeated_call_gets_the_same_node_with_the_victims_that_are_left() -> None:
    cluster = full_nodes()
    async with served(cluster) as extender:
        await ask(extender)
        cluster.pods.remove(pod("web", on="node-1"))
        assert await ask(extender, nominated="node-1") == {"node-1": ("api",)}


async def test_a_repeated_call_gets_no_node_while_the_watch_shows_a_victim_terminating() -> None:
    cluster = full_nodes()
    async with served(cluster) as extender:
        await ask(extender)
        cluster.pods.upsert(pod("web", on="node-1", cpu="1", terminating=True, preempted=True))
        assert await ask(extender, nominated="node-1") == {}


async def test_a_repeated_call_waits_for_the_victims_of_other_preemptors() -> None:
    async with served(full_nodes()) as extender:
        await ask(extender, "rival", priority=9)
        assert await ask(extender, nominated="node-1") == {}


async def test_filter_calls_in_between_do_not_end_the_assumption() -> None:
    async with served(full_nodes()) as extender:
        await ask(extender)
        asking = filter_body(pod_json("vip", cpu="2", priority=10), "node-1")
        reply = await extender.post("/filter", asking)
        assert filtered(reply.body, ["node-1"], cached=True).names == ["node-1"]
        assert extender.service.cluster.assumed_count == 1
