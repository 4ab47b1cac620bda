"""The status of a PodDisruptionBudget: how many pods may be evicted now.

    of the pods that the selector matches
      currentHealthy      ready, not being deleted, and not in disruptedPods
      expectedPods        the sum of their controllers' scales (minAvailable, a number: their count)
      desiredHealthy      minAvailable, or expectedPods - maxUnavailable; percentages round up
      disruptionsAllowed  currentHealthy - desiredHealthy, at least 0; 0 if no pods are expected

    5 pods of one ReplicaSet, one not ready, maxUnavailable 40 %: 5 expected, 3 desired, 4 healthy,
    so that 1 may be evicted.

A pod in disruptedPods that still exists after two minutes counts again.

Source: kubernetes/pkg/controller/disruption/disruption.go; pkg/apis/policy/v1 helpers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from msgspec import Struct, field

from extender.kube.controller_runtime.event_recorder import ObjectReference
from extender.kube.decoders.core_v1_types import LabelSelectorV1
from extender.kube.decoders.object_meta import NS_PER_SECOND, ObjectMeta, parse_time
from fakeapi.controlplane.controllers.types import (
    IntOrPercent,
    Pod,
    decode_tolerantly,
    parse_percentage,
)
from policies.kubernetes.selectors import (
    LabelSelector,
    SelectorError,
    equals_all,
    label_requirement,
)

DELETION_TIMEOUT_SECONDS: Final = 120


class BudgetError(ValueError):
    """The status of a budget cannot be calculated; the text is the message of its condition."""


class BudgetSpec(Struct, rename="camel"):
    """policy/v1.PodDisruptionBudgetSpec."""

    selector: LabelSelectorV1 | None = None
    min_available: IntOrPercent | None = None
    max_unavailable: IntOrPercent | None = None


class BudgetStatus(Struct, rename="camel", omit_defaults=False):
    """policy/v1.PodDisruptionBudgetStatus."""

    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    disruptions_allowed: int = 0
    observed_generation: int = 0
    disrupted_pods: dict[str, str] | None = None
    conditions: list[dict[str, Any]] | None = None


class Budget(Struct):
    """policy/v1.PodDisruptionBudget."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: BudgetSpec = field(default_factory=BudgetSpec)
    status: BudgetStatus = field(default_factory=BudgetStatus)

    def selector(self) -> LabelSelector | None:
        """Return the label selector; None selects nothing. Raises BudgetError."""
        source = self.spec.selector
        if source is None:
            return None
        try:
            expressions = [
                label_requirement(each.key, each.operator, each.values or ())
                for each in source.matchExpressions or ()
            ]
            return LabelSelector((*equals_all(source.matchLabels or {}), *expressions))
        except SelectorError as error:
            raise BudgetError(str(error)) from None

    @property
    def needs_scale(self) -> bool:
        """Whether the status depends on the scale of the pods' controllers."""
        return self.spec.max_unavailable is not None or isinstance(self.spec.min_available, str)

    @property
    def reference(self) -> ObjectReference:
        """The object reference of Events about it."""
        meta = self.metadata
        kind = "PodDisruptionBudget"
        return ObjectReference("policy/v1", kind, meta.namespace, meta.name, meta.uid)


decode_budget = decode_tolerantly(Budget)


@dataclass(frozen=True, slots=True)
class DisruptedPods:
    """The pods that remain in disruptedPods, those overdue, and when to sync again."""

    pods: Mapping[str, str]
    overdue: Sequence[Pod] = ()
    resync_after: float | None = None


def remaining_disrupted_pods(budget: Budget, pods: Iterable[Pod], now_ns: int) -> DisruptedPods:
    """Return which pods remain in ``status.disruptedPods``, and when to sync again.

    ``resync_after`` is in seconds.
    """
    noted = budget.status.disrupted_pods or {}
    kept: dict[str, str] = {}
    overdue = []
    ends = []
    for pod in pods:
        since = noted.get(pod.metadata.name)
        if pod.metadata.deleting or since is None:
            continue
        end = parse_time(since) + DELETION_TIMEOUT_SECONDS * NS_PER_SECOND
        if end < now_ns:
            overdue.append(pod)
        else:
            kept[pod.metadata.name] = since
            ends.append(end)
    again_in = (min(ends) - now_ns) / NS_PER_SECOND + 0.001 if ends else None
    return DisruptedPods(kept, overdue, again_in)


