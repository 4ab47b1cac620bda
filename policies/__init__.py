"""Pure decisions: which nodes a pod fits, which pods are preempted, and why.

They use no IO, no clock and no randomness.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from policies.kubernetes.releases import RELEASES, Release, release
    from policies.kubernetes.snapshot import (
        DisruptionBudget,
        Node,
        NodeState,
        Pod,
        Resources,
        Snapshot,
        assemble,
    )
    from policies.preemption.decision import Candidate, PreemptionDecision, VictimSet
    from policies.preemption.filtering.status import FilterDecision, Rejection
    from policies.preemption.policy import DEFAULT_RULES, SchedulerRules
    from policies.preemption.reference_engine import filter_nodes as decide_filter
    from policies.preemption.reference_engine import post_filter
    from policies.preemption.reference_engine import preempt as decide_preemption

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

_MODULES: Final = (
    "policies.kubernetes.releases",
    "policies.kubernetes.snapshot",
    "policies.preemption.decision",
    "policies.preemption.filtering.status",
    "policies.preemption.policy",
    "policies.preemption.reference_engine",
)
_RENAMED: Final = {"decide_filter": "filter_nodes", "decide_preemption": "preempt"}


def __getattr__(name: str) -> Any:
    """Import an exported name on first use, since most commands decide nothing."""
    if name in __all__:
        original = _RENAMED.get(name, name)
        for module in map(import_module, _MODULES):
            if hasattr(module, original):
                return getattr(module, original)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
