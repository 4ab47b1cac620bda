"""Forecasts of thresholds, what leads, who would go, and which nodes come first."""

from __future__ import annotations

from typing import Any

import pytest

from policies.eviction.config import ResolvedConfig
from policies.eviction.filesystems import DEDICATED_IMAGES, ReclaimAction
from policies.eviction.forecast import (
    NO_HISTORY,
    NodeForecast,
    ThresholdForecast,
    forecast_node,
    pods_covering_shortage,
    sort_by_urgency,
)
from policies.eviction.manager import SyncInput, SyncOutcome
from policies.eviction.ranking import PodUsage
from policies.eviction.stats import NodeStats
from tests.builders.eviction import (
    SECOND,
    bound,
    disk,
    evictable,
    filesystem,
    node,
    plan,
    summary,
    uses,
    whole,
)

GI = 2**30
GREEDY, MODEST = evictable("greedy", memory="100Mi"), evictable("modest", memory="4Gi")
USED = {GREEDY: uses("2Gi"), MODEST: uses("1Gi")}


def watched(told: ResolvedConfig, *samples: NodeStats, name: str = "n") -> NodeForecast:
    """Look at a node ten seconds apart."""
    past = NO_HISTORY
    for index, stats in enumerate(samples):
        sample = SyncInput(index * 10 * SECOND, list(USED), summary(stats, USED))
        outlook = forecast_node(name, told, past, sample)
        past = outlook.history
    return outlook


def falling(*memory: str, **fields: Any) -> list[NodeStats]:
    return [node(each, at=10 * index, **fields) for index, each in enumerate(memory)]


def only(outlook: NodeForecast) -> ThresholdForecast:
    [forecast] = outlook.forecasts
    return forecast


@pytest.mark.parametrize(
    ("threshold", "memory", "met_in", "acts_in"),
    [
        (bound("memory.available<1Gi"), ["3Gi", "2Gi"], 10, 10),
        (bound("memory.available<1Gi"), ["3Gi"], None, None),
        (bound("memory.available<1Gi"), ["2Gi", "3Gi"], None, None),
        (bound("memory.available<1Gi"), ["2Gi", "2Gi"], None, None),
        (bound("memory.available<1Gi"), ["2Gi", "1Gi"], 0, 0),  # equal: the next byte does it
        (bound("memory.available<1Gi"), ["1Gi", "512Mi"], 0, 0),
        (bound("memory.available<1Gi", grace="90s"), ["3Gi", "2Gi"], 10, 100),
        (bound("memory.available<1Gi", grace="90s"), ["900Mi", "900Mi", "900Mi"], 0, 70),
        (bound("memory.available<1Gi", grace="15s"), ["900Mi", "800Mi", "700Mi"], 0, 0),
        (bound("memory.available<10%"), ["4Gi", "3Gi"], 9, 9),  # a bit above 2Gi
    ],
)
def test_the_time_left_is_what_the_rate_leaves(
    threshold: Any, memory: list[str], met_in: int | None, acts_in: int | None
) -> None:
    forecast = only(watched(plan(threshold), *falling(*memory)))
    seconds = [
        None if each is None else each // SECOND
        for each in (forecast.met_in_ns, forecast.acts_in_ns)
    ]
    assert seconds == [met_in, acts_in]


def test_the_distance_is_in_units_and_as_a_share() -> None:
    forecast = only(watched(plan(bound("memory.available<2Gi")), node("11Gi", of="20Gi", at=0)))
    assert (forecast.required, forecast.margin, forecast.margin_millionths) == (
        2 * GI,
        9 * GI,
        500_000,
    )
    short = only(watched(plan(bound("memory.available<2Gi")), node("1Gi", of="20Gi", at=0)))
    assert (short.margin, short.margin_millionths) == (-GI, 0)
    more = only(watched(plan(bound("memory.available<30Gi")), node("1Gi", of="20Gi", at=0)))
    assert (more.margin, more.margin_millionths) == (-29 * GI, 0)


@pytest.mark.parametrize(
    ("reclaim", "memory", "shortage"),
    [
        (None, "2Gi", "0"),
        (None, "512Mi", "512Mi"),
        ("2Gi", "2Gi", "1Gi"),
        ("2Gi", "512Mi", "2560Mi"),
        ("10%", "512Mi", "2560Mi"),
    ],
)
def test_the_shortage_counts_what_is_to_be_reclaimed(
    reclaim: str | None, memory: str, shortage: str
) -> None:
    threshold = bound("memory.available<1Gi", reclaim=reclaim)
    forecast = only(watched(plan(threshold), node(memory, of="20Gi", at=0)))
    assert forecast.shortage == pytest.approx(whole(shortage), abs=64)  # 10% is a float32


def test_the_threshold_that_acts_soonest_leads() -> None:
    soft = bound("memory.available<2Gi", grace="5m")
    hard = bound("memory.available<1Gi")
    outlook = watched(plan(soft, hard), *falling("6Gi", "4Gi"))
    assert [each.threshold for each in outlook.forecasts] == [hard, soft]
    assert outlook.leading is not None
    assert outlook.leading.threshold == hard


def test_without_a_trend_the_smallest_share_leads() -> None:
    told = plan(bound("memory.available<1Gi"), bound("nodefs.available<10%"))
    outlook = watched(told, node("10Gi", at=0, node_fs=filesystem("12Gi", at=0)))
    assert outlook.leading is not None
    assert str(outlook.leading.threshold) == "nodefs.available<10%"


