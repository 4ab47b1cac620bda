"""A fake cluster in its own process, for code that must not share an interpreter with it.

    with FakeCluster.as_process() as cluster:
        subprocess.run(["kubectl", "--kubeconfig", cluster.kubeconfig_path, "get", "nodes"])

The process runs ``reprieve fakeapi`` on a free port; this module calls its management API.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Self
from urllib.parse import quote, urlencode, urlsplit

import orjson

from fakeapi.apiserver.serving.client_access import read_admin_credentials
from fakeapi.apiserver.testing.management_api import PREFIX
from fakeapi.apiserver.testing.object_history import ObjectChange, ObjectHistory
from fakeapi.apiserver.testing.request_log import RequestRecord
from fakeapi.testing.faults import FaultControl

_PROGRAM: Final = ("-c", "from fakeapi.cli import main; main()", "fakeapi", "--port", "0")
_LISTENING: Final = "listening on "
_STOP_SECONDS: Final = 10.0


class ProcessError(RuntimeError):
    """The process did not start, or rejected a management request."""


class ProcessCluster:
    """A cluster in another process, as a context manager.

    ``arguments`` are passed to ``reprieve fakeapi``.
    """

    def __init__(self, arguments: Sequence[str] = ()) -> None:
        self._arguments = tuple(arguments)
        self._stack = ExitStack()
        self.url = ""
        self.kubeconfig_path = Path()

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

    @property
    def requests(self) -> Sequence[RequestRecord]:
        """The most recent requests, oldest first."""
        return tuple(RequestRecord.of(each) for each in self._ask("GET", "requests")["requests"])

    @property
    def faults(self) -> FaultControl:
        """Fault injection between clients and the API; inactive until a plan is started."""
        return FaultControl(self._ask_faults)

    @property
    def exchanges(self) -> Sequence[dict[str, Any]]:
        """The scheduler's extender calls, with request, answer and outcome, oldest first."""
        answer: list[dict[str, Any]] = self._ask("GET", "scheduler/trace")["exchanges"]
        return answer

    def load(self, objects: Iterable[Mapping[str, Any]]) -> int:
        """Store objects (or lists of them) as they are, without admission; return their number."""
        body = orjson.dumps([dict(thing) for thing in objects])
        return int(self._ask("POST", "load", body)["loaded"])

    def snapshot(self, name: str = "") -> str:
        """Save the current state under ``name`` (or a generated name) and return the name."""
        return str(self._ask("POST", "snapshot", name=name)["name"])

    def restore(self, name: str) -> None:
        """Restore a snapshot's objects; every watch expires. Raises ProcessError."""
        self._ask("POST", f"restore/{quote(name, safe='')}")

    def reset(self) -> None:
        """Delete all objects and the history; every watch expires."""
        self._ask("POST", "reset")

    def advance(self, seconds: float) -> None:
        """Advance the cluster's clock; return when all work that was due is done."""
        self._ask("POST", "clock", advance=str(seconds))

    def history(self, kind: str, namespace: str = "", name: str = "") -> ObjectHistory:
        """Return the changes to the objects of a kind (``pods``, ``Pod``, ``deploy``)."""
        answer = self._ask("GET", "history", kind=kind, namespace=namespace, name=name)
        changes = [ObjectChange(c["version"], c["type"], c["object"]) for c in answer["changes"]]
        return ObjectHistory(answer["before"], changes)

    def fork(self, snapshot: str = "") -> str:
        """Serve a fork of a snapshot, or of the current state, and return its URL.

        The same process serves the fork until this cluster ends, and accepts the same credentials.
        """
        name = f"fork/{quote(snapshot, safe='')}" if snapshot else "fork"
        return str(self._ask("POST", name)["url"])

    def _ask_faults(self, method: str, plan: dict[str, Any] | None) -> dict[str, Any]:
        body = None if plan is None else orjson.dumps(plan)
        answer: dict[str, Any] = self._ask(method, "faults", body)
        return answer

    def _ask(self, method: str, action: str, body: bytes | None = None, **query: str) -> Any:
        target = f"{PREFIX}{action}?{urlencode({k: v for k, v in query.items() if v})}"
        admin = read_admin_credentials(self.kubeconfig_path)
        address = urlsplit(self.url).netloc
        connection = (
            HTTPSConnection(address, context=admin.tls) if admin.tls else HTTPConnection(address)
        )
        with ExitStack() as stack:
            stack.callback(connection.close)
            connection.request(method, target, body, admin.headers)
            answer = connection.getresponse()
            text = answer.read()
        if answer.status != 200:
            raise ProcessError(f"{method} {target} answered {answer.status}: {text.decode()}")
        return orjson.loads(text)


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout:
        process.stdout.close()
