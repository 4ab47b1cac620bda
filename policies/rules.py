"""The rules of a decision."""

from __future__ import annotations

from dataclasses import dataclass

from policies.filtering import IN_TREE, Filter
from policies.policy import KUBE_SCHEDULER, Policy
from policies.upstream import NEWEST, Release


@dataclass(frozen=True, slots=True)
class SchedulerRules:
    """The release of kube-scheduler, its in-tree filters, and the policy of a decision."""

    release: Release = NEWEST
    filters: tuple[Filter, ...] = IN_TREE
    policy: Policy = KUBE_SCHEDULER


DEFAULT_RULES = SchedulerRules()
