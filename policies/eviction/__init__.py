"""Node-pressure eviction as in the kubelet: which pod is evicted, when, and with which message.

The functions are pure: a simulated kubelet and an advisor call the same ones.
:mod:`policies.eviction.manager` runs one round; :mod:`policies.eviction.config` resolves the
configuration that a round follows; :mod:`policies.eviction.forecast` forecasts pressure on a node,
and :mod:`policies.eviction.proactive_eviction` plans what can be done before the kubelet evicts.
"""

from __future__ import annotations

from policies.eviction.config import (
    CLEANUP_NS,
    DEFAULT_HARD,
    DEFAULT_THRESHOLDS,
    INTERVAL_NS,
    EvictionConfig,
    ResolvedConfig,
    resolve,
)
from policies.eviction.filesystems import Layout, ReclaimAction, infer_layout
from policies.eviction.forecast import (
    NodeForecast,
    ObservationHistory,
    ThresholdForecast,
    forecast_node,
    sort_by_urgency,
)
from policies.eviction.kubelet_releases import EvictionRelease, eviction_release
from policies.eviction.manager import (
    SyncInput,
    SyncOutcome,
    SyncResult,
    finish_after_reclaim,
    synchronize,
)
from policies.eviction.manager_state import ManagerState
from policies.eviction.messages import Eviction
from policies.eviction.node_conditions import (
    NodeCondition,
    PodAdmitResult,
    admit,
    pressure_conditions,
    pressure_taints,
)
from policies.eviction.pods import Container, EvictablePod, Volume
from policies.eviction.proactive_eviction import (
    NodePodFacts,
    Relief,
    ReliefLimits,
    ReliefStep,
    plan_relief,
    relief_steps,
)
from policies.eviction.ranking import PodUsage, rank, ranking_steps
from policies.eviction.signals import Pressure, Resource, Signal
from policies.eviction.stats import NodeStats, PodStats, Summary
from policies.eviction.thresholds import Threshold, ThresholdError, ThresholdFlags, parse_thresholds

__all__ = [
    "CLEANUP_NS",
    "DEFAULT_HARD",
    "DEFAULT_THRESHOLDS",
    "INTERVAL_NS",
    "Container",
    "EvictablePod",
    "Eviction",
    "EvictionConfig",
    "EvictionRelease",
    "Layout",
    "ManagerState",
    "NodeCondition",
    "NodeForecast",
    "NodePodFacts",
    "NodeStats",
    "ObservationHistory",
    "PodAdmitResult",
    "PodStats",
    "PodUsage",
    "Pressure",
    "ReclaimAction",
    "Relief",
    "ReliefLimits",
    "ReliefStep",
    "ResolvedConfig",
    "Resource",
    "Signal",
    "Summary",
    "SyncInput",
    "SyncOutcome",
    "SyncResult",
    "Threshold",
    "ThresholdError",
    "ThresholdFlags",
    "ThresholdForecast",
    "Volume",
    "admit",
    "eviction_release",
    "finish_after_reclaim",
    "forecast_node",
    "infer_layout",
    "parse_thresholds",
    "plan_relief",
    "pressure_conditions",
    "pressure_taints",
    "rank",
    "ranking_steps",
    "relief_steps",
    "resolve",
    "sort_by_urgency",
    "synchronize",
]
