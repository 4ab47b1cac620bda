"""Pure decisions: which nodes a pod fits, which pods are preempted, and why.

They use no IO, no clock and no randomness.
"""

from __future__ import annotations

from policies.decision import Candidate, FilterDecision, PreemptionDecision, Rejection, VictimSet
from policies.model import (
    DisruptionBudget,
    Node,
    NodeState,
    Pod,
    Resources,
    Snapshot,
    assemble,
)
from policies.reference import filter_nodes as decide_filter
from policies.reference import post_filter
from policies.reference import preempt as decide_preemption
from policies.rules import DEFAULT_RULES, SchedulerRules
from policies.upstream import RELEASES, Release, release

__all__ = [
    "DEFAULT_RULES",
    "RELEASES",
    "Candidate",
    "DisruptionBudget",
    "FilterDecision",
    "Node",
    "NodeState",
    "Pod",
    "PreemptionDecision",
    "Rejection",
    "Release",
    "Resources",
    "SchedulerRules",
    "Snapshot",
    "VictimSet",
    "assemble",
    "decide_filter",
    "decide_preemption",
    "post_filter",
    "release",
]
