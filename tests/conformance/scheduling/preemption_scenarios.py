"""Preemptions of a real kube-scheduler: the victims, the preemptor's node, the writes."""

from __future__ import annotations

from collections import Counter
from typing import Final

from tests.conformance.scheduling.environment import Environment, SchedulingScenario, Setting
from tests.conformance.scheduling.kube_scheduler import ONE_NODE
from tests.conformance.scheduling.pods import admitted, bound_pod, budget, pending_pod, small_node

NODES: Final = 200
RESIDENTS: Final = 20
LATER: Final = 5
"""The pods on each node at first, and the pods that fit there in addition."""
AT_A_TIME: Final = 100
"""The number of pods awaited at a time: the timeout is meant for one."""
URGENT: Final = 20
"""Pods that each request as much as all later pods of a node."""


async def a_pod_that_fits(env: Environment) -> None:
    """It is bound to a node with enough resources, and nothing else is written."""
    await env.load(small_node("full"), small_node("free"), bound_pod("there", "full"))
    await env.cluster.create(pending_pod("new"))
    assert await env.wait_bound("new") == {"new": "free"}
    assert env.written() == ["POST new/binding"]


async def the_least_important_pod_is_preempted(env: Environment) -> None:
    """One victim gets its condition and is deleted; then the preemptor is bound."""
    await env.load(*(small_node(f"node-{n}") for n in range(3)))
    await env.load(
        *(bound_pod(f"pod-{n}", f"node-{n}", priority=p) for n, p in enumerate((10, 1, 5)))
    )
    await env.cluster.create(pending_pod("new"))
    assert await env.wait_nominated("new") == {"new": "node-1"}
    assert await env.wait_for_deletions(1) == ["pod-1"]
    victim = env.cluster.get("Pod", "pod-1")
    assert victim is not None
    [condition] = victim["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "PreemptionByScheduler")
    await env.remove_terminating()
    assert await env.wait_bound("new") == {"new": "node-1"}
    assert sorted(set(env.written())) == [
        "DELETE pod-1",
        "PATCH new/status",
        "PATCH pod-1/status",
        "POST new/binding",
    ]


async def a_budget_protects_a_pod(env: Environment) -> None:
    """A pod of higher priority is preempted rather than one that a budget protects."""
    await env.load(small_node("node-1"), small_node("node-2"), budget("held", 0, {"app": "db"}))
    await env.load(bound_pod("cheap", "node-1", priority=1, labels={"app": "db"}))
    await env.load(bound_pod("dear", "node-2", priority=10, labels={"app": "web"}))
    await env.cluster.create(pending_pod("new"))
    await env.wait_preempted("new", "node-2")
    assert env.deleted() == ["dear"]


async def a_budget_is_violated_if_needed(env: Environment) -> None:
    """If every choice violates a budget, as few victims as possible violate it.

    The budget allows one disruption. The victims that violate it are reprieved first.
    """
    await env.load(small_node("node-1", cpu="4"), budget("one", 1, {"app": "db"}))
    for n, priority in enumerate((1, 5, 10, 10)):
        await env.load(
            bound_pod(f"pod-{n}", "node-1", "1", priority, labels={"app": "db"}, started=n)
        )
    await env.cluster.create(pending_pod("new"))
    await env.wait_preempted("new", "node-1", 2)
    assert env.deleted() == ["pod-0", "pod-2"]
    [call] = env.relay.preempt_calls("new")
    answered = call.answered["NodeNameToMetaVictims"]["node-1"]
    assert answered["NumPDBViolations"] == 1


async def a_nominated_node_is_kept(env: Environment) -> None:
    """Pods of equal or lower priority do not use the resources that a nominated pod needs."""
    await env.load(small_node("node-1"), small_node("node-2"))
    await env.load(
        bound_pod("cheap", "node-1", priority=1), bound_pod("dear", "node-2", priority=5)
    )
    await env.cluster.create(pending_pod("first", priority=100))
    assert await env.wait_nominated("first") == {"first": "node-1"}
    await env.wait_for_deletions(1)
    await env.cluster.create(pending_pod("second", priority=50))
    assert await env.wait_nominated("second") == {"second": "node-2"}
    await env.wait_for_deletions(2)
    await env.remove_terminating()
    assert await env.wait_bound("first", "second") == {"first": "node-1", "second": "node-2"}
    assert env.deleted() == ["cheap", "dear"]


async def a_nomination_is_withdrawn(env: Environment) -> None:
    """A pod of higher priority is bound instead, and the nominated pod is scheduled again.

    Release 1.30 deletes a terminating pod once more.
    """
    await env.load(small_node("node-1"), bound_pod("cheap", "node-1", priority=1))
    await env.cluster.create(pending_pod("first", priority=50))
    await env.wait_nominated("first")
    await env.wait_for_deletions(1)
    await env.cluster.create(pending_pod("second", priority=100))
    await env.wait_unschedulable("second")
    await env.remove_terminating()
    assert await env.wait_bound("second") == {"second": "node-1"}
    assert env.node_of("first") == ""
    assert set(env.deleted()) == {"cheap"}


async def two_at_once(env: Environment) -> None:
    """Each gets its own node, and no pod is preempted needlessly."""
    await env.load(*(small_node(f"node-{n}") for n in range(4)))
    await env.load(*(bound_pod(f"pod-{n}", f"node-{n}", priority=n) for n in range(4)))
    await env.load(*map(admitted, (pending_pod("new-0"), pending_pod("new-1"))))
    nominated = await env.wait_nominated("new-0", "new-1")
    assert sorted(nominated.values()) == ["node-0", "node-1"]
    await env.wait_for_deletions(2)
    await env.remove_terminating()
    assert await env.wait_bound("new-0", "new-1") == nominated
    assert env.deleted() == ["pod-0", "pod-1"]


async def five_thousand_pods(env: Environment) -> None:
    """All are bound to nodes with free resources; then the cheapest are preempted."""
    await env.load(*(small_node(f"node-{n}", cpu=str(RESIDENTS + LATER)) for n in range(NODES)))
    numbers = (f"{n}-{i}" for n in range(NODES) for i in range(RESIDENTS))
    await env.load(*(bound_pod(f"old-{n}", f"node-{n.split('-')[0]}", "1", 10) for n in numbers))
    names = [f"later-{n}" for n in range(NODES * LATER)]
    await env.load(*(admitted(pending_pod(name, "1", 5)) for name in names))
    places: dict[str, str] = {}
    for first in range(0, len(names), AT_A_TIME):
        places |= await env.wait_bound(*names[first : first + AT_A_TIME])
    assert set(Counter(places.values()).values()) == {LATER}
    urgent = [f"urgent-{n}" for n in range(URGENT)]
    await env.load(*(admitted(pending_pod(name, str(LATER), 100)) for name in urgent))
    await env.wait_nominated(*urgent)
    terminating = await env.wait_for_deletions(URGENT * LATER)
    await env.remove_terminating()
    bound = await env.wait_bound(*urgent)
    assert Counter(places[name] for name in terminating) == dict.fromkeys(bound.values(), LATER)
    assert len(set(bound.values())) == URGENT
    assert set(env.deleted()) == set(terminating)


SCENARIOS: Final = [
    SchedulingScenario(five_thousand_pods, Setting(ONE_NODE, serving={"search": "cluster"})),
    *(
        SchedulingScenario(play)
        for play in (
            *(a_pod_that_fits, the_least_important_pod_is_preempted, a_budget_protects_a_pod),
            *(a_budget_is_violated_if_needed, a_nominated_node_is_kept, a_nomination_is_withdrawn),
            two_at_once,
        )
    ),
]
