"""What is done for nodes that run short, and what became of it, as values and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from policies.eviction.durations import spell_duration
from policies.eviction.forestalling import Relief, Step, steps_of

_SECOND: Final = 10**9


class Outcome(Enum):
    """What became of a step."""

    PLANNED = "planned"
    DONE = "done"
    BLOCKED = "blocked"
    GONE = "gone"
    FAILED = "failed"
    REFRAINED = "refrained"


@dataclass(frozen=True, slots=True)
class Deed:
    """A step, and what became of it."""

    step: Step
    outcome: Outcome
    message: str = ""

    def __str__(self) -> str:
        step, pod = self.step, self.step.pod
        what = f"cordon {step.relief.node}" if pod is None else f"evict {pod.key}"
        where = "" if pod is None else f" from {step.relief.node}"
        said = f": {self.message}" if self.message else ""
        return f"{_VERBS[self.outcome].format(what)}{where} ({because(step.relief)}){said}"


_VERBS: Final[Mapping[Outcome, str]] = {
    Outcome.PLANNED: "would {}",
    Outcome.DONE: "did {}",
    Outcome.BLOCKED: "may not yet {}",
    Outcome.GONE: "need not {}",
    Outcome.FAILED: "could not {}",
    Outcome.REFRAINED: "did not {}",
}


def because(relief: Relief) -> str:
    """Say what a node is relieved for."""
    forecast = relief.because
    left = forecast.met_in_ns or 0
    when = f"in {spell_duration(left // _SECOND * _SECOND)}" if left >= _SECOND else "now"
    return f"{forecast.threshold} {when}"


def rehearse(reliefs: Sequence[Relief]) -> list[Deed]:
    """Return what would be done."""
    planned = [Deed(step, Outcome.PLANNED) for step in steps_of(reliefs)]
    return [*planned, *refrained(reliefs)]


def refrained(reliefs: Sequence[Relief]) -> list[Deed]:
    """Return the nodes that are left alone."""
    why = "as many nodes are cordoned as --max-nodes allows"
    return [Deed(Step(each), Outcome.REFRAINED, why) for each in reliefs if each.refrained]
