"""A decision in steps, between which the event loop runs.

A decision is made by plain functions, which cannot await. So they run in a greenlet, which is
suspended where they ask whether there is time left. What they read must not change meanwhile (see
:attr:`extender.cluster.scheduler_cache.SchedulerCache.is_locked`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from typing import Final, TypeVar

from greenlet import getcurrent, greenlet

from extender.kube.rest.clock import Clock
from extender.protocol.request_size import Steps
from policies.preemption.time_limit import HasTimeLeft

T = TypeVar("T")

STEP_SECONDS: Final = 0.02
"""How long a step lasts, if the decision asks often enough; most decisions have a single step."""


def decide_in_steps(decide: Callable[[HasTimeLeft], T], deadline: float, clock: Clock) -> Steps[T]:
    """Return what ``decide`` returns, and raise what it raises.

    ``deadline`` is in monotonic seconds. If the steps are closed, ``decide`` ends.
    """
    event_loop = getcurrent()
    step_ends = clock.monotonic() + STEP_SECONDS

    def has_time_left() -> bool:
        nonlocal step_ends
        now = clock.monotonic()
        if now > step_ends:
            event_loop.switch()
            now = clock.monotonic()
            step_ends = now + STEP_SECONDS
        return now <= deadline

    decision = greenlet(decide)
    try:
        result: T = decision.switch(has_time_left)
        while not decision.dead:
            yield
            result = decision.switch()
    finally:
        if not decision.dead:
            decision.throw()
    return result


async def run_in_steps(steps: Steps[T]) -> T:
    """Return the result of all steps; let the event loop run in between."""
    with closing(steps):
        while True:
            try:
                next(steps)
            except StopIteration as end:
                result: T = end.value
                return result
            await asyncio.sleep(0)
