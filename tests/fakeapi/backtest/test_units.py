"""Units: what determines their results, their keys, and where they can run."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog

from extender.config.strict_decoding import ConfigError
from fakeapi.backtest.traces.formats import open_trace
from fakeapi.backtest.traces.trace import TraceError
from fakeapi.backtest.units import (
    Unit,
    UnitError,
    plan_units,
    read_policies,
    run_unit,
)
from fakeapi.backtest.workloads import TraceWorkload, open_workload
from tests.builders.traces import JOBS, NODES, OPTIONS, POLICY, SMALL, planned


def only(unit: tuple[Unit, ...]) -> Unit:
    (found,) = unit
    return found


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    (tmp_path / "nodes.csv").write_text(NODES)
    path = tmp_path / "jobs.csv"
    path.write_text(JOBS)
    return path


class TestKey:
    def test_units_of_the_same_input_have_the_same_keys(self, jobs: Path) -> None:
        keys = [[unit.key for unit in planned(open_trace(str(jobs)), parts=2)] for _ in range(2)]
        assert keys[0] == keys[1]

    @pytest.mark.parametrize(
        ("name", "before", "after"),
        [
            ("jobs.csv", "600", "601"),
            ("jobs.csv", "train", "other"),
            ("nodes.csv", "8", "9"),
        ],
    )
    def test_a_change_of_the_trace_changes_keys(
        self, jobs: Path, name: str, before: str, after: str
    ) -> None:
        first = only(planned(open_trace(str(jobs))))
        path = jobs.parent / name
        path.write_text(path.read_text().replace(before, after))
        assert only(planned(open_trace(str(jobs)))).key != first.key

    def test_the_place_and_format_of_a_trace_do_not_change_keys(self, jobs: Path) -> None:
        first = only(planned(open_trace(str(jobs))))
        moved = jobs.with_name("moved.csv")
        jobs.rename(moved)
        assert only(planned(open_trace(str(moved), "csv"))).key == first.key

    def test_all_units_of_a_backtest_have_different_keys(self, tmp_path: Path) -> None:
        policy = tmp_path / "policy.yaml"
        policy.write_text(POLICY)
        names = ("stock", "kube-scheduler", str(policy))
        units = planned(open_trace(SMALL), names, seeds=3, parts=2)
        changed = [
            replace(units[0], options=replace(OPTIONS, upstream="1.34")),
            replace(units[0], options=replace(OPTIONS, drain_ns=0)),
            replace(units[0], version="0.0.1"),
        ]
        assert len({unit.key for unit in (*units, *changed)}) == 3 * 3 * 2 + 3

    def test_the_text_of_a_policy_changes_keys_and_its_path_does_not(self, tmp_path: Path) -> None:
        texts = {"a": POLICY, "b": POLICY, "c": POLICY.replace("default", "all")}
        keys = []
        for name, text in texts.items():
            (tmp_path / name).write_text(text)
            keys.append(only(planned(open_trace(SMALL), (str(tmp_path / name),))).key)
        assert keys[0] == keys[1] != keys[2]


class TestRunUnit:
    def test_the_same_unit_has_the_same_result_in_each_run(self) -> None:
        unit = only(planned(open_trace(SMALL)))
        first = run_unit(unit)
        assert first.statistics.preemptions > 0
        assert run_unit(pickle.loads(pickle.dumps(unit))) == first  # noqa: S301

    def test_it_does_not_configure_the_log_of_the_process(self) -> None:
        before = structlog.get_config()
        run_unit(only(planned(open_trace(SMALL))))
        assert structlog.get_config() == before

    def test_seeds_and_segments_differ(self) -> None:
        units = planned(open_trace(SMALL), seeds=2, parts=2)
        assert len({run_unit(unit).statistics.digest for unit in units}) == 4

    def test_a_worker_with_another_version_refuses_units(self) -> None:
        unit = replace(only(planned(open_trace(SMALL))), version="9.9.9")
        with pytest.raises(UnitError, match=r"worker \S+: expected version 9.9.9 of reprieve"):
            run_unit(unit)

    def test_a_worker_that_reads_other_jobs_refuses_units(self, jobs: Path) -> None:
        unit = only(planned(open_trace(str(jobs))))
        jobs.write_text(jobs.read_text().replace("600", "601"))
        with pytest.raises(UnitError, match=r"jobs.csv: expected the same content on all workers"):
            run_unit(unit)

    def test_a_worker_without_the_trace_names_the_file(self, jobs: Path) -> None:
        unit = only(planned(open_trace(str(jobs))))
        jobs.unlink()
        with pytest.raises(TraceError, match=r"jobs.csv: expected a file"):
            run_unit(unit)


def test_the_first_seed_is_planned_first() -> None:
    trace = TraceWorkload(open_trace(SMALL))
    units = plan_units([trace, trace], read_policies(["stock", "kube-scheduler"]), 2, OPTIONS)
    assert [(unit.seed, unit.segment, unit.policy.name) for unit in units[:5]] == [
        (0, 0, "stock"),
        (0, 0, "kube-scheduler"),
        (0, 1, "stock"),
        (0, 1, "kube-scheduler"),
        (1, 0, "stock"),
    ]


def test_policies_have_the_names_of_their_files_content(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(POLICY)
    names = ["stock", "kube-scheduler", str(tmp_path / "a.yaml")]
    assert [each.name for each in read_policies(names)] == ["stock", "kube-scheduler", "cheap"]


@pytest.mark.parametrize(
    ("names", "error"),
    [
        (["stock", "stock"], r"--policy: expected different names; 2 policies have 'stock'"),
        (["a.yaml", "b.yaml"], r"--policy: expected different names; 2 policies have 'cheap'"),
        (["absent"], r"policy 'absent': no such file or built-in policy"),
    ],
)
def test_policies_that_cannot_be_compared_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str], error: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(POLICY)
    with pytest.raises(ConfigError, match=error):
        read_policies(names)


def test_a_workload_is_summarized(jobs: Path) -> None:
    jobs.write_text(JOBS + "late,web,x,90,600,1,1Gi,0,1,0\n")
    found = open_workload(str(jobs)).summary
    assert (found.nodes, found.jobs, found.capacity["cpu"]) == (2, 3, 16_000)
    assert "pods" not in found.capacity
    assert [(each.count, each.first) for each in found.left_out] == [(1, f"{jobs}:5")]


RECORDED = str(Path(__file__).parents[2] / "recorded" / "preemption.jsonl.gz")


def test_a_recording_is_one_unit_of_each_policy_and_seed() -> None:
    opened = open_workload(RECORDED)
    units = plan_units(opened.segments, read_policies(["kube-scheduler"]), 1, OPTIONS)
    found = run_unit(only(pickle.loads(pickle.dumps(units))))  # noqa: S301
    assert (opened.summary.nodes, found.statistics.preemptions) == (8, 5)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"number": 2}, "--segments: a recording has its own nodes, and is one segment"),
        ({"nodes": Path("nodes.csv")}, "--nodes: a recording has its own nodes"),
    ],
)
def test_a_recording_is_not_cut(options: dict[str, Any], error: str) -> None:
    with pytest.raises(TraceError, match=error):
        open_workload(RECORDED, **options)


def test_a_file_that_is_no_recording_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("{}")
    with pytest.raises(TraceError, match=r"events.jsonl"):
        open_workload(str(path))
