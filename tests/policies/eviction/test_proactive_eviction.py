"""Which nodes are relieved ahead of their kubelets, of which pods, in which order."""

from __future__ import annotations

from typing import Any

import pytest

from policies.eviction.forecast import NO_HISTORY, NodeForecast, forecast_node
from policies.eviction.manager import SyncInput
from policies.eviction.pods import EvictablePod
from policies.eviction.proactive_eviction import (
    MIN_TREND_MEASUREMENTS,
    NodePodFacts,
    Relief,
    ReliefLimits,
    ReliefStep,
    first_threshold_within,
    plan_relief,
    relief_steps,
)
from policies.eviction.stats import PodStats
from tests.builders.eviction import SECOND, bound, evictable, node, plan, summary, uses, whole

HARD = bound("memory.available<1Gi")
Pods = dict[EvictablePod, PodStats | None]


def pods(*names: str, **fields: Any) -> Pods:
    """Build pods that use 3Gi, 2Gi, 1Gi … in this order."""
    found = [evictable(name, **fields) for name in names]
    return {pod: uses(f"{len(names) - index}Gi") for index, pod in enumerate(found)}


def heading(
    name: str, *memory: str, told: Any = (HARD,), there: Pods | None = None, of: str = "60Gi"
) -> NodeForecast:
    """Return a node of which this much memory was left, ten seconds apart.

    Two amounts are what was left ten seconds ago and now, after it had changed so for a while.
    """
    there = pods("a", "b", "c") if there is None else there
    past = NO_HISTORY
    amounts = [whole(each) for each in memory]
    if len(amounts) == 2:
        before, now = amounts
        amounts = [now + (before - now) * ago for ago in reversed(range(MIN_TREND_MEASUREMENTS))]
    for index, amount in enumerate(amounts):
        measured = summary(node(str(amount), of=of, at=10 * index), there)
        sample = SyncInput(index * 10 * SECOND, list(there), measured)
        outlook = forecast_node(name, plan(*told), past, sample)
        past = outlook.history
    return outlook


def decided(
    *outlooks: NodeForecast, within: int = 60, most: int = 9, **bearings: NodePodFacts
) -> list[Relief]:
    return plan_relief(outlooks, bearings, ReliefLimits(within * SECOND, most))


def told(reliefs: list[Relief]) -> list[str]:
    return [_spelled(step) for step in relief_steps(reliefs)]


def _spelled(step: ReliefStep) -> str:
    node = step.relief.node
    return f"close {node}" if step.pod is None else f"{node}: {step.pod.name}"


@pytest.mark.parametrize(
    ("memory", "within", "hit"),
    [
        (["3Gi", "2Gi"], 10, True),
        (["3Gi", "2Gi"], 9, False),
        (["3Gi", "2Gi"], 0, False),
        (["3Gi", "900Mi"], 0, True),
        (["3Gi"], 3600, False),
        (["900Mi"], 0, True),
        (["2Gi", "3Gi"], 3600, False),
        (["9Gi", "7Gi", "5Gi", "3Gi"], 3600, False),  # one reading too few
        (["9Gi", "7Gi", "5Gi", "900Mi"], 0, True),  # but that needs no trend
        (["9Gi", "3Gi", "3Gi", "3Gi", "3Gi"], 3600, False),  # a pod has started
    ],
)
def test_a_node_is_hit_if_a_hard_threshold_is_met_within_the_time(
    memory: list[str], within: int, *, hit: bool
) -> None:
    assert (first_threshold_within(heading("n", *memory), within * SECOND) is not None) == hit


def test_soft_thresholds_evict_no_pod() -> None:
    soft = bound("memory.available<1Gi", grace="1m")
    assert first_threshold_within(heading("n", "3Gi", "900Mi", told=(soft,)), 3600 * SECOND) is None
    both = heading("n", "5Gi", "2Gi", told=(bound("memory.available<3Gi", grace="1m"), HARD))
    found = first_threshold_within(both, 60 * SECOND)
    assert found is not None
    assert found.threshold == HARD


