"""Policies compared: hand-computed values of each measure, pairs of seeds, incomplete results."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from fakeapi.backtest.distribution import Distribution
from fakeapi.backtest.report.comparison import (
    Comparison,
    MeasureComparison,
    PolicyEstimate,
    compare,
    encode_json,
)
from fakeapi.backtest.report.estimates import Estimate
from fakeapi.backtest.results import BacktestResults
from fakeapi.backtest.statistics import GroupStatistics, RunStatistics
from tests.builders.backtests import GPU, HOUR, SECOND_NS, disrupted, random_results, results


def waits(*seconds: int) -> Distribution:
    found = Distribution()
    for each in seconds:
        found.add(each * SECOND_NS)
    return found


RUN = RunStatistics(
    groups={
        "red/batch": GroupStatistics(
            finished_pods=4,
            disruptions=3,
            repeated=1,
            queueing=waits(10, 10, 10, 100),
            done={"cpu": 100 * 1000 * HOUR, GPU: 40 * HOUR},
            lost={"cpu": 25 * 1000 * HOUR, GPU: 10 * HOUR},
        ),
        "blue/high": GroupStatistics(finished_pods=2, disruptions=1, queueing=waits(1)),
    },
    capacity={"cpu": 1000, GPU: 100},
    allocated={"cpu": 600, GPU: 100},
    fragmented={"cpu": 100},
    preemptions=2,
    violations=1,
    cascades=1,
    refused=7,
)


def of_policy(
    measures: tuple[MeasureComparison, ...], title: str, policy: int = 0
) -> PolicyEstimate:
    (found,) = [each for each in measures if each.measure.title == title]
    return found.policies[policy]


def mean(measures: tuple[MeasureComparison, ...], title: str) -> float | None:
    value = of_policy(measures, title).value
    return None if value is None else value.mean


@pytest.mark.parametrize(
    ("title", "value"),
    [
        ("disruptions", 4),
        ("repeated disruptions", 1),
        ("CPU-hours lost", 25),
        (f"GPU-hours lost ({GPU})", 10),
        ("lost share of cpu work", 0.25),
        (f"lost share of {GPU} work", 0.25),
        ("queueing delay p50", pytest.approx(10, rel=0.01)),
        ("queueing delay p95", pytest.approx(100, rel=0.01)),
        ("finished pods", 6),
        ("preemptions", 2),
        ("cascades", 1),
        ("PDB violations", 1),
        ("refused attempts", 7),
        ("utilization of cpu", 0.6),
        (f"utilization of {GPU}", 1),
        ("fragmentation of cpu", 0.25),
        (f"fragmentation of {GPU}", None),  # no device is free
    ],
)
def test_each_measure(title: str, value: float | None) -> None:
    assert mean(compare(results({"default": [RUN]})).measures, title) == value


@pytest.mark.parametrize(
    ("resource", "lost", "title"),
    [
        ("amd.com/gpu", HOUR, "GPU-hours lost (amd.com/gpu)"),
        ("gpu-milli", 1000 * HOUR, "GPU-hours lost (gpu-milli)"),
        ("alibabacloud.com/gpu-milli", 1000 * HOUR, "GPU-hours lost (alibabacloud.com/gpu-milli)"),
        ("google.com/tpu", HOUR, "device-hours lost (google.com/tpu)"),
    ],
)
def test_hours_of_devices(resource: str, lost: int, title: str) -> None:
    group = GroupStatistics(done={resource: 2 * lost}, lost={resource: lost})
    run = RunStatistics(groups={"red/batch": group})
    assert mean(compare(results({"default": [run]})).measures, title) == 1


def test_memory_and_huge_pages_are_no_devices() -> None:
    done = {"memory": 1, "hugepages-2Mi": 1, "ephemeral-storage": 1, "pods": 1}
    run = RunStatistics(groups={"red/batch": GroupStatistics(done=done)})
    titles = [each.measure.title for each in compare(results({"default": [run]})).measures]
    assert [each for each in titles if "lost" in each] == [
        "CPU-hours lost",
        f"GPU-hours lost ({GPU})",
        "lost share of cpu work",
        f"lost share of {GPU} work",
    ]


def test_differences_are_those_of_pairs_of_seeds() -> None:
    runs = {
        "default": [disrupted(count) for count in (10, 30, 20)],
        "other": [disrupted(count) for count in (8, 27, 18)],
    }
    found = of_policy(compare(results(runs)).measures, "disruptions", policy=1)
    assert found.difference is not None
    assert found.difference.mean == pytest.approx(-2.333, abs=0.001)
    assert found.difference.margin == pytest.approx(1.434, abs=0.001)
    assert found.differs
    assert found.value is not None
    assert found.value.margin == pytest.approx(23.61, abs=0.01)


def test_equal_policies_do_not_differ() -> None:
    runs = [disrupted(count) for count in (10, 30, 20)]
    found = of_policy(compare(results({"a": runs, "b": runs})).measures, "disruptions", policy=1)
    assert found.difference == Estimate(0, 0, 0, 3)
    assert not found.differs


def test_one_seed_has_a_difference_without_an_interval() -> None:
    found = compare(results({"a": [disrupted(10)], "b": [disrupted(4)]}))
    assert of_policy(found.measures, "disruptions", 1) == PolicyEstimate(
        "b", Estimate(4, None, None, 1), Estimate(-6, None, None, 1)
    )


def without(found: BacktestResults, policy: str, seed: int, segment: int) -> BacktestResults:
    place = (policy, seed, segment)
    kept = tuple(u for u in found.units if (u.policy, u.seed, u.segment) != place)
    return replace(found, units=kept, missing=found.missing + 1)


def test_a_seed_without_all_segments_is_left_out_of_its_policy_and_of_pairs() -> None:
    found = compare(without(random_results(3, ("a", "b"), seeds=4), "b", 1, 0))
    assert (found.missing, found.complete_seeds) == (1, {"a": 4, "b": 3})
    for each in found.measures:
        first, other = each.policies
        assert first.value is not None
        assert other.difference is not None
        assert (first.value.seeds, other.difference.seeds) == (4, 3), each.measure


def test_pairs_are_of_the_same_seed_if_the_first_policy_lacks_one() -> None:
    runs = {"a": [disrupted(10), disrupted(30)], "b": [disrupted(9), disrupted(28)]}
    found = compare(without(results(runs), "a", 0, 0))
    assert of_policy(found.measures, "disruptions", 1).difference == Estimate(-2, None, None, 1)


def test_classes_tenants_and_classes_of_tenants() -> None:
    found = compare(results({"default": [RUN]}))
    shown = {
        kind: [(each.name, mean(each.measures, "disruptions")) for each in groups]
        for kind, groups in (
            ("classes", found.classes),
            ("tenants", found.tenants),
            ("groups", found.groups),
        )
    }
    assert shown == {
        "classes": [("batch", 3), ("high", 1)],
        "tenants": [("red", 3), ("blue", 1)],
        "groups": [("red/batch", 3), ("blue/high", 1)],
    }


def test_a_group_that_a_policy_does_not_have_counts_as_zero() -> None:
    runs = {"a": [disrupted(3, "red/batch")], "b": [disrupted(5, "blue/batch")]}
    found = {each.name: each.measures for each in compare(results(runs)).tenants}
    assert of_policy(found["red"], "disruptions", 1).difference == Estimate(-3, None, None, 1)


@pytest.mark.parametrize(
    "empty",
    [
        results({}),
        results({"a": [], "b": []}),
        results({"a": [RunStatistics()], "b": [RunStatistics()]}),
    ],
)
def test_empty_results_have_no_values(empty: BacktestResults) -> None:
    found = compare(empty)
    assert (found.tenants, found.decisions) == ((), ())
    for each in found.measures:
        if each.measure.unit in ("share", "seconds"):
            assert [policy.value for policy in each.policies] == [None, None]


def test_a_comparison_is_read_again_from_its_json() -> None:
    found = compare(random_results(5, ("default", "cost-aware")))
    text = encode_json(found)
    assert msgspec.json.decode(text, type=Comparison) == found
    assert {"completeSeeds", "leftOut"} <= {
        *msgspec.json.decode(text),
        *msgspec.json.decode(text)["workload"],
    }
