"""A Dask and a Ray cluster of this machine, each with two workers.

Ray replaces 127.0.0.1 by the machine's address, so its cluster is on 127.0.0.2. Some of its servers
listen on all addresses: they require a token.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(sys.executable).parent


@pytest.fixture(scope="module")
def dask_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("dask")
    options = ("--host", "127.0.0.1", "--no-dashboard")
    scheduler = ("dask", "scheduler", *options, "--port", "0")
    with running(scheduler, r"Scheduler at: +(tcp://127.0.0.1:\d+)", folder) as address:
        workers = ("--nworkers", "2", "--nthreads", "1", "--local-directory", str(folder))
        worker = ("dask", "worker", address, *options, *workers)
        with running(worker, r"Registered to: +(tcp://\S+)", folder):
            yield address


@pytest.fixture(scope="module")
def ray_address() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        head = (
            *("ray", "start", "--head", "--block", "--node-ip-address", "127.0.0.2"),
            *("--port", "0", "--min-worker-port", "0", "--max-worker-port", "0"),
            *("--include-dashboard", "false", "--dashboard-agent-listen-port", "0"),
            *("--disable-usage-stats", "--num-cpus", "2", "--object-store-memory", "80000000"),
        )
        # The paths of Ray's Unix sockets are too long in pytest's folders.
        with TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as folder:
            ready = r"ray start --address='(127.0.0.2:\d+)'"
            with running((*head, "--temp-dir", folder), ready, Path(folder)) as address:
                yield address


@contextmanager
def running(command: tuple[str, ...], ready: str, folder: Path) -> Iterator[str]:
    """Run a program of the environment; yield what the group of ``ready`` finds in its output."""
    program, *arguments = command
    process = subprocess.Popen(
        [PROGRAMS / program, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    output = iter(process.stdout)
    lines: list[str] = []
    try:
        while not (found := re.search(ready, lines[-1] if lines else "")):
            line = next(output, "")
            assert line, "".join(lines)
            lines.append(line)
        discarding = Thread(target=lines.extend, args=(output,))
        discarding.start()
        yield found[1]
        process.terminate()
        process.wait()
        discarding.join()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        process.stdout.close()
