"""Clusters whose API server runs in a thread or in another process: plain calls over HTTP.

The calls are those of the management API (:mod:`fakeapi.apiserver.testing.management_api`). Each
returns when it is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import quote, urlencode, urlsplit

import orjson

from fakeapi.apiserver.serving.client_access import (
    UserAccess,
    copy_kubeconfig,
    read_admin_credentials,
    user_access,
)
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.testing.fault_injection import PlanError
from fakeapi.apiserver.testing.management_api import PREFIX
from fakeapi.apiserver.testing.object_history import ObjectChange, ObjectHistory
from fakeapi.apiserver.testing.object_requests import OBJECTS_PATH
from fakeapi.apiserver.testing.request_log import RequestRecord
from fakeapi.apiserver.wire.errors import StatusError
from fakeapi.testing.faults import FaultControl
from fakeapi.testing.object_calls import ObjectCall, decode_answer, non_empty
from fakeapi.testing.object_methods import ObjectMethods
from fakeapi.testing.object_sources import ObjectSources, read_objects, sources_in_errors
from fakeapi.testing.object_waits import ObjectWait

_ON_LOOP: Final = frozenset(
    ("api", "client", "control_plane", "local_transport", "record", "replay", "scheduler", "world")
)


class RemoteCluster(ObjectMethods[Document, Sequence[Document], None]):
    """A cluster at a URL, with the administrator's kubeconfig."""

    def __init__(self, url: str = "", kubeconfig_path: Path = Path()) -> None:
        self.url = url
        self.kubeconfig_path = kubeconfig_path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """Do nothing: the server belongs to another cluster."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Explain what only a cluster on the test's event loop has."""
            if name in _ON_LOOP:
                raise AttributeError(
                    f"{name}: only clusters on the test's event loop have it; "
                    "use `async with FakeCluster()`"
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def clock(self) -> RemoteClock:
        """The cluster's clock."""
        return RemoteClock(self)

    @property
    def requests(self) -> Sequence[RequestRecord]:
        """The most recent requests, oldest first."""
        return tuple(RequestRecord.of(each) for each in self.manage("GET", "requests")["requests"])

    @property
    def faults(self) -> FaultControl:
        """Fault injection between clients and the API; inactive until a plan is started."""
        return FaultControl(self._ask_faults)

    @property
    def exchanges(self) -> Sequence[dict[str, Any]]:
        """The scheduler's extender calls, with request, answer and outcome, oldest first."""
        answer: list[dict[str, Any]] = self.manage("GET", "scheduler/trace")["exchanges"]
        return answer

    def load(self, objects: ObjectSources) -> int:
        """Store objects, files, globs or text as :meth:`fakeapi.FakeCluster.load` does."""
        documents, sources = read_objects(objects)
        with sources_in_errors(sources):
            return int(self.manage("POST", "load", orjson.dumps(list(documents)))["loaded"])

    def export(self) -> list[dict[str, Any]]:
        """Return all objects as manifests that :meth:`load` accepts."""
        items: list[dict[str, Any]] = self.manage("GET", "export")["items"]
        return items

    def snapshot(self, name: str = "") -> str:
        """Save the current state under ``name`` (or a generated name) and return the name."""
        return str(self.manage("POST", "snapshot", name=name)["name"])

    def restore(self, name: str) -> None:
        """Restore a snapshot's objects; every watch expires. Raises StatusError (404)."""
        self.manage("POST", f"restore/{quote(name, safe='')}")

    def reset(self) -> None:
        """Delete all objects and the history; every watch expires."""
        self.manage("POST", "reset")

    def advance(self, seconds: float) -> None:
        """Advance the cluster's clock; return when all work that was due is done."""
        self.clock.advance(seconds)

    def history(self, kind: str, namespace: str = "", name: str = "") -> ObjectHistory:
        """Return the changes to the objects of a kind (``pods``, ``Pod``, ``deploy``)."""
        answer = self.manage("GET", "history", kind=kind, namespace=namespace, name=name)
        changes = [ObjectChange(c["version"], c["type"], c["object"]) for c in answer["changes"]]
        return ObjectHistory(answer["before"], changes)

    def fork(self, snapshot: str = "") -> RemoteCluster:
        """Return a cluster with the state of a snapshot or the current one.

        The same server process serves it until this cluster ends, with the same credentials. Raises
        StatusError (404).
        """
        action = f"fork/{quote(snapshot, safe='')}" if snapshot else "fork"
        url = str(self.manage("POST", action)["url"])
        path = self.kubeconfig_path.with_name(f"kubeconfig-{urlsplit(url).port}")
        return RemoteCluster(url, copy_kubeconfig(self.kubeconfig_path, path, server=url))

    def add_user(self, name: str, groups: Sequence[str] = ()) -> UserAccess:
        """Add a user, and return the token and a kubeconfig; raises ValueError without TLS."""
        return user_access(self.kubeconfig_path, name, lambda: self._new_token(name, groups))

    def manage(self, method: str, action: str, body: bytes = b"", **query: str) -> Any:
        """Call the management API, and return the decoded answer; raises StatusError."""
        return self._send(PREFIX + action, ObjectCall(method, non_empty(**query), body))

    def _perform(self, call: ObjectCall) -> Any:
        return call.result(self._send(OBJECTS_PATH, call))

    def _perform_all(self, calls: Sequence[ObjectCall]) -> list[Document]:
        return [self._perform(call) for call in calls]

    def _wait(self, call: ObjectCall, wait: ObjectWait, seconds: float) -> Document:
        deadline = monotonic() + seconds
        try:
            while not self._watch(call, wait, deadline):
                wait.restart()
        except TimeoutError:
            raise wait.error(seconds) from None
        return wait.last

    def _send(self, path: str, call: ObjectCall) -> Any:
        with self._answer(path, call) as (_, answer):
            return decode_answer(answer.status, answer.read())

    def _watch(self, call: ObjectCall, wait: ObjectWait, deadline: float) -> bool:
        """Return whether the object reached the state before the watch ended."""
        with self._answer(OBJECTS_PATH, call, deadline) as (connection, answer):
            if answer.status >= 400:
                decode_answer(answer.status, answer.read())
            while line := answer.readline():
                if wait.feed(line):
                    return True
                _limit(connection, deadline)
        return False

    @contextmanager
    def _answer(
        self, path: str, call: ObjectCall, deadline: float | None = None
    ) -> Iterator[tuple[HTTPConnection, HTTPResponse]]:
        admin = read_admin_credentials(self.kubeconfig_path)
        address = urlsplit(self.url).netloc
        connection = (
            HTTPSConnection(address, context=admin.tls) if admin.tls else HTTPConnection(address)
        )
        kind = {"Content-Type": call.content_type} if call.content_type else {}
        with closing(connection):
            connection.connect()
            _limit(connection, deadline)
            target = f"{path}?{urlencode(call.query)}"
            connection.request(call.method, target, call.body or None, {**admin.headers, **kind})
            yield connection, connection.getresponse()

    def _ask_faults(self, method: str, plan: dict[str, Any] | None) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = self.manage(
                method, "faults", b"" if plan is None else orjson.dumps(plan)
            )
        except StatusError as error:
            raise PlanError(error.message) from None
        return answer

    def _new_token(self, name: str, groups: Sequence[str]) -> str:
        body = orjson.dumps({"name": name, "groups": [*groups]})
        return str(self.manage("POST", "users", body)["token"])


class RemoteClock:
    """The clock of a cluster in a thread or another process."""

    def __init__(self, cluster: RemoteCluster) -> None:
        self._cluster = cluster

    @property
    def factor(self) -> float:
        """Virtual seconds per second of the host's clock; 0 while paused."""
        return float(self._move()["factor"])

    def now_ns(self) -> int:
        """Nanoseconds since the Unix epoch."""
        return int(self._move()["nowNanoseconds"])

    def monotonic(self) -> float:
        """Seconds since the clock was created."""
        return float(self._move()["seconds"])

    def advance(self, seconds: float) -> None:
        """Advance by ``seconds``; return when all work that was due is done. Raises StatusError."""
        self._move(advance=str(seconds))

    def jump(self) -> None:
        """Advance to the next time for which a task sleeps."""
        self._move(jump="true")

    def run(self, factor: float) -> None:
        """Run at ``factor`` from now on (0: pause); raises StatusError."""
        self._move(factor=str(factor))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause the clock until the block ends."""
        factor = self.factor
        self.run(0)
        try:
            yield
        finally:
            self.run(factor)

    def _move(self, **query: str) -> Any:
        return self._cluster.manage("POST", "clock", b"", **query)


def _limit(connection: HTTPConnection, deadline: float | None) -> None:
    """Let the next read end at a time of the monotonic clock; raise TimeoutError after it."""
    if deadline is None or connection.sock is None:
        return
    left = deadline - monotonic()
    if left <= 0:
        raise TimeoutError
    connection.sock.settimeout(left)
