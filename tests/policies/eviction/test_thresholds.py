"""Parsing of thresholds, with upstream's errors."""

from __future__ import annotations

from dataclasses import replace

import pytest

from policies.eviction.config import DEFAULT_THRESHOLDS
from policies.eviction.signals import PRESSURES, Pressure, Resource, Signal
from policies.eviction.thresholds import (
    Threshold,
    ThresholdError,
    ThresholdFlags,
    by_eviction_priority,
    merge_thresholds,
    parse_thresholds,
)
from policies.kubernetes.quantity import MALFORMED
from tests.builders.eviction import bound

MEMORY = "memory.available"


def hard(text: str, signal: str = MEMORY) -> ThresholdFlags:
    return ThresholdFlags(hard={signal: text})


def soft(text: str, grace: str = "1m", signal: str = MEMORY) -> ThresholdFlags:
    return ThresholdFlags(soft={signal: text}, soft_grace={signal: grace})


def reclaiming(text: str) -> ThresholdFlags:
    return ThresholdFlags(hard={MEMORY: "1Gi"}, min_reclaim={MEMORY: text})


def test_the_default_thresholds() -> None:
    assert [str(threshold) for threshold in DEFAULT_THRESHOLDS] == [
        "memory.available<100Mi",
        "nodefs.available<10%",
        "nodefs.inodesFree<5%",
        "imagefs.available<15%",
        "imagefs.inodesFree<5%",
        "allocatableMemory.available<100Mi",
    ]
    assert all(threshold.hard for threshold in DEFAULT_THRESHOLDS)


def test_a_hard_memory_threshold_also_holds_for_allocatable_memory() -> None:
    texts = replace(soft("2Gi"), hard={MEMORY: "1Gi"}, min_reclaim={MEMORY: "100Mi"})
    assert parse_thresholds(texts) == [
        bound("memory.available<1Gi", reclaim="100Mi"),
        bound("memory.available<2Gi", grace="1m", reclaim="100Mi"),
        bound("allocatableMemory.available<1Gi", reclaim="100Mi"),
    ]
    assert [each.signal for each in parse_thresholds(texts, ["none"])] == [Signal.MEMORY] * 2


def test_a_soft_threshold_without_grace_is_a_hard_one() -> None:
    assert all(threshold.hard for threshold in parse_thresholds(soft("1Gi", "0s")))
    assert len(parse_thresholds(soft("1Gi", "0"))) == 2


def test_the_memory_of_all_pods_may_have_a_threshold_of_its_own() -> None:
    found = parse_thresholds(hard("1Gi", "allocatableMemory.available"))
    assert found == [bound("allocatableMemory.available<1Gi")]


@pytest.mark.parametrize("text", ["0%", "100%"])
def test_zero_and_hundred_percent_are_no_thresholds(text: str) -> None:
    assert parse_thresholds(hard(text)) == []
    assert parse_thresholds(soft(text, "1m")) == []
    assert parse_thresholds(ThresholdFlags(soft={MEMORY: text})) == []


@pytest.mark.parametrize("text", ["0.0%", "100.0%", "00%"])
def test_other_spellings_of_zero_and_hundred_percent_are_thresholds(text: str) -> None:
    assert len(parse_thresholds(hard(text), ())) == 1


