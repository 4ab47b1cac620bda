"""The criteria over costs and groups that a policy can name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from policies.preemption.costs.candidate_criteria import CostCriterion, GroupCriterion
from policies.preemption.costs.catalog import deletion_cost, lost_work, restarts, run_time
from policies.preemption.costs.groupings import GANGS, NAMESPACES, OWNERS
from policies.preemption.costs.pod_cost import NO_COST, PodCost

LEAST_LOST_WORK: Final = "least lost work"
FREE: Final = PodCost("cost", "none", lambda _: NO_COST)
"""The cost of a policy that defines none."""


def cost_criteria(
    lost: PodCost, own: PodCost = FREE
) -> Mapping[str, CostCriterion | GroupCriterion]:
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
    )
    return {each.name: each for each in criteria}


COST_CRITERIA: Final = tuple(cost_criteria(lost_work({})))
"""The names of the criteria over costs and groups."""
