"""Two full nodes, and an important pod that preempts on one of them."""

from __future__ import annotations

from typing import Any

from fakeapi.controlplane.scheduler.configuration import ExtenderFunction
from tests.fakeapi.controlplane.scheduler.conftest import SetScheduler
from tests.fakeapi.controlplane.scheduler.stages import (
    Document,
    SchedulerStage,
    X,
    configured,
    node,
    pod,
)

OLD, NEW = "1.30", "1.38"
NO_FIT = "0/2 nodes are available: 2 Insufficient cpu."


def vip(name: str = "vip", cpu: str = "2", priority: int = 100, **more: Any) -> Document:
    """Build an important pod as the API server has it."""
    return pod(name, cpu, priority=priority, **more)


FULL = (
    node("a"),
    node("b"),
    pod("a1", on="a", priority=1, started=1),
    pod("a2", on="a", priority=2, started=1),
    pod("b1", "2", on="b", priority=5, started=1),
)
"""Two full nodes; b has one pod, which is more important than both of a's."""


async def preempted(
    schedule: SetScheduler,
    extend: ExtenderFunction | None = None,
    *more: Document,
    upstream: str = NEW,
    seconds: float = 0.5,
    **entry: Any,
) -> SchedulerStage:
    """Open a stage with two full nodes and the pending pod vip."""
    return await schedule(
        *(*FULL, *more, vip()),
        extenders={X: extend} if extend else {},
        scheduler=configured(*([entry] if extend else [])),
        upstream=upstream,
        seconds=seconds,
    )
