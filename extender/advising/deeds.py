"""The actions that relieve nodes, and their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from policies.eviction.durations import spell_duration
from policies.eviction.forestalling import Relief, Step, steps_of

_SECOND: Final = 10**9


class Outcome(Enum):
    """The result of an action."""

    PLANNED = "planned"
    DONE = "done"
    BLOCKED = "blocked"
    GONE = "gone"
    FAILED = "failed"
    REFRAINED = "refrained"


@dataclass(frozen=True, slots=True)
class Deed:
    """A step of a relief, and its result."""

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
    """Return the reason of a relief."""
    forecast = relief.because
    left = forecast.met_in_ns or 0
    when = f"in {spell_duration(left // _SECOND * _SECOND)}" if left >= _SECOND else "now"
    return f"{forecast.threshold} {when}"


def rehearse(reliefs: Sequence[Relief]) -> list[Deed]:
    """Return the actions that would be taken."""
    planned = [Deed(step, Outcome.PLANNED) for step in steps_of(reliefs)]
    return [*planned, *refrained(reliefs)]


def refrained(reliefs: Sequence[Relief]) -> list[Deed]:
    """Return the nodes that are left alone, as actions."""
    why = "as many nodes are cordoned as --max-nodes allows"
    return [Deed(Step(each), Outcome.REFRAINED, why) for each in reliefs if each.refrained]
