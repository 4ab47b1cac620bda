"""One question to an engine about a cluster that changes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count
from typing import Final

from msgspec.structs import replace

from policies.kubernetes.snapshot import Pod
from policies.preemption.decision import PreemptionDecision
from policies.preemption.engine import Engine
from tests.bench.decisions.events import ChangingCluster

WARM_UP: Final = 2


def kinds_of(pod: Pod) -> Iterator[Pod]:
    """Yield a pod with ever higher priorities: nothing is known of each from the one before."""
    return (replace(pod, priority=priority) for priority in count(pod.priority))


def decide_once(engine: Engine, pod: Pod, moving: ChangingCluster) -> float:
    """Change one pod, and return the seconds of the decision that follows."""
    event = moving.step()
    engine.follow(moving.snapshot, [event.node])
    begun = time.perf_counter()
    _use(engine.preempt(pod, moving.snapshot))
    return time.perf_counter() - begun


def _use(decision: PreemptionDecision) -> None:
    """Read what the extender reads of a decision, and check that there is one."""
    read = (len(decision.candidates), len(decision.rejected), decision.message)
    if decision.chosen is None or decision.decided_by is None:
        raise RuntimeError(f"the benchmark's decision is none: {read}")
