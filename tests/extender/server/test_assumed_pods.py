"""Preempt calls while kube-scheduler has assumed pods that the API server shows as pending."""

from __future__ import annotations

from typing import Any, Final

import pytest
from msgspec.structs import replace

from extender.kube.decoders.pods import decode_pod
from policies.kubernetes.releases import NEWEST
from policies.kubernetes.snapshot import Node, Pod
from tests.builders import encoded, node, pod, pod_json, snapshot
from tests.extender.conftest import Extender, filter_body, live_cluster, preempt_body, served
from tests.extender.go_decoder import Victims, filtered, preempted

NODE: Final = node("node-1", cpu="2")
DEAR: Final = pod("dear", on="node-1", cpu="1", priority=5)
EARLY: Final = pod("early", on="node-1", cpu="1", priority=5)
"""A pod that waits at Permit, as kube-scheduler has it."""
NOMINATED: Final = {"nominatedNodeName": "node-1"}
UNSCHEDULABLE: Final = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def pending(**status: Any) -> Pod:
    """Return the same pod as the API server has it."""
    document = pod_json("early", cpu="1", priority=5, status=status)
    return decode_pod(encoded(document), NEWEST)


async def ask(
    extender: Extender,
    *theirs: Node | Pod,
    name: str = "vip",
    cpu: str = "1",
    **offers: list[str],
) -> dict[str, Victims]:
    """Return the victims of an answer, which kube-scheduler finds on its nodes."""
    body = preempt_body(pod_json(name, cpu=cpu, priority=10), **offers)
    reply = await extender.post("/preempt", body)
    assert reply.status == 200
    return preempted(reply.body, snapshot(*theirs))


@pytest.mark.parametrize(
    "status",
    [
        NOMINATED,
        {**NOMINATED, "conditions": [UNSCHEDULABLE]},  # of an earlier attempt
        {},  # up to 1.34
    ],
    ids=["nominated", "nominated, after a failed attempt", "not nominated"],
)
async def test_an_offered_pod_in_memory_is_the_victim(status: Any) -> None:
    async with served(live_cluster(NODE, DEAR, pending(**status))) as extender:
        answer = await ask(extender, NODE, DEAR, EARLY, node_1=["early"])
        assert answer == {"node-1": Victims(("early",), 0)}


async def test_a_less_important_pod_is_evicted_before_an_offered_one_in_memory() -> None:
    cheap = replace(DEAR, priority=1)
    async with served(live_cluster(NODE, cheap, pending(**NOMINATED))) as extender:
        answer = await ask(extender, NODE, cheap, EARLY, node_1=["early", "dear"])
        assert answer == {"node-1": Victims(("dear",), 0)}


async def test_a_pod_that_is_not_offered_takes_room_and_is_never_named() -> None:
    """kube-scheduler has reprieved it; without it, one victim would seem to be enough."""
    dear, api = replace(DEAR, priority=1), pod("api", on="node-1", cpu="1", priority=2)
    things = node("node-1", cpu="3"), dear, api
    async with served(live_cluster(*things, pending(**NOMINATED))) as extender:
        answer = await ask(extender, *things, EARLY, cpu="2", node_1=["api", "dear"])
        assert answer == {"node-1": Victims(("api", "dear"), 0)}


async def test_the_next_preemptor_finds_the_room_of_the_first_taken() -> None:
    async with served(live_cluster(NODE, DEAR, pending(**NOMINATED))) as extender:
        await ask(extender, NODE, DEAR, EARLY, node_1=["early"])
        answer = await ask(extender, NODE, DEAR, name="next", node_1=["dear"])
        assert answer == {"node-1": Victims(("dear",), 0)}


async def test_the_preemptor_fits_while_the_watch_still_shows_its_victim_as_nominated() -> None:
    async with served(live_cluster(NODE, DEAR, pending(**NOMINATED))) as extender:
        await ask(extender, NODE, DEAR, EARLY, node_1=["early"])
        asking = filter_body(pod_json("vip", cpu="1", priority=10), "node-1")
        reply = await extender.post("/filter", asking)
        assert filtered(reply.body, ["node-1"], cached=True).names == ["node-1"]


async def test_a_pod_of_the_preemptors_priority_is_never_named() -> None:
    equal = replace(pending(**NOMINATED), priority=10)
    async with served(live_cluster(NODE, equal)) as extender:
        assert await ask(extender, NODE, replace(EARLY, priority=10), node_1=["early"]) == {}