def test_the_first_pod_goes_once_the_node_is_closed() -> None:
    assert told(decided(heading("n", "3Gi", "2Gi"))) == ["close n", "n: a"]


def test_a_calm_node_is_left_alone() -> None:
    assert decided(heading("n", "3Gi", "3Gi")) == []


def test_as_many_go_as_the_node_is_short_of() -> None:
    reclaims = bound("memory.available<1Gi", reclaim="4Gi")
    short = heading("n", "2Gi", "1Gi", told=(reclaims,))
    assert told(decided(short)) == ["close n", "n: a", "n: b"]


def test_a_cordoned_node_is_not_cordoned_again() -> None:
    assert told(decided(heading("n", "3Gi", "2Gi"), n=NodePodFacts(cordoned=True))) == ["n: a"]


@pytest.mark.parametrize(
    ("there", "bearing", "goes"),
    [
        (pods("a", "b", "c"), NodePodFacts(daemonset_pods={"a"}), ["b"]),
        (pods("a", "b", "c", priority=2_000_000_000), NodePodFacts(), []),
        (pods("a", "b", "c", mirror=True), NodePodFacts(), []),
        (pods("a", "b", "c", source="file"), NodePodFacts(), []),
        ({**pods("a"), evictable("new"): None}, NodePodFacts(), ["a"]),
        ({**pods("a"), evictable("idle"): uses("0")}, NodePodFacts(), ["a"]),
        ({evictable("new"): None}, NodePodFacts(), []),
        (pods("a", "b", "c"), NodePodFacts(terminating_pods={"c"}), []),  # what it uses comes back
    ],
)
def test_some_pods_never_go(there: Pods, bearing: NodePodFacts, goes: list[str]) -> None:
    reliefs = decided(heading("n", "3Gi", "2Gi", there=there), n=bearing)
    assert told(reliefs) == ["close n", *(f"n: {name}" for name in goes)]


@pytest.mark.parametrize(
    ("memory", "relieved", "goes"),
    [
        (["3Gi", "2Gi"], -1, True),
        (["3Gi", "2Gi"], 0, False),  # the first of five readings was taken then
        (["900Mi"], -1, True),
        (["900Mi"], 0, False),
    ],
)
def test_measurements_from_before_the_last_eviction_do_not_count(
    memory: list[str], relieved: int, *, goes: bool
) -> None:
    reliefs = decided(heading("n", *memory), n=NodePodFacts(cordoned=True, relieved_ns=relieved))
    assert told(reliefs) == (["n: a"] if goes else [])


def test_a_terminating_pod_with_little_usage_is_not_enough() -> None:
    reclaims = bound("memory.available<1Gi", reclaim="4Gi")
    short = heading("n", "2Gi", "1Gi", told=(reclaims,))
    assert told(decided(short, n=NodePodFacts(terminating_pods={"c"}))) == ["close n", "n: a"]


def test_the_most_pressing_come_first_and_pods_go_by_turns() -> None:
    reclaims = bound("memory.available<1Gi", reclaim="4Gi")
    nodes = [
        heading("later", "5Gi", "4Gi"),
        heading("now", "2Gi", "1Gi", told=(reclaims,)),
        heading("soon", "3Gi", "2Gi"),
    ]
    assert told(decided(*nodes)) == [
        *("close now", "close soon", "close later"),
        *("now: a", "soon: a", "later: a", "now: b"),
    ]


def test_no_more_nodes_are_closed_than_may_be() -> None:
    nodes = [heading("x", "3Gi", "2Gi"), heading("y", "4Gi", "2Gi"), heading("z", "9Gi", "2Gi")]
    reliefs = decided(*nodes, most=1)
    assert told(reliefs) == ["close z", "z: a"]
    assert [each.node for each in reliefs if each.skipped] == ["y", "x"]
    closed = decided(*nodes, most=1, z=NodePodFacts(cordoned=True))
    assert told(closed) == ["close y", "z: a", "y: a"]
    assert told(decided(*nodes, most=0)) == []
