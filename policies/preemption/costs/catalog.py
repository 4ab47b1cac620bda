"""The costs that a policy can name, and the criteria over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from policies.kubernetes.criteria import Criterion
from policies.kubernetes.integers import parse_integer
from policies.kubernetes.policy_objects import RESOURCE_QUOTA
from policies.kubernetes.snapshot import Pod
from policies.preemption.costs.candidate_criteria import (
    CandidateCriterion,
    CostCriterion,
    GroupCriterion,
    GroupValue,
    GroupValueCriterion,
)
from policies.preemption.costs.groupings import GANGS, NAMESPACES, OWNERS
from policies.preemption.costs.pod_cost import (
    NO_COST,
    SECOND_NS,
    Cost,
    EvaluationError,
    PodCost,
    Unreadable,
    bounded_cost,
)
from policies.preemption.costs.quota_usage import lowest_usage_last

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
MILLI: Final = 1000
_MOST_QUOTED: Final = 40

LOST_WORK_UNIT: Final = "thousandths of a weighted unit times seconds"
RUN_TIME_UNIT: Final = "seconds"
RESTARTS_UNIT: Final = "restarts below zero"
HIGHEST_QUOTA_USAGE: Final = "highest quota usage"
LEAST_LOST_WORK: Final = "least lost work"

ParseTime = Callable[[str], int | None]
"""Return nanoseconds since the epoch of an RFC 3339 time, or None for other texts."""


def run_time() -> PodCost:
    """Return the seconds for which a pod has run; it has none before the kubelet started it."""
    return PodCost("run time", RUN_TIME_UNIT, lambda pod: _since_start(pod, rate=1))


def lost_work(
    weights: Mapping[str, int], checkpoint: str | None = None, parse_time: ParseTime | None = None
) -> PodCost:
    """Return the work that is lost with a pod: weighted resources times seconds.

    ``weights`` are thousandths by resource, per core, GiB, or unit of an extended resource. Time
    counts from the start of the pod, or from the time in the annotation ``checkpoint`` if that is
    later.
    """

    def of(pod: Pod) -> Cost | Unreadable:
        cost = _since_start(pod, rate=weighted_resources(pod, weights))
        written = pod.annotations.get(checkpoint or "")
        if written is None or parse_time is None:
            return cost
        saved_ns = parse_time(written)
        if saved_ns is None:
            return Unreadable(f"annotation {checkpoint}: {_quoted(written)} is no RFC 3339 time")
        return Cost(cost.fixed, cost.rate, max(cost.since_seconds, saved_ns // SECOND_NS))

    keys = frozenset([checkpoint] if checkpoint else ())
    return PodCost("lost work", LOST_WORK_UNIT, of, keys, may_be_unknown=bool(keys))


@cache
def restarts() -> PodCost:
    """Return the restarts of a pod below zero: a pod that restarts often is cheap."""
    return PodCost("restarts", RESTARTS_UNIT, lambda pod: bounded_cost(-pod.restarts))


@cache
def deletion_cost() -> PodCost:
    """Return the deletion cost that the pod's annotation states, 0 without one.

    Source: getDeletionCostFromPodAnnotations in pkg/controller/controller_utils.go, which counts
    other texts as 0.
    """

    def of(pod: Pod) -> Cost | Unreadable:
        written = pod.annotations.get(DELETION_COST)
        if written is None:
            return NO_COST
        amount = parse_integer(written)
        if amount is None:
            return Unreadable(f"annotation {DELETION_COST}: {_quoted(written)} is no integer")
        return bounded_cost(amount)

    keys = frozenset([DELETION_COST])
    return PodCost("deletion cost", "deletion cost", of, keys, may_be_unknown=True)


def expression_cost(
    name: str, evaluate: Callable[[Pod], int], annotations: frozenset[str]
) -> PodCost:
    """Return the cost that ``evaluate`` computes, clamped as all costs are.

    The cost of a pod for which ``evaluate`` raises EvaluationError is unknown. ``annotations`` are
    the keys that it reads.
    """

    def of(pod: Pod) -> Cost | Unreadable:
        try:
            return bounded_cost(evaluate(pod))
        except EvaluationError as error:
            return Unreadable(str(error))

    unit = "as the expression defines it"
    return PodCost(name, unit, of, annotations, may_be_unknown=True)


FREE: Final = PodCost("cost", "none", lambda _: NO_COST)
"""The cost of a policy that defines none."""


def cost_criteria(lost: PodCost, own: PodCost = FREE) -> Mapping[str, CandidateCriterion]:
    """Return the criteria of a policy by name.

    ``lost`` is lost work by its weights, ``own`` the cost that the policy defines.
    """
    criteria = (
        CostCriterion("lowest cost", own),
        CostCriterion(LEAST_LOST_WORK, lost),
        CostCriterion("least lost work of gangs", lost, GANGS),
        CostCriterion("least run time", run_time()),
        CostCriterion("most restarts", restarts()),
        CostCriterion("lowest deletion cost", deletion_cost()),
        GroupCriterion("fewest owners", OWNERS),
        GroupCriterion("fewest gangs", GANGS),
        GroupCriterion("fewest namespaces", NAMESPACES),
        GroupValueCriterion("fewest victims of other namespaces", NAMESPACES, _others, sum),
        GroupValueCriterion("fewest victims of the same namespace", NAMESPACES, _same, sum),
        GroupValueCriterion(
            HIGHEST_QUOTA_USAGE, NAMESPACES, lowest_usage_last, max, RESOURCE_QUOTA
        ),
    )
    return {each.name: each for each in criteria}


@dataclass(frozen=True, slots=True)
class PodCostCriterion(Criterion[Pod]):
    """A criterion of the order of pods, by a cost that does not depend on time."""

    cost: PodCost


def pod_cost_criteria(own: PodCost = FREE) -> Mapping[str, PodCostCriterion]:
    """Return the criteria of the order in which pods are reprieved, by name: the dearest first.

    ``own`` is the cost that the policy defines.
    """
    criteria = (
        _dearest_first("highest cost", own),
        _dearest_first("highest deletion cost", deletion_cost()),
        _dearest_first("fewest restarts", restarts()),
    )
    return {each.name: each for each in criteria}


def _dearest_first(name: str, cost: PodCost) -> PodCostCriterion:
    return PodCostCriterion(name, lambda pod: -cost.at(pod, 0), cost)


def cheapest_criteria(
    lost: PodCost, own: PodCost = FREE
) -> Mapping[str, CostCriterion | GroupCriterion]:
    """Return the criteria by which the cheapest victims can be found, by name.

    More victims never cost less: an own cost below 0 counts as 0.
    """
    known = cost_criteria(lost, at_least_zero(own)).values()
    negative = ("most restarts", "lowest deletion cost")
    criteria = (
        CostCriterion("fewest victims", PodCost("victims", "victims", lambda _: Cost(1))),
        *(
            each
            for each in known
            if isinstance(each, CostCriterion | GroupCriterion) and each.name not in negative
        ),
    )
    return {each.name: each for each in criteria}


def at_least_zero(cost: PodCost) -> PodCost:
    """Return a cost that counts amounts below 0 as 0."""

    def of(pod: Pod) -> Cost | Unreadable:
        found = cost.of(pod)
        return found if isinstance(found, Unreadable) else replace(found, fixed=max(0, found.fixed))

    return replace(cost, of=of)


def cost_of_some(
    cost: PodCost, selects: Callable[[Pod], bool], annotations: frozenset[str]
) -> PodCost:
    """Return a cost that other pods do not have; ``annotations`` are what ``selects`` reads."""
    return replace(
        cost,
        name=f"{cost.name} of selected pods",
        of=lambda pod: cost.of(pod) if selects(pod) else NO_COST,
        annotations=cost.annotations | annotations,
    )


def _others(preemptor: Pod, *_: object) -> GroupValue:
    return lambda namespace: int(namespace != preemptor.namespace)


def _same(preemptor: Pod, *_: object) -> GroupValue:
    return lambda namespace: int(namespace == preemptor.namespace)


def weighted_resources(pod: Pod, weights: Mapping[str, int]) -> int:
    """Return the requests of a pod in thousandths of a weighted unit."""
    requests = pod.requests
    amounts = {
        "cpu": requests.milli_cpu,
        "memory": requests.memory * MILLI // 2**30,
        "ephemeral-storage": requests.ephemeral_storage * MILLI // 2**30,
    }
    return sum(
        amounts.get(name, requests.scalars.get(name, 0) * MILLI) * weight // MILLI
        for name, weight in weights.items()
    )


def _quoted(written: str) -> str:
    """Quote the beginning of an annotation, which may be long."""
    return repr(written if len(written) <= _MOST_QUOTED else f"{written[:_MOST_QUOTED]}…")


def _since_start(pod: Pod, rate: int) -> Cost:
    return NO_COST if pod.started_ns is None else bounded_cost(rate=rate, since_ns=pod.started_ns)


COST_CRITERIA: Final = tuple(cost_criteria(lost_work({})))
"""The names of the criteria over costs and groups."""
POD_COST_CRITERIA: Final = tuple(pod_cost_criteria())
"""The names of the criteria of the order of pods over costs."""
CHEAPEST_CRITERIA: Final = tuple(cheapest_criteria(lost_work({})))
"""The names of the criteria by which the cheapest victims can be found."""
