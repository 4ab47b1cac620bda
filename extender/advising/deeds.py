"""The actions that relieve nodes, and their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from policies.eviction.durations import format_duration
from policies.eviction.forestalling import Relief, ReliefStep, relief_steps

_SECOND: Final = 10**9


class ActionResult(Enum):
    """The result of an action."""

    PLANNED = "planned"
    DONE = "done"
    BLOCKED = "blocked"
    GONE = "gone"
    FAILED = "failed"
    REFRAINED = "refrained"


@dataclass(frozen=True, slots=True)
class Action:
    """A step of a relief, and its result."""

    step: ReliefStep
    result: ActionResult
    message: str = ""

    def __str__(self) -> str:
        step, pod = self.step, self.step.pod
        what = f"cordon {step.relief.node}" if pod is None else f"evict {pod.key}"
        where = "" if pod is None else f" from {step.relief.node}"
        said = f": {self.message}" if self.message else ""
        return f"{_VERBS[self.result].format(what)}{where} ({relief_reason(step.relief)}){said}"


_VERBS: Final[Mapping[ActionResult, str]] = {
    ActionResult.PLANNED: "would {}",
    ActionResult.DONE: "did {}",
    ActionResult.BLOCKED: "may not yet {}",
    ActionResult.GONE: "need not {}",
    ActionResult.FAILED: "could not {}",
    ActionResult.REFRAINED: "did not {}",
}


def relief_reason(relief: Relief) -> str:
    """Return the reason of a relief."""
    forecast = relief.cause
    left = forecast.met_in_ns or 0
    when = f"in {format_duration(left // _SECOND * _SECOND)}" if left >= _SECOND else "now"
    return f"{forecast.threshold} {when}"


def planned_actions(reliefs: Sequence[Relief]) -> list[Action]:
    """Return the actions that would be taken."""
    planned = [Action(step, ActionResult.PLANNED) for step in relief_steps(reliefs)]
    return [*planned, *skipped_actions(reliefs)]


def skipped_actions(reliefs: Sequence[Relief]) -> list[Action]:
    """Return the nodes that are left alone, as actions."""
    why = "as many nodes are cordoned as --max-nodes allows"
    return [
        Action(ReliefStep(each), ActionResult.REFRAINED, why) for each in reliefs if each.skipped
    ]
