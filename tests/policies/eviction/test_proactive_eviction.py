"""Proactive eviction: nodes, pods and their order."""

from __future__ import annotations

from typing import Any

import pytest

from policies.eviction.forecast import NodeForecast
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
from tests.builders.eviction import SECOND, bound, evictable, falling, forecast, plan, uses, whole

HARD = bound("memory.available<1Gi")
Pods = dict[EvictablePod, PodStats | None]


def pods(*names: str, **fields: Any) -> Pods:
    """Build pods that use 3Gi, 2Gi, 1Gi … in this order."""
    found = [evictable(name, **fields) for name in names]
    return {pod: uses(f"{len(names) - index}Gi") for index, pod in enumerate(found)}


def heading(
    name: str, *memory: str, thresholds: Any = (HARD,), there: Pods | None = None, of: str = "60Gi"
) -> NodeForecast:
    """Return the forecast of a node with this memory available, ten seconds apart.

    Two amounts are those of ten seconds ago and now, after the same change in earlier samples.
    """
    amounts = [whole(each) for each in memory]
    if len(amounts) == 2:
        before, now = amounts
        amounts = [now + (before - now) * ago for ago in reversed(range(MIN_TREND_MEASUREMENTS))]
    samples = falling(*map(str, amounts), of=of)
    return forecast(
        plan(*thresholds), *samples, pods=pods("a", "b", "c") if there is None else there, name=name
    )


def decided(
    *forecasts: NodeForecast, within: int = 60, most: int = 9, **facts: NodePodFacts
) -> list[Relief]:
    return plan_relief(forecasts, facts, ReliefLimits(within * SECOND, most))


def steps_of(reliefs: list[Relief]) -> list[str]:
    return [_step_text(step) for step in relief_steps(reliefs)]


def _step_text(step: ReliefStep) -> str:
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
    assert (
        first_threshold_within(heading("n", "3Gi", "900Mi", thresholds=(soft,)), 3600 * SECOND)
        is None
    )
    both = heading("n", "5Gi", "2Gi", thresholds=(bound("memory.available<3Gi", grace="1m"), HARD))
    found = first_threshold_within(both, 60 * SECOND)
    assert found is not None
    assert found.threshold == HARD


def test_the_node_is_cordoned_before_the_first_pod_is_evicted() -> None:
    assert steps_of(decided(heading("n", "3Gi", "2Gi"))) == ["close n", "n: a"]


def test_a_node_without_a_trend_is_not_relieved() -> None:
    assert decided(heading("n", "3Gi", "3Gi")) == []


def test_as_many_pods_are_evicted_as_cover_the_shortage() -> None:
    reclaims = bound("memory.available<1Gi", reclaim="4Gi")
    short = heading("n", "2Gi", "1Gi", thresholds=(reclaims,))
    assert steps_of(decided(short)) == ["close n", "n: a", "n: b"]


def test_a_cordoned_node_is_not_cordoned_again() -> None:
    assert steps_of(decided(heading("n", "3Gi", "2Gi"), n=NodePodFacts(cordoned=True))) == ["n: a"]


@pytest.mark.parametrize(
    ("there", "facts", "evicted"),
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
def test_some_pods_are_never_evicted(there: Pods, facts: NodePodFacts, evicted: list[str]) -> None:
    reliefs = decided(heading("n", "3Gi", "2Gi", there=there), n=facts)
    assert steps_of(reliefs) == ["close n", *(f"n: {name}" for name in evicted)]


@pytest.mark.parametrize(
    ("memory", "relieved", "evicted"),
    [
        (["3Gi", "2Gi"], -1, True),
        (["3Gi", "2Gi"], 0, False),  # the first of five readings was taken then
        (["900Mi"], -1, True),
        (["900Mi"], 0, False),
    ],
)
def test_measurements_from_before_the_last_eviction_do_not_count(
    memory: list[str], relieved: int, *, evicted: bool
) -> None:
    reliefs = decided(heading("n", *memory), n=NodePodFacts(cordoned=True, relieved_ns=relieved))
    assert steps_of(reliefs) == (["n: a"] if evicted else [])


def test_a_terminating_pod_with_little_usage_is_not_enough() -> None:
    reclaims = bound("memory.available<1Gi", reclaim="4Gi")
    short = heading("n", "2Gi", "1Gi", thresholds=(reclaims,))
    assert steps_of(decided(short, n=NodePodFacts(terminating_pods={"c"}))) == ["close n", "n: a"]


def test_the_most_urgent_nodes_come_first_and_take_turns() -> None:
    reclaims = bound("memory.available<1Gi", reclaim="4Gi")
    nodes = [
        heading("later", "5Gi", "4Gi"),
        heading("now", "2Gi", "1Gi", thresholds=(reclaims,)),
        heading("soon", "3Gi", "2Gi"),
    ]
    assert steps_of(decided(*nodes)) == [
        *("close now", "close soon", "close later"),
        *("now: a", "soon: a", "later: a", "now: b"),
    ]


def test_no_more_nodes_are_cordoned_than_the_limit() -> None:
    nodes = [heading("x", "3Gi", "2Gi"), heading("y", "4Gi", "2Gi"), heading("z", "9Gi", "2Gi")]
    reliefs = decided(*nodes, most=1)
    assert steps_of(reliefs) == ["close z", "z: a"]
    assert [each.node for each in reliefs if each.skipped] == ["y", "x"]
    closed = decided(*nodes, most=1, z=NodePodFacts(cordoned=True))
    assert steps_of(closed) == ["close y", "z: a", "y: a"]
    assert steps_of(decided(*nodes, most=0)) == []
