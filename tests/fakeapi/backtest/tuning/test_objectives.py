"""Objectives by the names that options have."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from extender.config.strict_decoding import ConfigError
from fakeapi.backtest.report.measures import Measure
from fakeapi.backtest.tuning.objectives import measure_names, parse_objectives
from tests.builders.backtests import GPU, workload

WORKLOAD = replace(workload(), capacity={"memory": 1, "cpu": 1, GPU: 1})
NUMBER = "--minimize, --maximize: expected one or two different measures"
KNOWN = f"expected one of {', '.join(measure_names(WORKLOAD))}"


def test_measures_have_the_names_of_reports_with_hyphens() -> None:
    assert [*measure_names(WORKLOAD)] == [
        "disruptions",
        "repeated-disruptions",
        "lost-cpu-hours",
        "lost-gpu-hours",
        "lost-share:cpu",
        f"lost-share:{GPU}",
        "queueing-p50",
        "queueing-p95",
        "finished-pods",
        "preemptions",
        "cascades",
        "violations",
        "refused-attempts",
        "utilization:cpu",
        "utilization:memory",
        f"utilization:{GPU}",
        "fragmentation:cpu",
        "fragmentation:memory",
        f"fragmentation:{GPU}",
    ]
    assert measure_names(WORKLOAD)["lost-gpu-hours"] == Measure("lostHours", "hours", "lower", GPU)


def test_two_kinds_of_gpus_are_named_with_their_resource() -> None:
    names = measure_names(replace(WORKLOAD, capacity={"amd.com/gpu": 1, GPU: 1}))
    assert {"lost-gpu-hours:amd.com/gpu", f"lost-gpu-hours:{GPU}"} <= {*names}


def test_a_workload_may_have_some_measures_only() -> None:
    assert [*measure_names(replace(WORKLOAD, measures=("lostHours", "violations")))] == [
        "lost-cpu-hours",
        "lost-gpu-hours",
        "violations",
    ]


def test_values_that_are_to_grow_are_losses_below_zero() -> None:
    first, second = parse_objectives(["disruptions"], ["finished-pods"], WORKLOAD)
    assert (first.loss(3), second.loss(3)) == (3, -3)


@pytest.mark.parametrize(
    ("minimize", "maximize", "line"),
    [
        ([], [], f"{NUMBER}; found none"),
        (
            ["disruptions", "cascades"],
            ["finished-pods"],
            f"{NUMBER}; found disruptions, cascades, finished-pods",
        ),
        (
            ["disruptions", "disruptions"],
            [],
            f"{NUMBER}; found disruptions, disruptions",
        ),
        (
            ["finished-pods"],
            [],
            "--minimize finished-pods: higher is better; expected --maximize finished-pods",
        ),
        ([], ["cascades"], "--maximize cascades: lower is better; expected --minimize cascades"),
        (
            ["disruption"],
            [],
            f"--minimize disruption: unknown measure; did you mean disruptions? {KNOWN}",
        ),
    ],
)
def test_errors(minimize: Sequence[str], maximize: Sequence[str], line: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_objectives(minimize, maximize, WORKLOAD)
    assert error.value.errors == (line,)
