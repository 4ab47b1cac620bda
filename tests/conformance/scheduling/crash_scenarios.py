"""kube-scheduler, or the extender, killed amid many preemptions, and started again.

While an extender that is not ignorable does not answer, pods that need preemption wait for the next
flush of unschedulable pods. kube-scheduler's default is after five minutes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from tests.conformance.scheduling.environment import Environment, SchedulingScenario, Setting
from tests.conformance.scheduling.kube_scheduler import Extender
from tests.conformance.scheduling.pods import admitted, bound_pod, pending_pod, small_node

PREEMPTORS: Final = 50
NODES: Final = 60
FLUSH: Final = "--pod-max-in-unschedulable-pods-duration=5s"
SOME: Final = 10
"""The victims that are terminating when a process is killed."""


async def _preempt_amid(env: Environment, crash: Callable[[], Awaitable[None]]) -> None:
    """Load a full cluster and preemptors, and have a process crash while they preempt.

    All of them are bound in the end, and as many pods are evicted.
    """
    await env.load(*(small_node(f"node-{n}") for n in range(NODES)))
    await env.load(*(bound_pod(f"old-{n}", f"node-{n}", priority=1) for n in range(NODES)))
    names = [f"new-{n}" for n in range(PREEMPTORS)]
    await env.load(*(admitted(pending_pod(name)) for name in names))
    await env.wait_for_deletions(SOME)
    await crash()
    await env.wait_nominated(*names)
    victims = await env.wait_for_deletions(PREEMPTORS)
    await env.remove_terminating()
    bound = await env.wait_bound(*names)
    assert len(set(bound.values())) == PREEMPTORS
    assert len(victims) == PREEMPTORS
    assert set(env.deleted()) == set(victims)


async def the_scheduler_is_killed(env: Environment) -> None:
    """It asks again for pods that it had nominated, and gets the same nodes."""

    async def crash() -> None:
        await env.scheduler.kill()
        await env.scheduler.start()

    await _preempt_amid(env, crash)


async def the_extender_is_killed(env: Environment) -> None:
    """It forgets the preemptions that it had assumed, and finds them on the watch."""

    async def crash() -> None:
        await env.extender.kill()
        await env.extender.start()

    await _preempt_amid(env, crash)


SCENARIOS: Final = [
    SchedulingScenario(
        play,
        Setting(
            extender=partial(Extender, ignorable=ignorable),
            serving={"search": "cluster"},
            flags=(FLUSH,),
        ),
    )
    for play in (the_scheduler_is_killed, the_extender_is_killed)
    for ignorable in (True, False)
]
