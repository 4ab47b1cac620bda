"""Servers as processes, so that clients do not share their interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.bench.clusters import PREFIX, cluster, encoded
from tests.builders import Document
from tests.commands import COMMAND

READY_SECONDS: Final = 600.0
"""The longest first sync of an extender."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: where it listens, its process id, and the seconds from exec to that."""

    url: str
    pid: int
    started_in: float

    def resident_bytes(self) -> int:
        """Return the memory that the process holds now."""
        return resident_bytes(self.pid)


def resident_bytes(pid: int) -> int:
    """Return the memory that a process holds now."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"process {pid} has ended")


def processor_seconds(pid: int) -> float:
    """Return the processor time that a process has taken until now, all of its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def reprieve(*arguments: str, log: Path = Path(os.devnull)) -> Iterator[Server]:
    """Run a ``reprieve`` server while the block runs; what it logs goes to a file."""
    with _listening(*COMMAND, *arguments, log=log) as server:
        yield server


@contextmanager
def loaded(
    nodes: int, pods_per_node: int, prefix: str = PREFIX, more: Iterable[Document] = ()
) -> Iterator[Server]:
    """Run a fakeapi that has loaded a benchmark cluster and ``more``, while the block runs.

    ``prefix`` is what the nodes' names begin with.
    """
    with TemporaryDirectory() as directory:
        path = Path(directory) / "cluster.jsonl"
        lines = (encoded(each) for each in (*cluster(nodes, pods_per_node), *more))
        renamed = (line.replace(PREFIX.encode(), prefix.encode()) for line in lines)
        path.write_bytes(b"\n".join(renamed))
        with reprieve("fakeapi", "--port", "0", "--run", "none", "--load", str(path)) as server:
            yield server


@contextmanager
def echo() -> Iterator[Server]:
    """Run the echo server while the block runs."""
    with _listening(sys.executable, "-m", "tests.bench.servers.echo") as server:
        yield server


@contextmanager
def approving(url: str) -> Iterator[Server]:
    """Run a webhook that allows all pods, registered at the API server of the URL."""
    with _listening(sys.executable, "-m", "tests.bench.servers.allow_webhook", url) as server:
        yield server


@contextmanager
def _listening(*arguments: str, log: Path = Path(os.devnull)) -> Iterator[Server]:
    begun = time.perf_counter()
    with log.open("wb") as file:
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=file, text=True)
    try:
        line = process.stdout.readline() if process.stdout else ""
        if not line.startswith("listening on "):
            raise RuntimeError(f"{' '.join(arguments)} did not start: {line!r}")
        took = time.perf_counter() - begun
        yield Server(line.removeprefix("listening on ").strip(), process.pid, took)
    finally:
        process.terminate()
        process.wait()
        if process.stdout:
            process.stdout.close()
