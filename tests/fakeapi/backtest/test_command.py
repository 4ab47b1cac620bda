"""``reprieve backtest`` in real processes: reports, interruptions, and errors in one line."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from pathlib import Path

import pytest

from tests.builders.traces import JOBS, NODES, POLICY, SMALL
from tests.commands import reprieve, start

BACKTEST = ("backtest", SMALL, "--drain", "1h", "--seeds", "2")
LONG = (*BACKTEST[:-1], "5")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "jobs.csv").write_text(JOBS)
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "notes.txt").write_text("not a trace\n")
    return tmp_path


class TestReport:
    async def test_it_is_the_same_for_each_number_of_workers(self) -> None:
        one, two = await asyncio.gather(
            *(reprieve(*BACKTEST, "--workers", number, "-o", "json") for number in ("1", "2"))
        )
        assert (one.code, two.code) == (0, 0)
        assert one.out == two.out
        report = json.loads(one.out)
        assert report["policies"] == ["stock", "kube-scheduler"]
        assert (report["missing"], report["completeSeeds"]["stock"]) == (0, 2)
        assert one.err.splitlines()[-1] == "reprieve: 4 of 4 units"

    async def test_a_file_of_results_is_used_again(self, folder: Path) -> None:
        options = ("--results", str(folder / "results.jsonl"), "-o", "html")
        first = await reprieve(*BACKTEST, *options)
        lines = (folder / "results.jsonl").read_bytes().splitlines(keepends=True)
        (folder / "results.jsonl").write_bytes(b"".join(lines[:3]) + lines[3][:40])
        again = await reprieve(*BACKTEST, *options)
        assert again.out == first.out
        assert first.out.startswith("<!DOCTYPE html>")
        assert again.err == "reprieve: 4 of 4 units\n"

    async def test_a_trace_and_a_policy_in_files(self, folder: Path) -> None:
        policy = ("--policy", "stock", "--policy", str(folder / "policy.yaml"))
        done = await reprieve("backtest", str(folder / "jobs.csv"), *policy, "--seeds", "1")
        assert done.code == 0, done.err
        report = "".join(done.out.split())  # a long path is broken at the width of the table
        assert report.startswith(f"backtestof{folder / 'jobs.csv'}:jobs3,duration1min")
        assert "cheapvsstock" in report


class TestInterruption:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    async def test_finished_units_are_kept(self, number: signal.Signals) -> None:
        options = ("--workers", "1", "-o", "json")
        process = await start(*LONG, *options)
        assert process.stderr is not None
        assert (await process.stderr.readline()).startswith(b"reprieve: 1 of 10 units, about ")
        process.send_signal(number)
        out, err = await process.communicate()
        assert (process.returncode, out) == (128 + number, b"")
        found = re.fullmatch(
            r"reprieve: stopped; (\d+) of 10 units have finished; "
            r"to continue, run the command again with --results (/.+)",
            err.decode().splitlines()[-1],
        )
        assert found is not None
        kept, path = int(found[1]), found[2]
        again = await reprieve(*BACKTEST, *options, "--results", path)
        Path(path).unlink()  # noqa: ASYNC240 - a small file
        assert again.code == 0
        assert [line.split(",")[0] for line in again.err.splitlines()] == [
            f"reprieve: {number} of 4 units" for number in range(min(kept, 3) + 1, 5)
        ]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["absent.csv"], "absent.csv: expected a file"),
        (["notes.txt"], "notes.txt: expected the columns of a trace (openb: "),
        (["jobs.csv", "--format", "cvs"], "format: expected openb, gpu-v2025, philly, csv, "),
        (["jobs.csv", "--nodes", "notes.txt"], "notes.txt: "),
        (["synthetic:pods=many"], "synthetic: pods: not a number; expected a number up to"),
        (["jobs.csv", "--policy", "absent"], "policy 'absent': no such file or built-in policy"),
        (["jobs.csv", "--policy", "notes.txt"], "notes.txt:1: "),
        (
            ["jobs.csv", "--policy", "stock", "--policy", "stock"],
            "--policy: expected different names; 2 policies have 'stock'",
        ),
        (["jobs.csv", "--seeds", "0"], "Invalid value for '--seeds': 0 is not in the range"),
        (["jobs.csv", "--workers", "0"], "Invalid value for '--workers': 0 is not in the range"),
        (
            ["jobs.csv", "--workers", "2", "--dask", "127.0.0.1:1"],
            "--workers and --dask: expected only one of them",
        ),
        (
            ["jobs.csv", "--upstream", "1.2"],
            "unknown Kubernetes release '1.2'; expected one of 1.30, ",
        ),
        (["jobs.csv", "--drain", "soon"], "--drain: 'soon'; expected a duration such as 24h"),
        (["jobs.csv", "--drain", "-1h"], "--drain: '-1h'; expected a duration such as 24h"),
        (["jobs.csv", "-o", "csv"], "-o csv: expected table, wide, json, yaml or html"),
        (["jobs.csv", "--results", "notes.txt"], "notes.txt:1: expected a result of a backtest"),
        (["jobs.csv", "--results", "."], ".: cannot be opened: Is a directory"),
    ],
    ids=lambda each: " ".join(each[-2:]) if isinstance(each, list) else "",
)
async def test_bad_input_is_one_line(folder: Path, arguments: list[str], error: str) -> None:
    files = ("jobs.csv", "notes.txt", "absent.csv")
    paths = [str(folder / each) if each in files else each for each in arguments]
    done = await reprieve("backtest", *paths)
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert line.startswith("reprieve: ")
    assert error in line
