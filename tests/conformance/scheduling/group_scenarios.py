"""Pod groups: gangs that preempt, and gangs whose members are preempted, one by one or whole."""

from __future__ import annotations

from typing import Any, Final

from tests.builders import Document, manifest
from tests.conformance.objects import NAMESPACE
from tests.conformance.scheduling.environment import Environment, SchedulingScenario, Setting
from tests.conformance.scheduling.pods import bound_pod, pending_pod, small_node

GATES: Final = ("GenericWorkload",)
GANG: Final = 8
ALL: Final[Document] = {"all": {}}
"""The disruption mode of a group whose pods are preempted together."""


def pod_group(name: str, min_count: int, priority: int, **spec: Any) -> Document:
    """Return the admitted PodGroup of a gang; ``priority`` is one of PRIORITIES."""
    gang = {"schedulingPolicy": {"gang": {"minCount": min_count}}}
    admitted = {"priorityClassName": f"p{priority}", "priority": priority}
    return manifest("PodGroup", name, namespace=NAMESPACE, spec={**gang, **admitted, **spec})


def member(pod: Document, group: str) -> Document:
    """Return a pod as a member of a group."""
    return {**pod, "spec": {**pod["spec"], "schedulingGroup": {"podGroupName": group}}}


async def _load_gang(env: Environment, disruption: Document, *nodes: str) -> None:
    """Load a gang of priority 5 with a pod of one core on each of ``nodes``."""
    await env.load(pod_group("gang", len(nodes), 5, disruptionMode=disruption))
    for number, name in enumerate(nodes):
        pod = bound_pod(f"member-{number}", name, "1", 5, started=number)
        await env.load(member(pod, "gang"))


async def a_gang_that_fits_only_by_preemption(env: Environment) -> None:
    """All its members are scheduled once the pods of lower priority have left."""
    nodes = [f"node-{n}" for n in range(GANG // 2)]
    await env.load(*map(small_node, nodes))
    await env.load(*(bound_pod(f"old-{name}-{n}", name, "1", 1) for name in nodes for n in "ab"))
    await env.load(pod_group("gang", GANG, 100))
    names = [f"new-{n}" for n in range(GANG)]
    for name in names:
        await env.cluster.create(member(pending_pod(name, "1"), "gang"))
    await env.wait_for_deletions(GANG)
    await env.remove_terminating()
    bound = await env.wait_bound(*names)
    assert sorted(bound.values()) == sorted(nodes * 2)


async def a_gang_stays_on_its_nominated_nodes(env: Environment) -> None:
    """A node that becomes free is not used, though its members could be bound there at once."""
    await env.load(*(small_node(f"node-{n}", "1") for n in range(3)))
    await env.load(
        bound_pod("high", "node-0", "1", 1000),
        bound_pod("low-1", "node-1", "1", 1),
        bound_pod("low-2", "node-2", "1", 1),
        pod_group("gang", 2, 50),
    )
    for name in ("new-0", "new-1"):
        await env.cluster.create(member(pending_pod(name, "1", 50), "gang"))
    nominated = await env.wait_nominated("new-0", "new-1")
    assert sorted(nominated.values()) == ["node-1", "node-2"]
    await env.cluster.delete("Pod", "high", gracePeriodSeconds=0)
    await env.cluster.until(lambda: env.cluster.get("Pod", "high") is None)
    await env.wait_for_deletions(2)
    await env.remove_terminating()
    assert await env.wait_bound("new-0", "new-1") == nominated
    assert env.deleted() == ["low-1", "low-2"]


async def a_pod_preempts_one_member_of_a_gang(env: Environment) -> None:
    """In disruption mode ``single`` one member is enough, the one that started last."""
    await env.load(small_node("node-0"))
    await _load_gang(env, {"single": {}}, "node-0", "node-0")
    await env.cluster.create(pending_pod("new", "1"))
    await env.wait_preempted("new", "node-0")
    assert env.deleted() == ["member-1"]


async def a_pod_preempts_a_whole_gang_on_its_node(env: Environment) -> None:
    """In disruption mode ``all`` both members are preempted, though one would be enough."""
    await env.load(small_node("node-0"))
    await _load_gang(env, ALL, "node-0", "node-0")
    await env.cluster.create(pending_pod("new", "1"))
    await env.wait_preempted("new", "node-0", 2)
    assert env.deleted() == ["member-0", "member-1"]


async def a_gang_on_several_nodes_is_left_whole(env: Environment) -> None:
    """No member is preempted: an extender cannot name pods of other nodes.

    Another node's pod is preempted instead, though it has a higher priority.
    """
    await env.load(*map(small_node, ("node-0", "node-1", "node-2")))
    await env.load(bound_pod("filler-0", "node-0", "1", 1000))
    await env.load(bound_pod("filler-1", "node-1", "1", 1000))
    await _load_gang(env, ALL, "node-0", "node-1")
    await env.load(bound_pod("dear", "node-2", priority=50))
    await env.cluster.create(pending_pod("new", "1"))
    await env.wait_preempted("new", "node-2")
    assert env.deleted() == ["dear"]


async def only_a_gang_on_several_nodes_could_leave(env: Environment) -> None:
    """The pod waits, and no pod is preempted."""
    await env.load(*map(small_node, ("node-0", "node-1")))
    await env.load(bound_pod("filler-0", "node-0", "1", 1000))
    await env.load(bound_pod("filler-1", "node-1", "1", 1000))
    await _load_gang(env, ALL, "node-0", "node-1")
    await env.cluster.create(pending_pod("new", "1"))
    await env.wait_unschedulable("new")
    assert env.relay.preempt_calls("new")
    assert env.deleted() == []


SCENARIOS: Final = [
    SchedulingScenario(play, Setting(gates=GATES, serving={"search": search}))
    for play in (
        a_gang_that_fits_only_by_preemption,
        a_gang_stays_on_its_nominated_nodes,
        a_pod_preempts_one_member_of_a_gang,
        a_pod_preempts_a_whole_gang_on_its_node,
        a_gang_on_several_nodes_is_left_whole,
        only_a_gang_on_several_nodes_could_leave,
    )
    for search in ("offered", "cluster")
]
