"""Workloads of a SimKube trace become jobs, by their lifecycles or by their replicas."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapi.backtest.traces.formats import open_trace
from fakeapi.backtest.traces.trace import TraceError, TraceJob, TracePriorityClass
from tests.fakeapi.backtest.traces.trace_files import (
    GIB,
    NODES,
    SECOND,
    deployment,
    only_job,
    reasons,
    simkube,
    write,
)

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "batch"},
    "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "3"}}}]},
}
KEY = ("apps/v1.Deployment", "shop/web")


Event = tuple[int, list[object], list[object]]


def runs(path: str) -> list[tuple[int, int, int]]:
    """Return start, run time and pods of each job, in seconds."""
    return [
        (job.submitted_ns // SECOND, job.run_ns // SECOND, job.pods)
        for job in open_trace(path, nodes=NODES).jobs()
    ]


def test_a_deployment_is_a_job_of_its_replicas_until_it_is_deleted(tmp_path: Path) -> None:
    path = simkube(
        tmp_path,
        [(100, [deployment(nodeSelector={})], []), (160, [], [deployment()]), (500, [], [])],
    )
    assert only_job(open_trace(path, nodes=NODES)) == TraceJob(
        name="deployment-web-1",
        tenant="shop",
        priority=0,
        submitted_ns=0,
        run_ns=60 * SECOND,
        requests={"cpu": 2000, "memory": GIB},
        pods=2,
        checkpoint_ns=0,
    )


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [
        ([2, 2], [(0, 20, 2)]),
        ([2, 5], [(0, 20, 2), (10, 10, 3)]),
        ([5, 2], [(0, 10, 3), (0, 20, 2)]),
        ([2, 5, 1], [(0, 20, 1), (0, 30, 1), (10, 10, 3)]),
        ([2, 0, 1], [(0, 10, 2), (20, 10, 1)]),
    ],
)
def test_scaling_adds_jobs_and_ends_the_newest_pods(
    tmp_path: Path, replicas: list[int], expected: list[tuple[int, int, int]]
) -> None:
    events: list[Event] = [(10 * i, [deployment("web", n)], []) for i, n in enumerate(replicas)]
    path = simkube(tmp_path, [*events, (10 * len(replicas), [], [])])
    assert sorted(runs(path)) == expected


def test_a_changed_template_starts_all_pods_anew(tmp_path: Path) -> None:
    changed = deployment(priority=7)
    path = simkube(tmp_path, [(0, [deployment()], []), (10, [changed], []), (30, [], [])])
    assert runs(path) == [(0, 10, 2), (10, 20, 2)]


def test_lifecycles_are_jobs_of_one_pod(tmp_path: Path) -> None:
    lifecycles = {KEY: {7: [{"Finished": [105, 125]}, {"Running": 110}, "Empty"]}}
    path = simkube(tmp_path, [(100, [deployment()], []), (150, [], [])], lifecycles)
    assert runs(path) == [(0, 20, 1), (5, 40, 1)]
    assert reasons(open_trace(path, nodes=NODES)) == {"a pod that never started": 1}


def test_a_pod_that_runs_alone_requests_its_limits_and_keeps_no_work(tmp_path: Path) -> None:
    job = only_job(open_trace(simkube(tmp_path, [(0, [POD], []), (9, [], [POD])]), nodes=NODES))
    assert (job.tenant, job.requests, job.checkpoint_ns) == ("batch", {"cpu": 3000}, None)


def test_a_priority_class_of_the_trace_has_its_value(tmp_path: Path) -> None:
    first = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "first"},
        "value": 900,
    }
    pods = [
        deployment(name, 1, priorityClassName=class_name)
        for name, class_name in (("a", "first"), ("b", "system-node-critical"), ("c", "unknown"))
    ]
    trace = open_trace(simkube(tmp_path, [(0, [first, *pods], [])]), nodes=NODES)
    assert trace.priority_classes == (
        TracePriorityClass("priority-0", 0),
        TracePriorityClass("priority-900", 900),
        TracePriorityClass("system-node-critical", 2_000_001_000),
    )


@pytest.mark.parametrize(
    ("applied", "reason"),
    [
        ({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"}},
         "kind: not one whose pods are derived"),
        ({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "d"},
          "spec": {"jobTemplate": {"spec": {"template": {"spec": {}}}}}},
         "a CronJob without lifecycles of its pods"),
        (deployment("web", 10**12), "expected a pod template and at most 150000 replicas"),
        (deployment("web", -1), "expected a pod template and at most 150000 replicas"),
        (deployment(priority=10**9 + 1), "priority: not one that a PriorityClass may have"),
        (deployment(containers=[{"resources": {"requests": {"cpu": "-1"}}}]),
         "requests: negative or too large"),
        (deployment(containers=[{"resources": {"requests": {"memory": "1e30"}}}]),
         "requests: negative or too large"),
        (deployment(containers=[{"resources": {"requests": {"cpu": "much"}}}]),
         "not a valid object"),
        (deployment(nodeSelector={"zone": "a"}), "no node has the labels"),
        ({"kind": "Deployment"}, "not a valid object"),
        (17, "not a valid object"),
    ],
)  # fmt: skip
def test_an_object_that_is_no_job_is_left_out(tmp_path: Path, applied: object, reason: str) -> None:
    path = simkube(tmp_path, [(0, [deployment("fine"), applied], []), (10, [], [])])
    trace = open_trace(path, nodes=NODES)
    assert reasons(trace) == {reason: 1}
    assert trace.left_out[reason].first == f"{path}:2"


def test_events_out_of_order_and_pods_of_unknown_workloads_are_counted(tmp_path: Path) -> None:
    lifecycles: dict[tuple[str, str], dict[int, list[object]]] = {("v1.Pod", "a/b"): {1: []}}
    events: list[Event] = [(10, [deployment()], []), (5, [], [deployment()]), (20, [], [])]
    trace = open_trace(simkube(tmp_path, events, lifecycles), nodes=NODES)
    assert reasons(trace) == {
        "an event that is earlier than the last one": 1,
        "pods whose workload is not in the trace": 1,
    }


def test_a_trace_in_json_is_read(tmp_path: Path) -> None:
    document = {
        "version": 2,
        "events": [{"ts": 1, "applied_objs": [deployment()], "deleted_objs": []}],
        "pod_lifecycles": {},
    }
    trace = open_trace(write(tmp_path, json.dumps(document), "trace.json"), nodes=NODES)
    assert only_job(trace).pods == 2


def test_another_version_and_missing_nodes_are_errors(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"trace\.sktrace: version: expected 2, found 1"):
        open_trace(simkube(tmp_path, [], version=1), nodes=NODES)
    with pytest.raises(TraceError, match="format simkube: expected a list of nodes, too"):
        open_trace(simkube(tmp_path, []))
    with pytest.raises(TraceError, match="no valid job: it has no rows"):
        open_trace(simkube(tmp_path, []), nodes=NODES)


NUMBERS = st.sampled_from([0, 1, -1, 7, 10**6, 2**63 - 1, -(2**63), 2**64 - 1])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.sampled_from(["", "web", "2", "1e30", "-1", "\x00"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.just("spec"), inner),
    max_leaves=5,
)
LIFECYCLES = st.lists(
    st.just("Empty")
    | st.builds(lambda at: {"Running": at}, NUMBERS)
    | st.builds(lambda *ends: {"Finished": [*ends]}, NUMBERS, NUMBERS),
    max_size=4,
)


@given(
    times=st.lists(NUMBERS, min_size=1, max_size=4),
    replicas=NUMBERS,
    field=st.sampled_from(["containers", "priority", "nodeSelector", "overhead", "volumes"]),
    value=VALUES,
    other=VALUES,
    lifecycles=LIFECYCLES,
)
def test_no_document_raises_another_error(
    tmp_path_factory: pytest.TempPathFactory,
    times: list[int],
    replicas: int,
    field: str,
    value: object,
    other: object,
    lifecycles: list[object],
) -> None:
    changed = deployment("web", replicas, **{field: value})
    events: list[Event] = [(at, [deployment("api"), changed, other], [other]) for at in times]
    path = simkube(tmp_path_factory.mktemp("hostile"), events, {KEY: {1: lifecycles}})
    error = ""
    try:
        trace = open_trace(path, nodes=NODES)
        assert len([*trace.jobs()]) == trace.summary.job_count
    except TraceError as raised:
        error = str(raised)
    assert "\n" not in error
    assert len(error) < 2000
