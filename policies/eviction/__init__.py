"""Node-pressure eviction as in the kubelet: which pod is evicted, when, and with which message.

The functions are pure: a simulated kubelet and an advisor call the same ones.
:mod:`policies.eviction.manager` runs one round; :mod:`policies.eviction.config` resolves the
configuration that a round follows; :mod:`policies.eviction.forecast` forecasts pressure on a node,
and :mod:`policies.eviction.proactive_eviction` plans what can be done before the kubelet evicts.
"""

from __future__ import annotations

from policies.eviction.conditions import Admission, NodeCondition, admit, node_conditions, taints
from policies.eviction.configuration import (
    CLEANUP_NS,
    DEFAULT_HARD,
    DEFAULT_THRESHOLDS,
    INTERVAL_NS,
    Configuration,
    Plan,
    planned,
)
from policies.eviction.deciding import Outcome, Sample, Sync, settle, synchronize
from policies.eviction.filesystems import Layout, Reclaim
from policies.eviction.forestalling import Bearing, Relief, Step, Terms, relieve, steps_of
from policies.eviction.hysteresis import State
from policies.eviction.inferring import infer_layout
from policies.eviction.messages import Eviction
from policies.eviction.outlook import Forecast, Outlook, Past, look_ahead, most_pressing
from policies.eviction.pods import Container, EvictablePod, Volume
from policies.eviction.ranking import Standing, rank, steps
from policies.eviction.releases import EvictionRelease, eviction_release
from policies.eviction.signals import Pressure, Resource, Signal
from policies.eviction.stats import NodeStats, PodStats, Summary
from policies.eviction.thresholds import (
    Threshold,
    ThresholdError,
    ThresholdTexts,
    parse_thresholds,
)

__all__ = [
    "CLEANUP_NS",
    "DEFAULT_HARD",
    "DEFAULT_THRESHOLDS",
    "INTERVAL_NS",
    "Admission",
    "Bearing",
    "Configuration",
    "Container",
    "EvictablePod",
    "Eviction",
    "EvictionRelease",
    "Forecast",
    "Layout",
    "NodeCondition",
    "NodeStats",
    "Outcome",
    "Outlook",
    "Past",
    "Plan",
    "PodStats",
    "Pressure",
    "Reclaim",
    "Relief",
    "Resource",
    "Sample",
    "Signal",
    "Standing",
    "State",
    "Step",
    "Summary",
    "Sync",
    "Terms",
    "Threshold",
    "ThresholdError",
    "ThresholdTexts",
    "Volume",
    "admit",
    "eviction_release",
    "infer_layout",
    "look_ahead",
    "most_pressing",
    "node_conditions",
    "parse_thresholds",
    "planned",
    "rank",
    "relieve",
    "settle",
    "steps",
    "steps_of",
    "synchronize",
    "taints",
]
