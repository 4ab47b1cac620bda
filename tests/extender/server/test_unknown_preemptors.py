"""Preempt calls for pods that the API server does not have: answered, and without effect."""

from __future__ import annotations

from typing import Any, Final

import pytest
from msgspec.structs import replace

from extender.cluster.scheduler_cache import SchedulerCache
from policies.kubernetes.snapshot import Pod
from tests.builders import node, pod, pod_json
from tests.extender.conftest import Extender, filter_body, live_cluster, preempt_body, served
from tests.extender.go_decoder import filtered, preempted

HIGHEST: Final = 2**31 - 1
HONEST: Final = pod("honest", cpu="1", priority=10)


def full_nodes(*others: Pod) -> SchedulerCache:
    """Build four nodes, each full of one pod, and a pod that waits for room."""
    names = [f"node-{number}" for number in range(4)]
    nodes = [node(name, cpu="1") for name in names]
    webs = [pod(f"web-{name}", on=name, cpu="1") for name in names]
    return live_cluster(*nodes, *webs, HONEST, *others)


async def ask(extender: Extender, on: str, preemptor: dict[str, Any]) -> set[str]:
    """Return the nodes that the answer to a preempt call names."""
    body = preempt_body(preemptor, **{on.replace("-", "_"): [f"web-{on}"]})
    reply = await extender.post("/preempt", body)
    assert reply.status == 200
    return set(preempted(reply.body, extender.service.cluster.snapshot()))


async def test_calls_for_invented_pods_do_not_starve_an_honest_one() -> None:
    async with served(full_nodes()) as extender:
        for number in range(4):
            invented = pod_json(f"invented-{number}", cpu="1", priority=HIGHEST)
            assert await ask(extender, f"node-{number}", invented) == {f"node-{number}"}
        for number in range(4):
            honest = pod_json("honest", cpu="1", priority=10)
            assert await ask(extender, f"node-{number}", honest) == {f"node-{number}"}


@pytest.mark.parametrize(
    "known",
    [
        replace(HONEST, name="vip", uid="another"),
        replace(HONEST, name="vip", uid="vip", priority=9),
        replace(HONEST, name="vip", uid="vip", node_name="node-1"),
        replace(HONEST, name="another", uid="vip"),
    ],
    ids=["another UID", "another priority", "it runs already", "another name"],
)
async def test_an_answer_for_a_pod_that_differs_from_the_known_one_is_not_assumed(
    known: Pod,
) -> None:
    async with served(full_nodes(known)) as extender:
        asking = pod_json("vip", cpu="1", priority=10)
        assert await ask(extender, "node-0", asking) == {"node-0"}
        assert extender.service.cluster.assumed_count == 0


async def test_a_pod_that_arrives_after_its_call_is_assumed_from_the_next_call_on() -> None:
    cluster = full_nodes()
    async with served(cluster) as extender:
        asking = pod_json("vip", cpu="1", priority=10)
        await ask(extender, "node-0", asking)
        cluster.pods.upsert(replace(HONEST, name="vip", uid="vip"))
        assert cluster.assumed_count == 0
        await ask(extender, "node-0", asking)
        assert cluster.assumed_count == 1


async def test_a_call_in_the_name_of_a_known_pod_does_not_end_its_assumed_preemption() -> None:
    async with served(full_nodes()) as extender:
        await ask(extender, "node-0", pod_json("honest", cpu="1", priority=10))
        await ask(extender, "node-1", pod_json("honest", cpu="1", priority=HIGHEST))
        rival = filter_body(pod_json("rival", cpu="1", priority=10), "node-0")
        reply = await extender.post("/filter", rival)
        failed = filtered(reply.body, ["node-0"], cached=True).failed
        assert failed == {"node-0": "Insufficient cpu"}


async def test_the_nomination_has_the_requests_that_the_api_server_knows() -> None:
    cluster = full_nodes()
    async with served(cluster) as extender:
        await ask(extender, "node-0", pod_json("honest", cpu="500m", priority=10))
        [nominated] = cluster.snapshot().nodes["node-0"].nominated
        assert nominated == replace(HONEST, nominated_node="node-0")
