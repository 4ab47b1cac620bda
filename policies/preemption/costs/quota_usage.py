"""How much of its ResourceQuotas a namespace uses, to prefer victims of those that use most.

The usage of a resource is what the pods of a namespace on nodes request of it, without pods that
depart, by the hard limit of a quota. Pending pods do not count: they hold nothing. The usage of a
namespace is the highest one of all resources of its quotas, in thousandths; 0 without a quota. An
example, with the quotas ``requests.nvidia.com/gpu``:

========= ======== ===== =====
namespace requests quota usage
========= ======== ===== =====
team-a    8        10    800
team-b    10       20    500
team-c    2        none  0
========= ======== ===== =====

The candidate counts by the victim whose namespace uses least: one with victims of team-a and team-b
has 500, so that a candidate with victims of team-a alone is better.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.costs.candidate_criteria import GroupTotals, GroupValue
from policies.preemption.costs.groupings import NAMESPACES
from policies.preemption.costs.pod_cost import NO_COST, Cost, PodCost, bounded_cost, clamp
from policies.preemption.filtering.node_resources_fit import amount_of

_THOUSANDTHS = 1000


@dataclass(frozen=True, slots=True)
class RequestCost(PodCost):
    """What a pod requests of one resource, if it does not depart."""

    resource: str = ""


@lru_cache(maxsize=64)
def requests_of(resource: str) -> RequestCost:
    """Return the cost that is a pod's request of a resource, CPU in milliCPU."""

    def of(pod: Pod) -> Cost:
        return NO_COST if pod.departing else bounded_cost(amount_of(pod.requests, resource))

    return RequestCost(f"requests of {resource}", "requests", of, resource=resource)


def lowest_usage_last(_: Pod, snapshot: Snapshot, totals: GroupTotals) -> GroupValue:
    """Return the function from a namespace to its usage below zero, clamped as costs are."""
    quotas = snapshot.policy_objects.quotas
    limited = {name for each in quotas.values() for quota in each for name in quota.hard}
    used = {name: totals(requests_of(name), NAMESPACES) for name in sorted(limited)}

    def value(namespace: str) -> int:
        usages = (
            used[name](namespace) * _THOUSANDTHS // max(hard, 1)
            for quota in quotas.get(namespace, ())
            for name, hard in quota.hard.items()
        )
        return -clamp(max(usages, default=0))

    return value