@pytest.mark.parametrize(
    ("texts", "field", "error"),
    [
        (hard("1Gi", "memory"), "evictionHard", "unsupported eviction signal memory"),
        (
            hard("1Gi", "swap.available"),
            "evictionHard",
            "unsupported eviction signal swap.available",
        ),
        (soft("1Gi", signal="x"), "evictionSoft", "unsupported eviction signal x"),
        (
            ThresholdFlags(soft_grace={"x": "1m"}),
            "evictionSoftGracePeriod",
            "unsupported eviction signal x",
        ),
        (
            ThresholdFlags(min_reclaim={"x": "1"}),
            "evictionMinimumReclaim",
            "unsupported eviction signal x",
        ),
        (hard("0"), "evictionHard", "eviction threshold memory.available must be positive: 0"),
        (
            hard("-1Gi"),
            "evictionHard",
            "eviction threshold memory.available must be positive: -1Gi",
        ),
        (
            hard("-1024Mi"),
            "evictionHard",
            "eviction threshold memory.available must be positive: -1Gi",
        ),
        (hard("Mi"), "evictionHard", "eviction threshold memory.available must be positive: 0"),
        (hard("much"), "evictionHard", MALFORMED),
        (hard(""), "evictionHard", MALFORMED),
        (hard("1ki"), "evictionHard", "unable to parse quantity's suffix"),
        (
            hard("-1%"),
            "evictionHard",
            "eviction percentage threshold memory.available must be >= 0%: -1%",
        ),
        (
            hard("100.5%"),
            "evictionHard",
            "eviction percentage threshold memory.available must be <= 100%: 100.5%",
        ),
        (
            hard("inf%"),
            "evictionHard",
            "eviction percentage threshold memory.available must be <= 100%: inf%",
        ),
        (hard("ten%"), "evictionHard", 'strconv.ParseFloat: parsing "ten": invalid syntax'),
        (hard("1_0%"), "evictionHard", 'strconv.ParseFloat: parsing "1_0": invalid syntax'),
        (hard("nan%"), "evictionHard", 'strconv.ParseFloat: parsing "nan": invalid syntax'),
        (hard("1e99%"), "evictionHard", 'strconv.ParseFloat: parsing "1e99": value out of range'),
        (
            ThresholdFlags(soft={MEMORY: "1Gi"}),
            "evictionSoft",
            "grace period must be specified for the soft eviction threshold memory.available",
        ),
        (
            soft("1Gi", "-30s"),
            "evictionSoftGracePeriod",
            "invalid eviction grace period specified: -30s, must be a positive value",
        ),
        (soft("1Gi", "30"), "evictionSoftGracePeriod", 'time: missing unit in duration "30"'),
        (soft("1Gi", "soon"), "evictionSoftGracePeriod", 'time: invalid duration "soon"'),
        (soft("1Gi", "1d"), "evictionSoftGracePeriod", 'time: unknown unit "d" in duration "1d"'),
        (
            reclaiming("0%"),
            "evictionMinimumReclaim",
            "eviction percentage minimum reclaim memory.available must be positive: 0%",
        ),
        (
            reclaiming("-5%"),
            "evictionMinimumReclaim",
            "eviction percentage minimum reclaim memory.available must be positive: -5%",
        ),
        (
            reclaiming("-1"),
            "evictionMinimumReclaim",
            "negative eviction minimum reclaim specified for memory.available",
        ),
        (reclaiming("x"), "evictionMinimumReclaim", MALFORMED),
    ],
)
def test_an_error_has_upstreams_message_and_its_field(
    texts: ThresholdFlags, field: str, error: str
) -> None:
    with pytest.raises(ThresholdError) as raised:
        parse_thresholds(texts)
    assert (str(raised.value), raised.value.field) == (error, field)


def test_an_error_in_an_entry_has_the_entry() -> None:
    with pytest.raises(ThresholdError) as raised:
        parse_thresholds(ThresholdFlags(hard={"nodefs.available": "10%", MEMORY: "x"}))
    assert raised.value.entry == (MEMORY, "x")


def test_errors_come_in_upstreams_order() -> None:
    texts = ThresholdFlags({MEMORY: "h"}, {MEMORY: "s"}, {MEMORY: "g"}, {MEMORY: "r"})
    fields = []
    for mended in (
        texts,
        replace(texts, hard={}),
        replace(texts, hard={}, soft={MEMORY: "1"}),
        replace(texts, hard={}, soft={MEMORY: "1"}, soft_grace={}),
        replace(texts, hard={}, soft={MEMORY: "1"}, soft_grace={}, min_reclaim={}),
    ):
        with pytest.raises(ThresholdError) as raised:
            parse_thresholds(mended)
        fields.append(raised.value.field)
    assert fields == [
        "evictionHard",
        "evictionSoft",
        "evictionSoftGracePeriod",
        "evictionMinimumReclaim",
        "evictionSoft",
    ]


def test_memory_comes_first_and_hard_before_soft() -> None:
    memory_soft, memory_hard = bound("memory.available<2Gi", grace="1m"), bound(f"{MEMORY}<1Gi")
    disk_soft, disk_hard = bound("nodefs.available<2Gi", grace="1m"), bound("imagefs.available<1Gi")
    found = by_eviction_priority([disk_soft, memory_soft, disk_hard, memory_hard])
    assert found == [memory_hard, memory_soft, disk_hard, disk_soft]


def test_thresholds_that_differ_only_in_minimum_reclaim_are_merged() -> None:
    one, other = bound("memory.available<1Gi"), bound("memory.available<1024Mi", reclaim="5%")
    third = bound("memory.available<1Gi", grace="1s")
    assert merge_thresholds([one], [other, third]) == [one, third]


def test_every_signal_has_a_resource_and_a_pressure() -> None:
    assert {signal for signal, pressure in PRESSURES.items() if pressure is Pressure.DISK} == {
        signal for signal in Signal if "fs." in signal
    }
    assert set(PRESSURES) == set(Signal)
    assert {str(resource) for resource in Resource} == {
        "memory",
        "ephemeral-storage",
        "inodes",
        "pids",
    }


def test_thresholds_are_equal_in_any_spelling() -> None:
    assert bound("memory.available<1Gi") == bound("memory.available<1024Mi")
    assert len({bound("memory.available<1Gi"), bound("memory.available<1024Mi")}) == 1
    assert bound("memory.available<1Gi") != Threshold(Signal.MEMORY, bound("pid.available<1").value)
