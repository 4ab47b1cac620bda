"""``reprieve tune`` in real processes: results, interruptions, and errors in one line."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from extender.terminal.output import OutputFormat
from fakeapi.backtest.tuning.command import tune_policy
from policies.kubernetes.input_error import InputError
from tests.builders.traces import JOBS, NODES, POLICY, SMALL
from tests.commands import ROOT, reprieve, start

TUNE = ("tune", SMALL, "--minimize", "lost-gpu-hours", "--drain", "1h", "--segments", "2")
QUICK = (*TUNE, "--seeds", "1", "--trials", "3")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "jobs.csv").write_text(JOBS)
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "notes.txt").write_text("not a trace\n")
    return tmp_path


async def test_the_result_is_the_same_for_each_number_of_workers(folder: Path) -> None:
    policy = ("--policy", str(folder / "policy.yaml"), "-o", "json")
    outs = [folder / "one.yaml", folder / "two.yaml"]
    one, two = await asyncio.gather(
        *(
            reprieve(*QUICK, *policy, "--workers", str(number), "--out", str(out))
            for number, out in enumerate(outs, 1)
        )
    )
    assert (one.code, two.code) == (0, 0), one.err
    assert one.out == two.out
    found = json.loads(one.out)
    assert (found["trials"], found["seeds"], found["base"]["trial"]) == (3, 1, 0)
    assert (found["trainingSegments"], found["heldOutSegments"]) == (1, 1)
    assert found["recommended"] == "cheap"  # one seed has no intervals
    assert outs[0].read_text() == outs[1].read_text()
    assert outs[0].read_text().startswith("# Found by reprieve tune ")
    checked = await reprieve("policy", "check", str(outs[0]))
    assert checked.out == f"{outs[0]}: valid\n"


@pytest.mark.slow
async def test_a_tuning_that_is_stopped_reports_the_best_so_far() -> None:
    process = await start(
        *(*TUNE, "--policy", "kube-scheduler", "--seeds", "1", "--trials", "16"),
        *("--workers", "1", "-o", "json"),
    )
    assert process.stderr is not None
    while not (await process.stderr.readline()).startswith(b"reprieve: 9 of 18 units"):
        pass
    process.send_signal(signal.SIGINT)
    out, _ = await process.communicate()
    assert process.returncode == 128 + signal.SIGINT
    found = json.loads(out)
    assert (found["planned"], found["trials"], found["validation"]) == (16, 8, None)
    assert (found["base"]["trial"], found["recommended"]) == (0, "kube-scheduler")


def test_without_the_extra_the_command_names_it() -> None:
    program = "import sys; sys.modules['optuna'] = None; from fakeapi.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, *QUICK, "--policy", "kube-scheduler"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "reprieve: reprieve tune needs the package optuna; install it with: "
        "pip install 'reprieve[tune]'\n"
    )


async def test_bad_usage_is_one_line() -> None:
    done = await reprieve("tune", SMALL, "--minimize", "disruptions")
    assert (done.code, done.out) == (2, "")
    assert done.err == "reprieve: Missing option '--policy'; see reprieve tune --help\n"


BASE = "kube-scheduler"
NUMBER = "--minimize, --maximize: expected one or two different measures; found none"


@pytest.mark.parametrize(
    ("workload", "policy", "options", "error"),
    [
        ("jobs.csv", BASE, {"minimize": []}, NUMBER),
        (
            "jobs.csv",
            BASE,
            {"minimize": ["lost-gpu-hours"]},
            "--minimize lost-gpu-hours: unknown measure; did you mean lost-cpu-hours? expected one",
        ),
        (
            "jobs.csv",
            BASE,
            {"maximize": ["cascades"]},
            "--maximize cascades: lower is better; expected --minimize cascades",
        ),
        ("absent.csv", BASE, {}, "absent.csv: expected a file"),
        ("notes.txt", BASE, {}, "notes.txt: expected the columns of a trace"),
        ("jobs.csv", "absent", {}, "policy 'absent': no such file or built-in policy"),
        ("jobs.csv", "notes.txt", {}, "notes.txt:1: (the document): Expected object, got str"),
        (
            "jobs.csv",
            "stock",
            {},
            "--policy stock: has no criteria; expected kube-scheduler or a file",
        ),
        (
            "jobs.csv",
            BASE,
            {"held_out": 3},
            "--held-out 3: expected less than the 3 segments of the workload",
        ),
        (
            "jobs.csv",
            BASE,
            {"workers": 2, "ray": "127.0.0.1:1"},
            "--workers and --ray: expected only one of them",
        ),
        ("jobs.csv", BASE, {"upstream": "1.2"}, "unknown Kubernetes release '1.2'; expected one"),
        ("jobs.csv", BASE, {"drain": "soon"}, "--drain: 'soon'; expected a duration such as 24h"),
        (
            "jobs.csv",
            BASE,
            {"output": OutputFormat.HTML},
            "-o html: expected table, wide, json or yaml",
        ),
        (
            "jobs.csv",
            BASE,
            {"out": Path("absent/tuned.yaml")},
            "--out absent/tuned.yaml: expected a file in a directory that exists",
        ),
    ],
)
def test_bad_input_is_one_line(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    workload: str,
    policy: str,
    options: dict[str, Any],
    error: str,
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(InputError) as raised:
        tune_policy(workload, policy, **{"minimize": ["disruptions"], **options})
    (line,) = raised.value.errors
    assert line.startswith(error)
