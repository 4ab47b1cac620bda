"""Servers as processes of their own, so that a client never shares their interpreter."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_REPRIEVE = ("-c", "from fakeapi.cli import main; main()")


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: where it listens, and its process id."""

    url: str
    pid: int

    def resident_bytes(self) -> int:
        """Give the memory that the process holds now."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError(f"process {self.pid} has ended")


@contextmanager
def reprieve(*arguments: str) -> Iterator[Server]:
    """Run a ``reprieve`` server while the block runs."""
    with _listening(*_REPRIEVE, *arguments) as server:
        yield server


@contextmanager
def echo() -> Iterator[Server]:
    """Run the echo server while the block runs."""
    with _listening("-m", "tests.bench.echo") as server:
        yield server


@contextmanager
def _listening(*arguments: str) -> Iterator[Server]:
    process = subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        line = process.stdout.readline() if process.stdout else ""
        if not line.startswith("listening on "):
            raise RuntimeError(f"{' '.join(arguments)} did not start: {line!r}")
        yield Server(line.removeprefix("listening on ").strip(), process.pid)
    finally:
        process.terminate()
        process.wait()
        if process.stdout:
            process.stdout.close()
