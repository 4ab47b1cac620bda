"""The time limit of a decision: a callback that the decision evaluates between its steps.

A step is the work on one node, on one term or constraint of the pod, or on some hundred pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

HasTimeLeft: TypeAlias = Callable[[], bool]
"""Returns whether there is time left for one more step."""


PODS_PER_STEP = 256
"""How many pods, or classes of pods, are compared with a selector in one step."""


class DeadlineExceededError(Exception):
    """The time limit ended a decision before it had a result."""


def no_deadline() -> bool:
    """Return true: there is no time limit."""
    return True


def in_time(items: Iterable[T], has_time_left: HasTimeLeft, per_step: int = 1) -> Iterator[T]:
    """Yield the items, ``per_step`` in each step.

    Raise DeadlineExceededError if ``has_time_left`` returns false before a step.
    """
    for number, item in enumerate(items):
        if number % per_step == 0 and not has_time_left():
            raise DeadlineExceededError
        yield item
