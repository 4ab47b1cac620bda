"""The guards of a policy rule, built from its fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import floor
from typing import Final

from msgspec import UNSET

from extender.config.policy_file import (
    Guards,
    LostWorkAmount,
    MaxLostWork,
    PodSelectorFields,
    WindowLimit,
    given,
    thousandths,
)
from extender.config.policy_plugins import plugin_guards
from extender.config.policy_validation import requirements_of
from policies.kubernetes.duration import parse_duration
from policies.kubernetes.selectors import LabelSelector, Requirement
from policies.kubernetes.snapshot import Pod
from policies.preemption.costs.catalog import expression_cost
from policies.preemption.costs.groupings import (
    CLUSTER,
    NAMESPACES,
    OWNERS,
    PRIORITY_CLASSES,
    Grouping,
)
from policies.preemption.costs.pod_cost import EvaluationError, PodCost
from policies.preemption.guards.allowance import (
    AllowanceGuard,
    loop_breaker,
    min_available,
    victim_cooldown,
    window_limit,
)
from policies.preemption.guards.attempt_guard import (
    AttemptGuard,
    preemption_delay,
    preemptor_cooldown,
    wait_for_autoscaler,
)
from policies.preemption.guards.pod_selector import ALL_LABELS, PodSelector
from policies.preemption.guards.victim_guard import (
    VictimGuard,
    min_runtime,
    protected_by_expression,
)

EXPRESSION_COST: Final = "cost"
_SECONDS: Final = {"hours": 3600, "minutes": 60, "seconds": 1}
_GROUPINGS: Final[Mapping[str, Grouping]] = {
    "cluster": CLUSTER,
    "namespace": NAMESPACES,
    "owner": OWNERS,
    "priorityClass": PRIORITY_CLASSES,
}


@dataclass(frozen=True, slots=True)
class CompiledSelector:
    """Selects the pods that all fields of a selector match.

    ``matches`` raises EvaluationError if the selector has an expression without a value for a pod.
    ``annotations`` are the keys that it reads.
    """

    matches: Callable[[Pod], bool]
    annotations: frozenset[str] = frozenset()

    def surely_matches(self, pod: Pod) -> bool:
        """Return whether a pod is selected; one without a value is not."""
        try:
            return self.matches(pod)
        except EvaluationError:
            return False

    def may_match(self, pod: Pod) -> bool:
        """Return whether a pod is selected; one without a value is."""
        try:
            return self.matches(pod)
        except EvaluationError:
            return True


def compile_selector(fields: PodSelectorFields) -> CompiledSelector:
    """Return the selector of valid fields."""
    selector = PodSelector(
        frozenset(given(fields.namespaces, ())),
        _label_selector(fields),
        frozenset(given(fields.priority_classes, ())),
        frozenset(given(fields.owners, ())),
    )
    if fields.expression is UNSET:
        return CompiledSelector(selector.matches)
    from extender.cel.pod_expression import compile_pod_expression  # imported on use: start-up time

    expression = compile_pod_expression(fields.expression, bool)
    return CompiledSelector(
        lambda pod: selector.matches(pod) and expression.evaluate(pod), expression.annotations
    )


def compile_cost(source: str) -> PodCost:
    """Return the cost that a valid expression defines."""
    from extender.cel.pod_expression import compile_pod_expression  # imported on use: start-up time

    expression = compile_pod_expression(source, int)
    return expression_cost(EXPRESSION_COST, expression.evaluate, expression.annotations)


def victim_guards(guards: Guards) -> Iterator[VictimGuard]:
    """Yield the guards that protect pods; one whose expression has no value is protected."""
    for each in guards.protect:
        pods = compile_selector(each)
        yield protected_by_expression(each.name, pods.matches, pods.annotations)
    for young in guards.min_runtime:
        pods, least_ns = compile_selector(young), parse_duration(young.duration)
        guard = min_runtime("minRuntime", pods.may_match, least_ns)
        yield replace(guard, annotations=pods.annotations)
    yield from plugin_guards(guards.plugins)


def attempt_guards(guards: Guards) -> Iterator[AttemptGuard]:
    """Yield the guards that refuse attempts."""
    if delay_ns := parse_duration(guards.preemption_delay):
        yield preemption_delay(delay_ns)
    if wait_ns := parse_duration(guards.wait_for_autoscaler):
        yield wait_for_autoscaler(wait_ns)
    if window_ns := parse_duration(guards.cooldown.preemptors):
        yield preemptor_cooldown(window_ns)


def allowance_guards(guards: Guards, lost_work: PodCost) -> Iterator[AllowanceGuard]:
    """Yield the guards that limit the victims of groups, or their lost work."""
    if window_ns := parse_duration(guards.cooldown.victims):
        yield victim_cooldown(window_ns)
    if window_ns := parse_duration(guards.loop_breaker):
        yield loop_breaker(window_ns)
    for limit in guards.limits:
        yield from _window_limits(limit, lost_work)
    for kept in guards.min_available:
        pods = compile_selector(kept)
        guard = min_available(f"minAvailable of {kept.replicas}", pods.may_match, kept.replicas)
        yield replace(guard, annotations=pods.annotations)


def _window_limits(limit: WindowLimit, lost_work: PodCost) -> Iterator[AllowanceGuard]:
    grouping, window_ns = _GROUPINGS[limit.by], parse_duration(limit.per)
    if limit.victims is not UNSET:
        name = f"limit of {limit.victims} per {limit.per} and {limit.by}"
        yield window_limit(name, grouping, limit.victims, window_ns)
    if limit.lost_work is not UNSET:
        amount = f"{limit.lost_work.amount:g} {limit.lost_work.per} of lost work"
        name = f"limit of {amount} per {limit.per} and {limit.by}"
        most = most_lost_work(limit.lost_work)
        yield window_limit(name, grouping, most, window_ns, lost_work)


def most_lost_work(fields: LostWorkAmount | MaxLostWork) -> int:
    """Return a limit in thousandths of a weighted unit times seconds."""
    return floor(thousandths(fields.amount) * _SECONDS[fields.per])


def _label_selector(fields: PodSelectorFields) -> LabelSelector:
    if fields.labels is UNSET:
        return ALL_LABELS
    found = (each for _, each in requirements_of(fields.labels))
    return LabelSelector(tuple(each for each in found if isinstance(each, Requirement)))
