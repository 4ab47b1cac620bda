"""Costs and guards of policies in Python, declared by other packages.

An entry point of the group ``reprieve.policies`` refers to what a decorator of this module returns.
Policies name it by the name of the entry point::

    @victim_cost(unit="requests per second", annotations=("example.com/rate",))
    def most_idle(pod: Pod) -> int:
        return int(pod.annotations.get("example.com/rate", "0"))

The function is evaluated when a pod changes, for decisions at any later time. So it has to be pure:
it reads the pod alone, without the time, and does not change it. Of the annotations of a pod, only
those that a policy names are kept, so it has to declare those that it reads.

Policies protect a pod for which a function raises EvaluationError, fails, or returns another type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from traceback import format_exception_only
from typing import Final, ParamSpec, TypeVar

from policies.kubernetes.snapshot import Pod
from policies.preemption.costs.catalog import expression_cost
from policies.preemption.costs.pod_cost import EvaluationError, PodCost
from policies.preemption.guards.victim_guard import VictimGuard, protected_by_expression

__all__ = [
    "CostPlugin",
    "EvaluationError",
    "GuardPlugin",
    "Pod",
    "victim_cost",
    "victim_guard",
]

SAMPLE_POD: Final = Pod(namespace="default", name="sample", uid="sample")
"""A pod without labels, annotations and requests; every plugin is evaluated for it when loaded."""
_LONGEST: Final = 200
P = ParamSpec("P")
T = TypeVar("T")
Result = TypeVar("Result", int, bool)


class PluginCallError(EvaluationError):
    """The code of a plugin has failed, or has returned another type; the message is one line."""


@dataclass(frozen=True, slots=True)
class CostPlugin:
    """A cost of the eviction of a pod, in ``unit``; ``annotations`` are the keys that it reads."""

    function: Callable[[Pod], int]
    unit: str
    annotations: frozenset[str] = frozenset()

    def __call__(self, pod: Pod) -> int:
        """Call the function."""
        return self.function(pod)

    def evaluate(self, pod: Pod) -> int:
        """Return the cost of a pod. Raise EvaluationError if it has none."""
        return _evaluate(self.function, pod, int)

    def cost(self, name: str) -> PodCost:
        """Return the cost under the name of its entry point."""
        return replace(expression_cost(name, self.evaluate, self.annotations), unit=self.unit)


@dataclass(frozen=True, slots=True)
class GuardPlugin:
    """Protects the pods for which it is true; ``annotations`` are the keys that it reads."""

    function: Callable[[Pod], bool]
    annotations: frozenset[str] = frozenset()

    def __call__(self, pod: Pod) -> bool:
        """Call the function."""
        return self.function(pod)

    def evaluate(self, pod: Pod) -> bool:
        """Return whether a pod is protected. Raise EvaluationError if that is unknown."""
        return _evaluate(self.function, pod, bool)

    def guard(self, name: str) -> VictimGuard:
        """Return the guard under the name of its entry point."""
        return protected_by_expression(name, self.evaluate, self.annotations)


def victim_cost(
    *, unit: str, annotations: Iterable[str] = ()
) -> Callable[[Callable[[Pod], int]], CostPlugin]:
    """Declare a function as a cost: candidates whose victims cost least together are preferred.

    Costs are clamped to ±2**44, so that they can be summed. Raise TypeError if ``annotations`` are
    one text.
    """
    keys = _keys(annotations)
    return lambda function: CostPlugin(function, unit, keys)


def victim_guard(
    *, annotations: Iterable[str] = ()
) -> Callable[[Callable[[Pod], bool]], GuardPlugin]:
    """Declare a function as a guard: pods for which it is true are never victims.

    Raise TypeError if ``annotations`` are one text.
    """
    keys = _keys(annotations)
    return lambda function: GuardPlugin(function, keys)


def call_plugin(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what the code of a plugin returns.

    Raise the EvaluationError that it raises, and PluginCallError instead of any other exception.
    """
    try:
        return function(*args, **kwargs)
    except EvaluationError as error:
        raise EvaluationError(_one_line(str(error))) from error
    # Code of other authors may raise anything. This is the only place where it is called, and its
    # error is that of one plugin for one pod: elsewhere, it would fail every decision.
    except Exception as error:
        raise PluginCallError(_one_line("".join(format_exception_only(error)))) from error


def _keys(annotations: Iterable[str]) -> frozenset[str]:
    # Otherwise, a missing comma would declare the letters of the key.
    if isinstance(annotations, str):
        raise TypeError(f"annotations: {annotations!r} is a text; expected a tuple of keys")
    return frozenset(annotations)


def _evaluate(function: Callable[[Pod], Result], pod: Pod, result: type[Result]) -> Result:
    found = call_plugin(function, pod)
    if type(found) is not result:
        returned = f"found {type(found).__name__}"
        raise PluginCallError(f"expected a result of type {result.__name__}, {returned}")
    return found


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