def test_the_threshold_that_the_kubelet_acts_on_leads() -> None:
    told = plan(bound("nodefs.available<10%"), bound("memory.available<1Gi"))
    outlook = watched(told, node("900Mi", at=0, node_fs=filesystem("1Gi", at=0)))
    assert outlook.sync.outcome is SyncOutcome.EVICTED
    assert outlook.leading is not None
    assert str(outlook.leading.threshold) == "memory.available<1Gi"
    assert [each.pod.name for each in outlook.ranking] == ["greedy", "modest"]


def test_pods_are_ranked_as_if_it_were_met_now() -> None:
    outlook = watched(plan(bound("memory.available<1Gi")), node("10Gi", at=0))
    assert outlook.sync.evictions == ()
    assert [each.pod.name for each in outlook.ranking] == ["greedy", "modest"]
    assert outlook.first_victim is not None
    assert outlook.first_victim.pod is GREEDY


def test_critical_pods_are_ranked_but_never_first() -> None:
    vital = evictable("vital", mirror=True)
    pods = {vital: uses("5Gi"), **USED}
    sample = SyncInput(0, list(pods), summary(node("10Gi", at=0), pods))
    outlook = forecast_node("n", plan(bound("memory.available<1Gi")), NO_HISTORY, sample)
    assert [each.pod.name for each in outlook.ranking] == ["vital", "greedy", "modest"]
    assert outlook.first_victim is not None
    assert outlook.first_victim.pod is GREEDY


def test_node_level_reclaim_is_part_of_the_forecast() -> None:
    full = node("10Gi", at=0, node_fs=filesystem("11Gi", at=0))
    outlook = watched(plan(bound("nodefs.available<10%")), full)
    assert outlook.reclaim == (ReclaimAction.CONTAINERS, ReclaimAction.IMAGES)
    apart = watched(plan(bound("nodefs.available<10%"), layout=DEDICATED_IMAGES), full)
    assert apart.reclaim == ()
    assert watched(plan(bound("memory.available<1Gi")), full).reclaim == ()


def test_nothing_watched_or_measured_leads_nowhere() -> None:
    for told, stats in [
        (plan(), node("1Gi", at=0)),
        (plan(bound("imagefs.available<10%")), node("1Gi", at=0)),
    ]:
        outlook = watched(told, stats)
        assert (outlook.leading, outlook.ranking, outlook.first_victim) == (None, [], None)
        assert outlook.reclaim == ()
    blind = forecast_node(
        "n", plan(bound("memory.available<1Gi")), NO_HISTORY, SyncInput(0, (), None)
    )
    assert blind.forecasts == ()


def test_stats_that_are_missing_once_do_not_end_a_trend() -> None:
    told = plan(bound("memory.available<1Gi"))
    first = watched(told, node("3Gi", at=0))
    blind = forecast_node("n", told, first.history, SyncInput(5 * SECOND, (), None))
    sample = SyncInput(10 * SECOND, (), summary(node("2Gi", at=10), {}))
    assert only(forecast_node("n", told, blind.history, sample)).met_in_ns == 10 * SECOND


def test_soonest_nodes_come_first_then_the_fullest_then_by_name() -> None:
    told = plan(bound("memory.available<1Gi"))
    nodes = [
        watched(told, *falling("9Gi", "9Gi"), name="calm-b"),
        watched(told, *falling("9Gi", "9Gi"), name="calm-a"),
        watched(plan(), node("1Gi", at=0), name="unwatched"),
        watched(told, *falling("2Gi", "2Gi"), name="full"),
        watched(told, *falling("9Gi", "8Gi"), name="slow"),
        watched(told, *falling("9Gi", "5Gi"), name="fast"),
        watched(told, *falling("9Gi", "900Mi"), name="short"),
    ]
    ranked = [each.node for each in sort_by_urgency(nodes)]
    assert ranked == ["short", "fast", "slow", "full", "calm-a", "calm-b", "unwatched"]


@pytest.mark.parametrize(
    ("shortage", "gone"), [(-5, 1), (0, 1), (1, 1), (10, 1), (11, 2), (15, 2), (16, 3), (99, 3)]
)
def test_as_many_go_as_are_needed_but_one_at_least(shortage: int, gone: int) -> None:
    ranking = [PodUsage(evictable(str(use)), use) for use in (10, 5, 1)]
    assert len(pods_covering_shortage(ranking, shortage)) == gone


def test_an_unmeasured_pod_frees_nothing() -> None:
    ranking = [PodUsage(evictable("new"), None), PodUsage(evictable("old"), 10)]
    assert len(pods_covering_shortage(ranking, 5)) == 2
    assert pods_covering_shortage([], 5) == []


def test_disks_rank_by_what_pods_wrote() -> None:
    writer, other = evictable("writer"), evictable("other")
    pods = {other: uses("1Gi", layer=disk("1Mi")), writer: uses("1Mi", layer=disk("9Gi"))}
    stats = node("10Gi", at=0, node_fs=filesystem("11Gi", at=0))
    told = plan(bound("nodefs.available<10%"))
    outlook = forecast_node("n", told, NO_HISTORY, SyncInput(0, list(pods), summary(stats, pods)))
    assert [each.pod.name for each in outlook.ranking] == ["writer", "other"]
