"""However a command ends, it prints one line at most, and its code and its files are right."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

import pytest

from extender.recording.files import read_recording
from fakeapi import FakeCluster
from tests.builders import node_json, pod_json
from tests.commands import written
from tests.faults.processes import (
    HasUsed,
    Start,
    finish,
    handles_signals,
    start,
    unstructured_lines,
    wait_until,
)
from tests.faults.table import SIGNALS, UNWRITABLE

CODES: Final = {signal.SIGHUP: 129, signal.SIGINT: 130, signal.SIGTERM: 143}
DEFAULT_RUNS: Final = 12
LATEST_MOMENT: Final = 2.5
"""Seconds of processor time; every command has started by then."""

SHORT: Final = {
    "explain": "explain preempt --cluster {cluster} --pod {pod} -o json",
    "check-config": "check-config {config}",
    "demo": "demo --speed 10",
    "replay": "replay {recording} -o json",
    "validate": "validate workloadspread {spread}",
    "help": "--help",
}
SERVERS: Final = {
    "serve": "serve --server {url} --port 0",
    "serve --embedded": "serve --embedded demo --port 0",
    "fakeapi": "fakeapi --port 0 --kubeconfig-out {kubeconfig} --record {recorded}",
    "record": "record --server {url} --out {recorded}",
    "controllers": "controllers --server {url}",
    "replay --port": "replay {recording} --port 0 --kubeconfig-out {kubeconfig}",
    "advise --watch": "advise eviction --server {url} --watch",
}


@dataclass(frozen=True)
class Files:
    """The files and the server that commands read, and the files that they write."""

    folder: Path
    url: str

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def recorded(self) -> Path:
        return self.folder / "recorded.jsonl.gz"

    def arguments(self, template: str) -> tuple[str, ...]:
        """Fill in the names of files."""
        folder = self.folder
        spread = {
            "apiVersion": "apps.kruise.io/v1alpha1",
            "kind": "WorkloadSpread",
            "metadata": {"name": "web"},
            "spec": {
                "targetRef": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"},
                "subsets": [{"name": "a"}],
            },
        }
        (folder / "config.yaml").write_text("port: 0\n")
        return tuple(
            template.format(
                cluster=written(folder, "cluster.yaml", node_json("node-1")),
                pod=written(folder, "pod.yaml", pod_json("web")),
                spread=written(folder, "spread.yaml", spread),
                config=folder / "config.yaml",
                recording="tests/recorded/spread.jsonl.gz",
                recorded=self.recorded,
                kubeconfig=self.kubeconfig,
                url=self.url,
                folder=folder,
            ).split()
        )


@pytest.fixture
async def files(tmp_path: Path) -> AsyncIterator[Files]:
    async with FakeCluster(run="none") as cluster:
        yield Files(tmp_path, cluster.url)


RUNS: Final = [
    *range(DEFAULT_RUNS),
    *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(DEFAULT_RUNS, SIGNALS.runs)),
]


@pytest.mark.parametrize("seed", RUNS)
async def test_a_signal_at_any_moment_ends_a_command_as_it_should(files: Files, seed: int) -> None:
    rng = Random(seed)
    commands = [*SHORT.items(), *SERVERS.items()]
    name, template = commands[seed % len(commands)]
    number = rng.choice([*CODES, signal.SIGPIPE])
    process = await start(files.arguments(template))
    await wait_until(process, handles_signals)
    await wait_until(process, HasUsed(rng.uniform(0, LATEST_MOMENT)))
    expected = {0}
    if process.returncode is None:
        process.send_signal(number)
        if number != signal.SIGPIPE:
            expected.add(CODES[number])
        elif name in SERVERS:  # the signal changes nothing
            process.send_signal(signal.SIGTERM)
            expected.add(CODES[signal.SIGTERM])
    done = await finish(process)
    shown = f"{name} {number!r} {done}"
    assert done.code in expected, shown
    if done.out.startswith(("listening on", "running ")):
        assert done.code == 0, shown
    lines = unstructured_lines(done.err)
    assert all(line.startswith("reprieve: ") for line in lines), shown
    assert len(lines) <= (2 if name in SERVERS else 0), shown
    if files.kubeconfig.exists():
        assert json.loads(files.kubeconfig.read_bytes())["kind"] == "Config"
    if files.recorded.exists():
        assert not read_recording(str(files.recorded)).truncated_at
    assert not [*files.folder.glob(".*")], shown


EXPLAIN: Final = SHORT["explain"]
NO_SPACE: Final = "cannot be written: No space left on device"
OUTPUTS: Final[dict[str, tuple[str, str, int, str]]] = {
    "a full disk": (EXPLAIN, ">/dev/full", 1, f"standard output: {NO_SPACE}"),
    "no standard output": (
        EXPLAIN,
        ">&-",
        1,
        "standard output: cannot be written: Bad file descriptor",
    ),
    "no streams": (EXPLAIN, "<&- >&- 2>&-", 1, ""),
    "a log on a full disk": (f"{EXPLAIN} --upstream 9.9", "2>/dev/full", 2, ""),
    "a log that is closed": (f"{EXPLAIN} --upstream 9.9", "2>&-", 2, ""),
    "help on a full disk": ("--help", ">/dev/full", 1, f"standard output: {NO_SPACE}"),
    "a server whose output is full": (
        SERVERS["serve --embedded"],
        ">/dev/full",
        1,
        f"standard output: {NO_SPACE}",
    ),
    "input that is closed": (
        "explain preempt --cluster - --pod {pod}",
        "<&-",
        2,
        "standard input: cannot be read: Bad file descriptor",
    ),
    "a recording on a full disk": (
        "record --server {url} --out /dev/full --for 1s",
        "",
        1,
        f"/dev/full: {NO_SPACE}",
    ),
    "a recording in a directory": (
        "record --server {url} --out {folder}",
        "",
        2,
        "cannot be written: Is a directory",
    ),
    "a recording in a FIFO without a reader": (
        "record --server {url} --out {folder}/fifo",
        "",
        2,
        "fifo: cannot be written: no process reads the FIFO",
    ),
    "a recording where no file can be": (
        "record --server {url} --out /proc/events.jsonl",
        "",
        2,
        "/proc/events.jsonl: cannot be written: No such file or directory",
    ),
    "a kubeconfig in a directory": (
        "fakeapi --port 0 --kubeconfig-out {folder}",
        "",
        2,
        "Is a directory",
    ),
    "a kubeconfig where no file can be": (
        "fakeapi --port 0 --kubeconfig-out /proc/kubeconfig",
        "",
        2,
        "--kubeconfig-out: /proc/kubeconfig: No such file or directory",
    ),
}


def test_the_table_counts_the_outputs() -> None:
    assert len(OUTPUTS) == UNWRITABLE.runs


@pytest.mark.parametrize(
    ("template", "redirections", "code", "line"), OUTPUTS.values(), ids=OUTPUTS
)
async def test_output_that_cannot_be_written_is_one_line(
    files: Files, template: str, redirections: str, code: int, line: str
) -> None:
    os.mkfifo(files.folder / "fifo")
    done = await finish(await start(files.arguments(template), Start(redirections)))
    lines = [each for each in unstructured_lines(done.err) if "reprieve: recording " not in each]
    assert (done.code, len(lines)) == (code, bool(line)), done
    assert line in "".join(lines)


@pytest.mark.parametrize("program", ["reprieve", "python -m extender"])
async def test_a_reader_that_has_left_ends_a_command_without_a_line(
    files: Files, program: str
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    own = (sys.executable, "-m", "extender")
    how = Start(stdout=writing, program=own) if "python" in program else Start(stdout=writing)
    done = await finish(await start(files.arguments(EXPLAIN), how))
    os.close(writing)
    assert (done.code, done.err) == (128 + signal.SIGPIPE, "")


ENVIRONMENTS: Final[dict[str, dict[str, str | None]]] = {
    "LANG=C": {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "ASCII": {"PYTHONIOENCODING": "ascii"},
    "no HOME": {"HOME": None, "KUBECONFIG": None},
    "a HOME that is none": {"HOME": "/proc/nowhere"},
    "an unknown time zone": {"TZ": "Nowhere/At_All"},
    "no TERM": {"TERM": None},
}


@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
async def test_a_command_works_in_any_environment(
    files: Files, environment: dict[str, str | None]
) -> None:
    template = f"{EXPLAIN} -o table"
    done = await finish(await start(files.arguments(template), Start(environment=environment)))
    assert (done.code, done.err) == (0, "")
    assert done.out


async def test_a_signal_that_the_parent_ignores_does_not_end_a_server(files: Files) -> None:
    how = Start(program=("/usr/bin/env", "--ignore-signal=HUP", *Start().program))
    process = await start(files.arguments(SERVERS["fakeapi"]), how)
    assert process.stdout is not None
    await process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    done = await finish(process)
    assert (done.code, done.err) == (0, "")