def count_healthy(pods: Iterable[Pod], disrupted: Mapping[str, str], now_ns: int) -> int:
    """Count the pods that are ready, not being deleted, and not expected to be evicted."""
    timeout = DELETION_TIMEOUT_SECONDS * NS_PER_SECOND
    return sum(
        pod.ready
        and not pod.metadata.deleting
        and not (
            pod.metadata.name in disrupted
            and parse_time(disrupted[pod.metadata.name]) + timeout > now_ns
        )
        for pod in pods
    )


def expected_and_desired(spec: BudgetSpec, matching: int, scale: int) -> tuple[int, int]:
    """Return the expected and the desired number of pods.

    ``matching`` pods are selected, ``scale`` is the sum of their controllers' scales. Raises
    BudgetError.
    """
    if spec.max_unavailable is not None:
        return scale, max(0, scale - _scaled_value(spec.max_unavailable, scale))
    if isinstance(spec.min_available, str):
        return scale, _scaled_value(spec.min_available, scale)
    if spec.min_available is not None:
        return matching, spec.min_available
    return 0, 0


def new_status(
    budget: Budget,
    expected: int,
    desired_healthy: int,
    healthy: int,
    disrupted: Mapping[str, str],
    now: str,
) -> BudgetStatus | None:
    """Return the status to write; None if it is unchanged."""
    allowed = healthy - desired_healthy if expected > 0 and healthy > desired_healthy else 0
    old, generation = budget.status, budget.metadata.generation
    status = BudgetStatus(
        healthy,
        desired_healthy,
        expected,
        allowed,
        generation,
        dict(disrupted) or None,
        old.conditions,
    )
    same = _compared_fields(status) == _compared_fields(old)
    if same and _is_up_to_date(old):
        return None
    reason, truth = ("SufficientPods", "True") if allowed else ("InsufficientPods", "False")
    status.conditions = _with_condition(old.conditions, truth, reason, "", generation, now)
    return status


def failed_status(budget: Budget, reason: str, now: str) -> BudgetStatus:
    """Return the status of a budget that cannot be calculated: no disruption is allowed."""
    old = budget.status
    noted = (old.disrupted_pods, old.conditions)
    status = BudgetStatus(
        old.current_healthy, old.desired_healthy, old.expected_pods, 0, old.observed_generation
    )
    status.disrupted_pods = noted[0]
    generation = old.observed_generation
    status.conditions = _with_condition(noted[1], "False", "SyncFailed", reason, generation, now)
    return status


def status_patch(budget: Budget, status: BudgetStatus) -> dict[str, Any]:
    """Return a status as a merge patch of the budget as it was read."""
    deleted = dict.fromkeys(budget.status.disrupted_pods or ())
    return {
        "metadata": {"resourceVersion": budget.metadata.resource_version},
        "status": {
            "currentHealthy": status.current_healthy,
            "desiredHealthy": status.desired_healthy,
            "expectedPods": status.expected_pods,
            "disruptionsAllowed": status.disruptions_allowed,
            "observedGeneration": status.observed_generation,
            "disruptedPods": {**deleted, **status.disrupted_pods}
            if status.disrupted_pods
            else None,
            "conditions": status.conditions,
        },
    }


def _compared_fields(status: BudgetStatus) -> tuple[object, ...]:
    counts = (status.current_healthy, status.desired_healthy, status.expected_pods)
    return (
        *counts,
        status.disruptions_allowed,
        status.disrupted_pods or {},
        status.observed_generation,
    )


def _is_up_to_date(status: BudgetStatus) -> bool:
    truth = "True" if status.disruptions_allowed > 0 else "False"
    return any(
        each.get("type") == "DisruptionAllowed"
        and each.get("status") == truth
        and each.get("observedGeneration", 0) == status.observed_generation
        for each in status.conditions or ()
    )


def _with_condition(
    conditions: Sequence[Mapping[str, Any]] | None,
    truth: str,
    reason: str,
    message: str,
    generation: int,
    now: str,
) -> list[dict[str, Any]]:
    after = [dict(each) for each in conditions or ()]
    old = next((each for each in after if each.get("type") == "DisruptionAllowed"), None)
    condition = {
        "type": "DisruptionAllowed",
        "status": truth,
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
    }
    if old is None:
        return [*after, {**condition, "lastTransitionTime": now}]
    if old.get("status") != truth:
        old["lastTransitionTime"] = now
    old.update(condition)
    return after


def _scaled_value(value: IntOrPercent, total: int) -> int:
    """Return a number, or that percentage of ``total``, rounded up."""
    if isinstance(value, int):
        return value
    percentage = parse_percentage(value)
    if percentage is None:
        reason = "invalid type: string is not a percentage"
        raise BudgetError(f"invalid value for IntOrString: {reason}")
    return -(-percentage * total // 100)
