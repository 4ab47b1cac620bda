"""The synthetic trace is the same for the same numbers, loads its nodes, and is openb in form."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from fakeapi.backtest.traces.formats import open_trace, parse_synthetic
from fakeapi.backtest.traces.node_lists import GPU_MILLI
from fakeapi.backtest.traces.synthetic import FULL_SIZE, SyntheticWorkload, write_openb
from fakeapi.backtest.traces.trace import Trace, TraceError

SMALL = "synthetic:nodes=16,pods=500,days=2"


def gpu_demand(trace: Trace) -> tuple[float, float]:
    """Return the mean and the highest demand for GPUs, as shares of what the nodes have."""
    changes = [
        change
        for job in trace.jobs()
        for amount in [job.pods * job.requests.get(GPU_MILLI, 0)]
        for change in ((job.submitted_ns, amount), (job.submitted_ns + job.run_ns, -amount))
    ]
    demand = highest = total = last = 0
    for at, change in sorted(changes):
        total, last = total + demand * (at - last), at
        demand += change
        highest = max(highest, demand)
    gpus = sum(node.allocatable.get(GPU_MILLI, 0) for node in trace.nodes)
    return total / last / gpus, highest / gpus


def test_the_same_numbers_give_the_same_trace() -> None:
    assert [*open_trace(SMALL).jobs()] == [*open_trace(SMALL).jobs()]
    assert [*open_trace(SMALL).jobs()] != [*open_trace(f"{SMALL},seed=2").jobs()]


@pytest.mark.parametrize("seed", range(4))
def test_the_default_trace_requests_more_than_there_is_at_its_peaks(seed: int) -> None:
    mean, highest = gpu_demand(open_trace(f"synthetic:seed={seed}"))
    assert 0.75 < mean < 0.85
    assert 1 < highest < 2


def test_the_files_of_openb_are_the_same_trace(tmp_path: Path) -> None:
    workload = parse_synthetic(SMALL)
    assert write_openb(workload, tmp_path)[0].name == "openb_pod_list_default.csv"
    written, generated = open_trace(str(tmp_path)), open_trace(SMALL)
    assert [*written.jobs()] == [*generated.jobs()]
    assert written.nodes == generated.nodes
    assert written.left_out == {}


def test_more_pods_arrive_by_day() -> None:
    arrivals = Counter(
        6 <= int(pod.values["creation_time"]) % 86_400 // 3600 < 18
        for pod in SyntheticWorkload(pods=4000, days=4).pod_rows()
    )
    assert arrivals.total() == 4000
    assert arrivals[True] > 1.3 * arrivals[False]


def test_the_full_size_is_that_of_openb() -> None:
    trace = open_trace(FULL_SIZE.name)
    assert (len(trace.nodes), trace.summary.job_count) == (1523, 8152)
    mean, highest = gpu_demand(trace)
    assert 0.4 < mean < 0.5 < highest < 1


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("synthetic:node=3", "synthetic: expected nodes, pods, days, seed, load; found node"),
        ("synthetic:pods=0", "synthetic: pods: expected more than zero"),
        ("synthetic:pods=-3", "synthetic: pods: negative; expected a number up to 100000000"),
        ("synthetic:load=nan", "synthetic: load: empty; expected a number up to 10"),
        ("synthetic:load=11", "synthetic: load: too large; expected a number up to 10"),
        ("synthetic:days", "synthetic: days: empty; expected a number up to 3650"),
    ],
)
def test_an_invalid_parameter_is_an_error(address: str, message: str) -> None:
    with pytest.raises(TraceError) as caught:
        open_trace(address)
    assert str(caught.value) == message


def test_one_node_and_one_pod_are_a_trace() -> None:
    assert open_trace("synthetic:nodes=1,pods=1,days=1").summary.job_count == 1
