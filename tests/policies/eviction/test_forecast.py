"""Forecasts: the time to each threshold, the leading one, the ranking, and the order of nodes."""

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
    falling,
    filesystem,
    forecast,
    node,
    plan,
    summary,
    uses,
    whole,
)

GI = 2**30
GREEDY, MODEST = evictable("greedy", memory="100Mi"), evictable("modest", memory="4Gi")
USED = {GREEDY: uses("2Gi"), MODEST: uses("1Gi")}


def watched(config: ResolvedConfig, *samples: NodeStats, name: str = "n") -> NodeForecast:
    return forecast(config, *samples, pods=USED, name=name)


def only(found: NodeForecast) -> ThresholdForecast:
    [item] = found.forecasts
    return item


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
def test_the_time_left_follows_from_the_trend(
    threshold: Any, memory: list[str], met_in: int | None, acts_in: int | None
) -> None:
    item = only(watched(plan(threshold), *falling(*memory)))
    seconds = [
        None if each is None else each // SECOND for each in (item.met_in_ns, item.acts_in_ns)
    ]
    assert seconds == [met_in, acts_in]


@pytest.mark.parametrize(
    ("required", "left", "margin", "millionths"),
    [(2, "11Gi", 9, 500_000), (2, "1Gi", -1, 0), (30, "1Gi", -29, 0)],
)
def test_the_margin_is_in_units_and_as_a_share(
    required: int, left: str, margin: int, millionths: int
) -> None:
    item = only(watched(plan(bound(f"memory.available<{required}Gi")), node(left, of="20Gi", at=0)))
    assert item.required == required * GI
    assert (item.margin, item.margin_millionths) == (margin * GI, millionths)


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
    item = only(watched(plan(threshold), node(memory, of="20Gi", at=0)))
    assert item.shortage == pytest.approx(whole(shortage), abs=64)  # 10% is a float32


def test_the_threshold_that_acts_soonest_leads() -> None:
    soft = bound("memory.available<2Gi", grace="5m")
    hard = bound("memory.available<1Gi")
    found = watched(plan(soft, hard), *falling("6Gi", "4Gi"))
    assert [each.threshold for each in found.forecasts] == [hard, soft]
    assert found.leading is not None
    assert found.leading.threshold == hard


def test_without_a_trend_the_smallest_share_leads() -> None:
    config = plan(bound("memory.available<1Gi"), bound("nodefs.available<10%"))
    found = watched(config, node("10Gi", at=0, node_fs=filesystem("12Gi", at=0)))
    assert found.leading is not None
    assert str(found.leading.threshold) == "nodefs.available<10%"


def test_the_threshold_that_the_kubelet_acts_on_leads() -> None:
    config = plan(bound("nodefs.available<10%"), bound("memory.available<1Gi"))
    found = watched(config, node("900Mi", at=0, node_fs=filesystem("1Gi", at=0)))
    assert found.sync.outcome is SyncOutcome.EVICTED
    assert found.leading is not None
    assert str(found.leading.threshold) == "memory.available<1Gi"
    assert [each.pod.name for each in found.ranking] == ["greedy", "modest"]


def test_pods_are_ranked_as_if_the_threshold_were_met_now() -> None:
    found = watched(plan(bound("memory.available<1Gi")), node("10Gi", at=0))
    assert found.sync.evictions == ()
    assert [each.pod.name for each in found.ranking] == ["greedy", "modest"]
    assert found.first_victim is not None
    assert found.first_victim.pod is GREEDY


def test_critical_pods_are_ranked_but_never_first() -> None:
    vital = evictable("vital", mirror=True)
    pods = {vital: uses("5Gi"), **USED}
    sample = SyncInput(0, list(pods), summary(node("10Gi", at=0), pods))
    found = forecast_node("n", plan(bound("memory.available<1Gi")), NO_HISTORY, sample)
    assert [each.pod.name for each in found.ranking] == ["vital", "greedy", "modest"]
    assert found.first_victim is not None
    assert found.first_victim.pod is GREEDY


def test_node_level_reclaim_is_part_of_the_forecast() -> None:
    full = node("10Gi", at=0, node_fs=filesystem("11Gi", at=0))
    found = watched(plan(bound("nodefs.available<10%")), full)
    assert found.reclaim == (ReclaimAction.CONTAINERS, ReclaimAction.IMAGES)
    apart = watched(plan(bound("nodefs.available<10%"), layout=DEDICATED_IMAGES), full)
    assert apart.reclaim == ()
    assert watched(plan(bound("memory.available<1Gi")), full).reclaim == ()


def test_without_thresholds_or_stats_none_leads() -> None:
    for config, stats in [
        (plan(), node("1Gi", at=0)),
        (plan(bound("imagefs.available<10%")), node("1Gi", at=0)),
    ]:
        found = watched(config, stats)
        assert (found.leading, found.ranking, found.first_victim) == (None, [], None)
        assert found.reclaim == ()
    blind = forecast_node(
        "n", plan(bound("memory.available<1Gi")), NO_HISTORY, SyncInput(0, (), None)
    )
    assert blind.forecasts == ()


def test_stats_that_are_missing_once_do_not_end_a_trend() -> None:
    config = plan(bound("memory.available<1Gi"))
    first = watched(config, node("3Gi", at=0))
    blind = forecast_node("n", config, first.history, SyncInput(5 * SECOND, (), None))
    sample = SyncInput(10 * SECOND, (), summary(node("2Gi", at=10), {}))
    assert only(forecast_node("n", config, blind.history, sample)).met_in_ns == 10 * SECOND


def test_soonest_nodes_come_first_then_the_fullest_then_by_name() -> None:
    config = plan(bound("memory.available<1Gi"))
    nodes = [
        watched(config, *falling("9Gi", "9Gi"), name="calm-b"),
        watched(config, *falling("9Gi", "9Gi"), name="calm-a"),
        watched(plan(), node("1Gi", at=0), name="unwatched"),
        watched(config, *falling("2Gi", "2Gi"), name="full"),
        watched(config, *falling("9Gi", "8Gi"), name="slow"),
        watched(config, *falling("9Gi", "5Gi"), name="fast"),
        watched(config, *falling("9Gi", "900Mi"), name="short"),
    ]
    ranked = [each.node for each in sort_by_urgency(nodes)]
    assert ranked == ["short", "fast", "slow", "full", "calm-a", "calm-b", "unwatched"]


@pytest.mark.parametrize(
    ("shortage", "gone"), [(-5, 1), (0, 1), (1, 1), (10, 1), (11, 2), (15, 2), (16, 3), (99, 3)]
)
def test_as_many_pods_as_cover_the_shortage_but_at_least_one(shortage: int, gone: int) -> None:
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
    config = plan(bound("nodefs.available<10%"))
    found = forecast_node("n", config, NO_HISTORY, SyncInput(0, list(pods), summary(stats, pods)))
    assert [each.pod.name for each in found.ranking] == ["writer", "other"]
