"""Node-pressure eviction as the kubelet does it: which pod has to go, when, and with which words.

Pure: a simulated kubelet and an advisor drive the same functions. :mod:`policies.eviction.deciding`
plays one round; :mod:`policies.eviction.configuration` makes the plan that it follows;
:mod:`policies.eviction.outlook` tells where a node is heading, and
:mod:`policies.eviction.forestalling` what could be done before it gets there.
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
