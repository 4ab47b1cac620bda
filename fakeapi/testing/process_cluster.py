"""A fake cluster in its own process, for code that must not share an interpreter with it.

    with FakeCluster.as_process() as cluster:
        subprocess.run(["kubectl", "--kubeconfig", cluster.kubeconfig_path, "get", "nodes"])

The process runs ``reprieve fakeapi`` on a free port.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Self

from fakeapi.testing.remote_cluster import RemoteCluster

_PROGRAM: Final = ("-c", "from fakeapi.cli import main; main()", "fakeapi", "--port", "0")
_LISTENING: Final = "listening on "
_STOP_SECONDS: Final = 10.0


class ProcessError(RuntimeError):
    """The process did not start."""


class ProcessCluster(RemoteCluster):
    """A cluster in another process, as a context manager.

    ``arguments`` are passed to ``reprieve fakeapi``.
    """

    def __init__(self, arguments: Sequence[str] = ()) -> None:
        super().__init__()
        self._arguments = tuple(arguments)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            directory = stack.enter_context(TemporaryDirectory(prefix="fakeapi-"))
            self.kubeconfig_path = Path(directory) / "kubeconfig"
            process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, *_PROGRAM, *self._options()], stdout=subprocess.PIPE, text=True
            )
            stack.callback(_stop, process)
            line = process.stdout.readline() if process.stdout else ""
            if not line.startswith(_LISTENING):
                raise ProcessError(f"fakeapi did not start: {line.strip() or 'see its stderr'}")
            self.url = line.removeprefix(_LISTENING).strip()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def _options(self) -> tuple[str, ...]:
        return ("--kubeconfig-out", str(self.kubeconfig_path), *self._arguments)


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout:
        process.stdout.close()
