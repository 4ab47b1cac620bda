"""Amounts, times and margins as text."""

from __future__ import annotations

import pytest

from extender.eviction.advise.tables import (
    forecast_notes,
    format_headline,
    format_time_left,
    format_trend,
    margin_bar,
)
from extender.eviction.tables import format_amount
from policies.eviction.forecast import NO_HISTORY, NodeForecast, forecast_node
from policies.eviction.manager import SyncInput
from policies.eviction.signals import Signal
from policies.eviction.thresholds import Threshold
from policies.eviction.trends import Trend
from policies.kubernetes.quantity import NANOS
from tests.builders.eviction import (
    bound,
    evictable,
    falling,
    filesystem,
    forecast,
    node,
    plan,
    uses,
)

MI, GI = 2**20, 2**30
HOG = evictable("hog", memory="1Gi")
VITAL = evictable("vital", mirror=True)


@pytest.mark.parametrize(
    ("signal", "number", "text"),
    [
        (Signal.MEMORY, 0, "0"),
        (Signal.MEMORY, 999, "999"),
        (Signal.MEMORY, 1000, "0.97Ki"),
        (Signal.MEMORY, 1024, "1Ki"),
        (Signal.MEMORY, 1536 * MI, "1.5Gi"),
        (Signal.MEMORY, 999 * MI, "999Mi"),
        (Signal.MEMORY, 1000 * MI, "0.97Gi"),
        (Signal.MEMORY, 12345678901, "11.4Gi"),
        (Signal.MEMORY, 123456789012, "114Gi"),
        (Signal.MEMORY, -740 * MI - 1, "-740Mi"),
        (Signal.NODE_FS, 100 * 2**60, "100Ei"),
        (Signal.NODE_FS, 5000 * 2**60, "5000Ei"),
        (Signal.NODE_FS_INODES, 6_503_568, "6.5M"),
        (Signal.PIDS, 32_768, "32.7k"),
        (Signal.PIDS, 999, "999"),
    ],
)
def test_amounts_have_three_digits(signal: Signal, number: int, text: str) -> None:
    assert format_amount(signal, number) == text


@pytest.mark.parametrize(
    ("per_minute", "text"), [(-120 * MI, "-120Mi/min"), (90 * MI, "+90Mi/min"), (0, "steady")]
)
def test_trends_are_shown_per_minute(per_minute: int, text: str) -> None:
    assert format_trend(Signal.MEMORY, Trend(per_minute // 60 * NANOS, 2)) == text


def test_one_reading_has_no_trend() -> None:
    assert format_trend(Signal.MEMORY, None) == ""


def forecast_of(*memory: str, threshold: Threshold | None = None) -> NodeForecast:
    config = plan(threshold or bound("memory.available<1Gi"))
    pods = {VITAL: uses("9Gi"), HOG: uses("3Gi")}
    return forecast(config, *falling(*memory, of="21Gi"), pods=pods)


HARD = "memory.available<1Gi"
SOFT = bound("memory.available<1Gi", grace="90s")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (forecast_of("11Gi"), ("████░░░░", "", "n: one sample has no trend")),
        (forecast_of("21Gi", "21Gi"), ("████████", "", "n: no signal approaches its threshold")),
        (
            forecast_of("3Gi", "2Gi"),
            (
                "█░░░░░░░",
                "10s",
                "n acts on memory.available<1Gi in 10s; default/hog would be evicted first",
            ),
        ),
        (forecast_of("2Gi", "1Gi"), ("░" * 8, "met", None)),
        (forecast_of("2Gi", "900Mi"), ("░" * 8, "met", "n is about to evict default/hog")),
        (forecast_of("3Gi", "2Gi", threshold=SOFT), ("█░░░░░░░", "10s and 1m30s of grace", None)),
        (
            forecast_of("900Mi", "900Mi", threshold=SOFT),
            ("░" * 8, "met, 1m20s of grace left", None),
        ),
    ],
)
def test_a_forecast_is_shown_as_text_and_chart(
    found: NodeForecast, expected: tuple[str, str, str | None]
) -> None:
    [threshold] = found.forecasts
    assert (margin_bar(threshold), format_time_left(threshold)) == expected[:2]
    assert expected[2] in (None, format_headline(found, ()))


def test_reported_pressure_is_shown() -> None:
    headline = format_headline(forecast_of("21Gi", "21Gi"), ["DiskPressure", "PIDPressure"])
    assert headline == "n under DiskPressure, PIDPressure: no signal approaches its threshold"


def test_a_node_without_stats_is_shown() -> None:
    blind = forecast_node(
        "n", plan(bound("memory.available<1Gi")), NO_HISTORY, SyncInput(0, (), None)
    )
    assert format_headline(blind, ()) == "n: no stats are available, so no decision is made"
    assert list(forecast_notes(blind)) == []


def test_the_reclaimable_amount_is_shown() -> None:
    assert list(forecast_notes(forecast_of("3Gi", "2Gi"))) == [
        "evicting default/hog would free 3Gi"
    ]
    assert list(forecast_notes(forecast_of("3Gi", "3Gi"))) == []


def test_node_level_reclaim_is_shown() -> None:
    disks = [filesystem("30Gi", at=0), filesystem("20Gi", at=10)]
    samples = [node(at=10 * index, node_fs=each) for index, each in enumerate(disks)]
    found = forecast(plan(bound("nodefs.available<10%")), *samples, pods={})
    assert format_headline(found, ()) == "n acts on nodefs.available<10% in 9s"
    assert list(forecast_notes(found)) == [
        "before that, the node would delete unused containers and delete unused images"
    ]
