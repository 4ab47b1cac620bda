"""Policies at a real kube-scheduler: budgets that hold, turns that end, gangs that stay whole."""

from __future__ import annotations

import asyncio
from typing import Final

from tests.builders import Document
from tests.commands import ROOT
from tests.conformance.scheduling.environment import Environment, SchedulingScenario, Setting
from tests.conformance.scheduling.group_scenarios import ALL, GATES, member, pod_group
from tests.conformance.scheduling.pods import bound_pod, budget, pending_pod, small_node

NODES: Final = 50
ALLOWED: Final = 5
DATABASE: Final = {"app": "db"}
SOONER: Final = 1_500_000_000
LATER: Final = 1_700_000_000
WHOLE: Final[Document] = {"disruptionMode": ALL}


def _by(policy: str, gates: tuple[str, ...] = ()) -> Setting:
    """Return the setting of a policy of deploy/policies, behind feature gates."""
    path = ROOT / "deploy" / "policies" / f"{policy}.yaml"
    return Setting(gates=gates, serving={"search": "cluster", "policy": str(path)})


async def _many_preemptors(env: Environment) -> None:
    """Create as many preemptors as there are nodes, each of which a ready pod of a budget fills.

    Nothing updates the status of the budget, and victims do not end.
    """
    covered = budget("held", ALLOWED, DATABASE)
    covered["status"]["desiredHealthy"] = NODES - ALLOWED
    await env.load(covered, *(small_node(f"node-{n}") for n in range(NODES)))
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    await env.load(
        *(
            bound_pod(f"db-{n}", f"node-{n}", priority=1, labels=DATABASE, status=ready)
            for n in range(NODES)
        )
    )
    async with asyncio.TaskGroup() as creating:
        for n in range(NODES):
            creating.create_task(env.cluster.create(pending_pod(f"new-{n}")))


async def a_strict_budget_is_never_exceeded(env: Environment) -> None:
    """Of 50 preemptors at once as many get a node as the budget allows, and no more."""
    await _many_preemptors(env)
    names = [f"new-{n}" for n in range(NODES)]

    def is_settled() -> bool:
        waiting = [name for name in names if not env.nomination_of(name)]
        return len(waiting) == NODES - ALLOWED and all(map(env.unschedulable_message, waiting))

    await env.cluster.until(is_settled)
    assert len(await env.wait_for_deletions(ALLOWED)) == ALLOWED
    await env.cluster.create(pending_pod("last"))
    await env.wait_unschedulable("last")
    assert len(env.terminating()) == ALLOWED


async def a_budget_is_exceeded_by_default(env: Environment) -> None:
    """To kube-scheduler's own criteria, a budget is a preference."""
    await _many_preemptors(env)
    assert len(await env.wait_for_deletions(ALLOWED + 1)) > ALLOWED


def _of(team: str, pod: Document) -> Document:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": team, "uid": team, "controller": True}
    pod["metadata"]["ownerReferences"] = [owner]
    return pod


async def _take_turns(env: Environment, *turns: tuple[str, int]) -> None:
    """Create a pod of each team and priority in turn, on a node that only one fits."""
    for team, priority in turns:
        name = f"{team}-{priority}"
        await env.cluster.create(_of(team, pending_pod(name, priority=priority)))
        await env.wait_preempted(name, "only")


async def _refused(env: Environment, team: str, priority: int) -> None:
    """Create a pod that preempts no pod, and then one of another team that does."""
    before, name = env.deleted(), f"{team}-{priority}"
    await env.cluster.create(_of(team, pending_pod(name, priority=priority)))
    await env.wait_unschedulable(name)
    await env.cluster.create(_of("other", pending_pod("other", priority=1000)))
    await env.wait_preempted("other", "only")
    assert len(env.deleted()) == len(before) + 1
    assert not env.node_of(name)


async def two_teams_preempt_each_other_once(env: Environment) -> None:
    """A team is not preempted by the one that it has preempted."""
    await env.load(small_node("only"), _of("b", bound_pod("b-1", "only", priority=1)))
    await _take_turns(env, ("a", 5))
    await _refused(env, "b", 10)


async def three_teams_preempt_each_other_once(env: Environment) -> None:
    """Nor by one that a chain of preemptions leads back to."""
    await env.load(small_node("only"), _of("c", bound_pod("c-1", "only", priority=1)))
    await _take_turns(env, ("a", 5), ("b", 10))
    await _refused(env, "c", 50)


async def teams_preempt_each_other_by_default(env: Environment) -> None:
    """Without a loop breaker there is no end."""
    await env.load(small_node("only"), _of("b", bound_pod("b-1", "only", priority=1)))
    await _take_turns(env, ("a", 5), ("b", 10), ("a", 50), ("b", 100))


async def a_job_is_taken_whole_before_parts_of_two(env: Environment) -> None:
    """By default the other node would be chosen, whose pods started later."""
    await env.load(small_node("node-0"), small_node("node-1"))
    await env.load(*(_of("whole", bound_pod(f"whole-{n}", "node-0", "1", 1)) for n in range(2)))
    await env.load(
        *(_of(job, bound_pod(job, "node-1", "1", 1, started=LATER)) for job in ("one", "other"))
    )
    await env.cluster.create(pending_pod("new", "2"))
    await env.wait_preempted("new", "node-0", 2)
    assert env.deleted() == ["whole-0", "whole-1"]


async def _gang_beside(env: Environment, started: int) -> None:
    """Create a pod of one core: a gang of two is on a node, and a pod on the other, ``started``."""
    await env.load(small_node("node-0"), small_node("node-1"), pod_group("gang", 2, 5, **WHOLE))
    gang = (bound_pod(f"member-{n}", "node-0", "1", 5, started=SOONER) for n in range(2))
    await env.load(*(member(pod, "gang") for pod in gang))
    await env.load(bound_pod("dear", "node-1", "1", 1000))
    await env.load(bound_pod("single", "node-1", "1", 5, started=started))
    await env.cluster.create(pending_pod("new", "1"))


async def a_gang_is_spared_whole(env: Environment) -> None:
    """It loses more work than a pod that started later."""
    await _gang_beside(env, LATER)
    await env.wait_preempted("new", "node-1")
    assert env.deleted() == ["single"]


async def a_gang_is_taken_whole(env: Environment) -> None:
    """Both members are preempted, though one would be enough; together they lose less work."""
    await _gang_beside(env, started=1)
    await env.wait_preempted("new", "node-0", 2)
    assert env.deleted() == ["member-0", "member-1"]


SCENARIOS: Final = [
    SchedulingScenario(a_strict_budget_is_never_exceeded, _by("strict-budgets")),
    SchedulingScenario(a_budget_is_exceeded_by_default),
    SchedulingScenario(two_teams_preempt_each_other_once, _by("no-ping-pong")),
    SchedulingScenario(three_teams_preempt_each_other_once, _by("no-ping-pong")),
    SchedulingScenario(teams_preempt_each_other_by_default),
    SchedulingScenario(a_job_is_taken_whole_before_parts_of_two, _by("whole-gangs")),
    SchedulingScenario(a_gang_is_spared_whole, _by("whole-gangs", GATES)),
    SchedulingScenario(a_gang_is_taken_whole, _by("whole-gangs", GATES)),
]
