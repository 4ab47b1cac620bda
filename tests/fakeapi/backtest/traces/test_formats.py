"""Each format is recognised by its columns, and its rows become the jobs that they describe."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from fakeapi.backtest.traces.formats import open_trace
from fakeapi.backtest.traces.node_lists import GPU, GPU_MILLI, GPU_MODEL, MIB
from fakeapi.backtest.traces.trace import TraceError, TraceJob, TracePriorityClass
from tests.fakeapi.backtest.traces.trace_files import (
    GENERIC,
    GIB,
    GPU_V2025,
    NODES,
    OPENB,
    OPENB_NODES,
    PHILLY,
    SECOND,
    csv_text,
    generic,
    only_job,
    reasons,
    write,
)


def test_a_pod_of_openb_is_a_job(tmp_path: Path) -> None:
    write(tmp_path, OPENB_NODES, "nodes.csv")
    trace = open_trace(write(tmp_path, csv_text(OPENB | {"gpu_spec": "V100M32|T4"})))
    assert only_job(trace) == TraceJob(
        name="openb-pod-0001",
        tenant="openb",
        priority=3000,
        submitted_ns=0,
        run_ns=60 * SECOND,
        requests={"cpu": 6000, "memory": 12288 * MIB, GPU_MILLI: 460},
        node_labels={GPU_MODEL: ("T4", "V100M32")},
        checkpoint_ns=0,
    )
    assert trace.priority_classes == (TracePriorityClass("latency-sensitive", 3000),)
    assert [node.name for node in trace.nodes] == [f"openb-node-000{i}" for i in range(3)]
    assert trace.nodes[1].allocatable == {
        "cpu": 96_000, "memory": 393_216 * MIB, GPU_MILLI: 8000, "pods": 110,
    }  # fmt: skip
    assert trace.nodes[1].labels == {GPU_MODEL: "G2"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"scheduled_time": ""}, "never scheduled, so that its run time is unknown"),
        ({"deletion_time": "nan"}, "never scheduled, so that its run time is unknown"),
        (
            {"deletion_time": "9"},
            "times: expected creation_time <= scheduled_time <= deletion_time",
        ),
        ({"creation_time": "-5"}, "creation_time: negative"),
        ({"qos": "LSR"}, "qos: expected LS, BE, Burstable or Guaranteed"),
        ({"gpu_milli": "1001"}, "gpu_milli: too large"),
        ({"gpu_spec": "a b"}, "gpu_spec: expected models separated by |"),
        ({"gpu_spec": "H100"}, "no node has the labels"),
        ({"cpu_milli": "96001"}, "fits no node"),
    ],
)
def test_a_pod_of_openb_that_cannot_run_is_left_out(
    tmp_path: Path, change: dict[str, str], reason: str
) -> None:
    write(tmp_path, OPENB_NODES, "nodes.csv")
    trace = open_trace(write(tmp_path, csv_text(OPENB, OPENB | change)))
    assert {key: str(each) for key, each in trace.left_out.items()} == {
        reason: f"1, first {tmp_path}/trace.csv:3"
    }


@pytest.mark.parametrize(
    ("qos", "priority", "checkpoint_ns"),
    [("LS", 3000, 0), ("Guaranteed", 2000, None), ("Burstable", 1000, None), ("BE", 0, None)],
)
def test_the_qos_of_openb_is_the_priority(
    tmp_path: Path, qos: str, priority: int, checkpoint_ns: int | None
) -> None:
    write(tmp_path, OPENB_NODES, "nodes.csv")
    job = only_job(open_trace(write(tmp_path, csv_text(OPENB | {"qos": qos}))))
    assert (job.priority, job.checkpoint_ns) == (priority, checkpoint_ns)


def test_an_instance_of_gpu_v2025_that_existed_before_runs_for_the_whole_trace(
    tmp_path: Path,
) -> None:
    trace = open_trace(write(tmp_path, csv_text(GPU_V2025)))
    assert only_job(trace) == TraceJob(
        name="instance-7",
        tenant="app-0",
        priority=3000,
        submitted_ns=0,
        run_ns=31 * 86_400 * SECOND,
        requests={
            "cpu": 12_000,
            "memory": 1875 * GIB // 2,
            "ephemeral-storage": 680 * GIB,
            "alibabacloud.com/rdma-percent": 25,
            GPU: 1,
        },
        node_labels={"alibabacloud.com/node-role": ("HN",)},
        checkpoint_ns=0,
    )
    assert len(trace.nodes) == 2580
    assert any("no nodes; assumed are" in sentence for sentence in trace.assumptions)


@pytest.mark.parametrize(
    ("gpus", "pods", "of_one"), [(1, 1, 1), (8, 1, 8), (12, 2, 6), (13, 13, 1), (128, 16, 8)]
)
def test_a_job_of_philly_has_pods_of_at_most_eight_gpus(
    tmp_path: Path, gpus: int, pods: int, of_one: int
) -> None:
    trace = open_trace(write(tmp_path, csv_text(PHILLY | {"num_gpus": str(gpus)})))
    job = only_job(trace)
    assert (job.name, job.tenant, job.run_ns) == ("job-2", "vc-11cb48", 66 * SECOND)
    assert (job.pods, job.requests[GPU]) == (pods, of_one)
    assert sum(node.allocatable[GPU] for node in trace.nodes) == 2490


def test_jobs_of_philly_are_in_order_since_the_first(tmp_path: Path) -> None:
    times = ["2017-10-09 07:01:55", "2017-10-09 06:01:55", "2017-10-09T08:01:55+02:00"]
    rows = [PHILLY | {"timestamp": time} for time in (*times, "2017-13-09", "1066-10-14")]
    trace = open_trace(write(tmp_path, csv_text(*rows)))
    assert [(job.name, job.submitted_ns) for job in trace.jobs()] == [
        ("job-3", 0),
        ("job-4", 0),
        ("job-2", 3600 * SECOND),
    ]
    assert reasons(trace) == {
        "timestamp: expected a time such as 2017-10-09 07:01:55": 1,
        "timestamp: out of range": 1,
    }


def test_a_generic_row_is_a_job(tmp_path: Path) -> None:
    trace = generic(
        tmp_path,
        {
            "tenant": "Research",
            "priority": "-10",
            "duration": "1.5",
            "cpu": "250m",
            "gpu": "2",
            "pods": "4",
            "checkpoint": "600",
        },
    )
    assert only_job(trace) == TraceJob(
        name="job-0",
        tenant="research",
        priority=-10,
        submitted_ns=0,
        run_ns=1_500_000_000,
        requests={"cpu": 250, "memory": GIB, GPU: 2},
        pods=4,
        checkpoint_ns=600 * SECOND,
    )
    assert trace.priority_classes == (TracePriorityClass("priority-minus-10", -10),)


def test_only_four_columns_are_required(tmp_path: Path) -> None:
    text = "cpu,duration,submit,name,colour\n1,60,0,a,red\n"
    job = only_job(open_trace(write(tmp_path, text), nodes=NODES))
    assert job == TraceJob("a", "default", 0, 0, 60 * SECOND, {"cpu": 1000})


def test_a_gzipped_file_is_read(tmp_path: Path) -> None:
    data = gzip.compress(csv_text(GENERIC).encode())
    assert only_job(open_trace(write(tmp_path, data, "jobs.csv.gz"), nodes=NODES)).name == "a"


def test_a_directory_has_its_default_list_of_jobs_and_all_nodes(tmp_path: Path) -> None:
    write(tmp_path, OPENB_NODES, "openb_node_list_all_node.csv")
    write(tmp_path, OPENB_NODES, "openb_node_list_gpu_node.csv")
    write(tmp_path, csv_text(OPENB), "openb_pod_list_default.csv")
    write(tmp_path, csv_text(OPENB, OPENB), "openb_pod_list_cpu050.csv")
    write(tmp_path, "no trace", "README.md")
    trace = open_trace(str(tmp_path))
    assert trace.name == f"{tmp_path}/openb_pod_list_default.csv"
    assert (trace.summary.job_count, len(trace.nodes)) == (1, 3)


@pytest.mark.parametrize(
    ("files", "format_name", "message"),
    [
        ({}, None, "trace.csv: expected a file"),
        ({"trace.csv": ""}, None, "trace.csv: expected a CSV file in UTF-8 with a header"),
        ({"trace.csv": "\xff\n"}, None, "found the columns ÿ"),
        ({"trace.csv": "a,b\n1,2\n"}, None, "expected the columns of a trace (openb: name, cpu_m"),
        ({"trace.csv": "name,submit,name\n"}, None, "the header names a column twice: name, sub"),
        (
            {"trace.csv": csv_text(GENERIC)},
            "openb",
            "format openb: expected the columns name, cpu_",
        ),
        ({"trace.csv": csv_text(GENERIC)}, "opemb", "found opemb; did you mean openb?"),
        ({"trace.csv": csv_text(GENERIC)}, None, "format csv: expected a list of nodes, too"),
        (
            {"trace.csv": csv_text(GENERIC)[:10]},
            None,
            "trace.csv: expected a CSV file in UTF-8 wit",
        ),
        (
            {"trace.csv": csv_text(PHILLY).split("\n")[0] + "\n"},
            None,
            "no valid job: it has no rows",
        ),
        (
            {"trace.csv": csv_text(PHILLY)[:-1]},
            None,
            "no valid job: torn: no line break at its end (1, first ",
        ),
        (
            {"trace.csv": csv_text(PHILLY), "a.csv": OPENB_NODES, "b.csv": OPENB_NODES},
            None,
            "expected one list of nodes, or one with all_node in its name; found a.csv, b.csv",
        ),
    ],
)
def test_a_file_that_is_no_trace_is_one_error(
    tmp_path: Path, files: dict[str, str], format_name: str | None, message: str
) -> None:
    for name, text in files.items():
        write(tmp_path, text, name)
    with pytest.raises(TraceError) as caught:
        open_trace(str(tmp_path / "trace.csv"), format_name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_directory_without_one_list_of_jobs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"expected one file with jobs.*found none"):
        open_trace(str(tmp_path))
    for name in ("a.csv", "b.csv"):
        write(tmp_path, csv_text(PHILLY), name)
    with pytest.raises(TraceError, match=r"expected one file with jobs.*found a\.csv, b\.csv"):
        open_trace(str(tmp_path))
