"""The processes of a load run, and observations of their memory and processor time."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.bench.servers.processes import (
    READY_SECONDS,
    Server,
    echo,
    loaded,
    processor_seconds,
    reprieve,
    resident_bytes,
)
from tests.commands import wait_ready
from tests.load.bodies import preemptors
from tests.load.figures import Moment, Share, rate
from tests.load.mixes import CAPACITY, KINDS, NODES, PODS_PER_NODE, Phase, Plan
from tests.load.records import read_calls

CONFIG: Final = """\
promiseSeconds: 3600
deadlineMilliseconds: {filter: 2000, preempt: 2000}
search: offered
"""
"""Three options differ from the defaults: assumed preemptions outlast a run, so that each is known;
deadlines are longer, since the processes of a run share the cores; and only the offered nodes are
searched, so that the kinds of calls differ in cost.
"""

EXTENDER: Final = "extender"
_LOCUSTFILE: Final = Path(__file__).with_name("locustfile.py")
_POLL_SECONDS: Final = 1.0
_STOP_SECONDS: Final = 10
_LEAST_RATE: Final = 1.0


@dataclass(slots=True)
class Churn:
    """The process that changes pods; once it has ended, how many changes in how many seconds."""

    pid: int
    changes: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Observer:
    """Observes the extender's memory and the processor time of all processes in a phase."""

    pids: Mapping[str, int]
    moments: list[Moment] = field(default_factory=list)
    shares: list[Share] = field(default_factory=list)

    def watch(self, phase: str, process: subprocess.Popen[bytes]) -> None:
        """Return when locust has ended. Raises RuntimeError if it did not end well."""
        pids = {"locust": process.pid, **self.pids}
        begun, first = time.monotonic(), _processor(pids)
        ended, last = begun, first
        while _still_runs(process):
            ended, last = time.monotonic(), _processor(pids)
            self.moments.append(Moment(phase, ended, resident_bytes(self.pids[EXTENDER])))
        if process.returncode:
            raise RuntimeError(f"{phase}: locust ended with {process.returncode}; see its log")
        taken = {name: last[name] - first[name] for name in pids}
        self.shares.append(Share(phase, ended - begun, taken))


def _still_runs(process: subprocess.Popen[bytes]) -> bool:
    """Return, after a second or at its end, whether a process still runs."""
    try:
        process.wait(_POLL_SECONDS)
    except subprocess.TimeoutExpired:
        return True
    return False


def _processor(pids: Mapping[str, int]) -> dict[str, float]:
    return {name: processor_seconds(pid) for name, pid in pids.items()}


def start(stack: ExitStack, directory: Path, log: Path) -> dict[str, Server]:
    """Start fakeapi, loaded, the extender, synced, and the echo, until the stack is left."""
    config = directory / "reprieve.yaml"
    config.write_text(CONFIG)
    pods = [pod for kind in KINDS for pod in preemptors(kind)]
    api = stack.enter_context(loaded(NODES, PODS_PER_NODE, more=pods))
    flags = ("--port", "0", "--config", str(config), "--server", api.url)
    extender = stack.enter_context(reprieve("serve", *flags, log=log))
    asyncio.run(wait_ready(extender.url, READY_SECONDS))
    return {EXTENDER: extender, "fakeapi": api, "echo": stack.enter_context(echo())}


@contextmanager
def churn(server: Server, seen: Path) -> Iterator[Churn]:
    """Change pods while the block runs; what a watch shows of it is written to ``seen``."""
    command = [sys.executable, "-m", "tests.load.churn", "--server", server.url, "--out", str(seen)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout as told:
        if not told.readline().startswith("listening on "):
            raise RuntimeError("the changes of pods did not begin")
        changing = Churn(process.pid)
        try:
            yield changing
        finally:
            process.terminate()
            last = told.readline()
            process.wait()
        if not last:
            raise RuntimeError("the changes of pods broke off")
        ended = json.loads(last)
        changing.changes, changing.seconds = ended["changes"], ended["seconds"]


def locust(
    phase: Phase, plan: Plan, servers: Mapping[str, Server], results: Path
) -> subprocess.Popen[bytes]:
    """Start locust for a phase; it ends by itself."""
    rates = max(_LEAST_RATE, phase.rate * _capacity(results)) if phase.rate else _LEAST_RATE
    options = {
        "host": servers[EXTENDER].url,
        "echo": servers["echo"].url,
        "phase": phase.name,
        "bodies": results / "bodies",
        "out": results,
        "rate": f"{rates:.1f}",
        "doubling": phase.doubling,
        "sampling": plan.sampling,
        "run-time": f"{phase.seconds}s",
        "users": sum(phase.users.values()),
        "counts": json.dumps(dict(phase.users)),
        "spawn-rate": 100,
        "stop-timeout": _STOP_SECONDS,
        "csv": results / f"locust-{phase.name}",
        "loglevel": "WARNING",
        "exit-code-on-error": 0,
    }
    flags = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    fixed = ["--only-summary", "--headless", *phase.users]
    with (results / f"locust-{phase.name}.log").open("wb") as log:
        command = [sys.executable, "-m", "locust", "-f", str(_LOCUSTFILE), *flags, *fixed]
        return subprocess.Popen(command, stdout=log, stderr=log)


def calls_path(phase: Phase, results: Path) -> Path:
    """Return the path at which locust writes the calls of a phase."""
    return results / f"calls-{phase.name}.csv"


def samples_path(phase: Phase, results: Path) -> Path:
    """Return the path at which locust writes the answers that it kept of a phase."""
    return results / f"samples-{phase.name}.jsonl"


def _capacity(results: Path) -> float:
    return rate(read_calls(results / f"calls-{CAPACITY}.csv"))
