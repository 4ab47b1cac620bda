"""A fake cluster in a thread with its own event loop, for blocking code.

    with FakeCluster.in_thread(seed=7) as cluster:
        subprocess.run(["kubectl", "--kubeconfig", cluster.kubeconfig_path, "get", "nodes"])

Every call runs in that thread and returns when it is done, so that it never runs in the middle of a
request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from threading import Thread
from typing import Any, Generic, Protocol, Self, TypeVar

from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from fakeapi.apiserver.testing.object_history import ObjectHistory
from fakeapi.apiserver.testing.request_log import RequestRecord
from fakeapi.testing.faults import FaultControl


class ThreadableCluster(Protocol):
    """The interface of a cluster that can run in a thread."""

    kubeconfig_path: Path

    @property
    def url(self) -> str:
        """The server's base URL."""
        ...

    @property
    def clock(self) -> VirtualClock:
        """The cluster's clock."""
        ...

    @property
    def requests(self) -> Sequence[RequestRecord]:
        """The most recent requests."""
        ...

    @property
    def faults(self) -> FaultControl:
        """Fault injection."""
        ...

    def load(self, objects: Iterable[Mapping[str, Any]]) -> int:
        """Store objects."""
        ...

    def snapshot(self, name: str = "") -> str:
        """Save the current state."""
        ...

    def restore(self, name: str) -> None:
        """Restore a snapshot."""
        ...

    def reset(self) -> None:
        """Delete all objects."""
        ...

    def history(self, kind: str, namespace: str = "", name: str = "") -> ObjectHistory:
        """Return the changes to objects."""
        ...

    def fork(self, snapshot: str = "") -> AbstractAsyncContextManager[Any]:
        """Return a new cluster with the state of a snapshot, or the current one."""
        ...


S = TypeVar("S", bound=ThreadableCluster)
R = TypeVar("R")


class ThreadedCluster(Generic[S]):
    """A cluster in its own thread, as a context manager; ``create`` is called in that thread."""

    def __init__(self, create: Callable[[], AbstractAsyncContextManager[S]]) -> None:
        self._create = create
        self._ready: Future[S] = Future()
        self._stop = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop
        self._thread = Thread(target=self._run, name="fakeapi", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        cluster = self._ready.result()
        self.url = cluster.url
        self.kubeconfig_path = cluster.kubeconfig_path
        return self

    def __exit__(self, *_error: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    @property
    def requests(self) -> Sequence[RequestRecord]:
        """The most recent requests, oldest first."""
        return self.call(lambda cluster: cluster.requests)

    @property
    def faults(self) -> FaultControl:
        """Fault injection between clients and the API; inactive until a plan is started."""
        return FaultControl(
            lambda *arguments: self.call(lambda cluster: cluster.faults.send(*arguments))
        )

    def call(self, act: Callable[[S], R]) -> R:
        """Call ``act`` with the cluster, in its thread; return its result or raise its error."""

        async def acting() -> R:
            return act(self._ready.result())

        return asyncio.run_coroutine_threadsafe(acting(), self._loop).result()

    def load(self, objects: Iterable[Mapping[str, Any]]) -> int:
        """Store objects (or lists of them) as they are, without admission; return their number."""
        return self.call(lambda cluster: cluster.load(objects))

    def snapshot(self, name: str = "") -> str:
        """Save the current state under ``name`` (or a generated name) and return the name."""
        return self.call(lambda cluster: cluster.snapshot(name))

    def restore(self, name: str) -> None:
        """Restore a snapshot's objects; every watch expires. Raises StatusError (404)."""
        self.call(lambda cluster: cluster.restore(name))

    def reset(self) -> None:
        """Delete all objects and the history; every watch expires."""
        self.call(lambda cluster: cluster.reset())

    def history(self, kind: str, namespace: str = "", name: str = "") -> ObjectHistory:
        """Return the changes to the objects of a kind (``pods``, ``Pod``, ``deploy``)."""
        return self.call(lambda cluster: cluster.history(kind, namespace, name))

    def advance(self, seconds: float) -> None:
        """Advance the cluster's clock; return when all work that was due is done."""
        clock = self._ready.result().clock
        asyncio.run_coroutine_threadsafe(clock.advance(seconds), self._loop).result()

    def fork(self, snapshot: str = "") -> ThreadedCluster[Any]:
        """Return a cluster, not yet entered, with the state of a snapshot or the current one."""
        forked = self.call(lambda cluster: cluster.fork(snapshot))
        return ThreadedCluster(lambda: forked)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with self._create() as cluster:
            self._ready.set_result(cluster)
            await self._stop.wait()
