"""A cluster in a thread with an event loop of its own, for code that blocks.

    with FakeCluster.in_thread(seed=7) as cluster:
        subprocess.run(["kubectl", "--kubeconfig", cluster.kubeconfig_path, "get", "nodes"])

Every call here runs in that thread and returns when it is done, so that it never meets a request
half-way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from fakeapi.api.changes import History
from fakeapi.api.requestlog import RequestRecord
from fakeapi.clock import VirtualClock
from fakeapi.faults import FaultControl


class Served(Protocol):
    """What a cluster must offer to live in a thread."""

    kubeconfig_path: Path

    @property
    def url(self) -> str:
        """The server's base URL."""
        ...

    @property
    def clock(self) -> VirtualClock:
        """The time that it lives by."""
        ...

    @property
    def requests(self) -> Sequence[RequestRecord]:
        """The newest requests."""
        ...

    @property
    def faults(self) -> FaultControl:
        """The faults."""
        ...

    def load(self, objects: Iterable[Mapping[str, Any]]) -> int:
        """Store objects."""
        ...

    def snapshot(self, name: str = "") -> str:
        """Save the present."""
        ...

    def restore(self, name: str) -> None:
        """Bring a snapshot back."""
        ...

    def reset(self) -> None:
        """Drop everything."""
        ...

    def history(self, kind: str, namespace: str = "", name: str = "") -> History:
        """Return what has happened."""
        ...

    def fork(self, snapshot: str = "") -> AbstractAsyncContextManager[Any]:
        """Return a cluster that goes on from a snapshot, or from now."""
        ...


S = TypeVar("S", bound=Served)
R = TypeVar("R")


class ThreadedCluster(Generic[S]):
    """A cluster in a thread, as a context manager; ``create`` is called in the thread."""

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

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    @property
    def requests(self) -> Sequence[RequestRecord]:
        """The newest requests, oldest first."""
        return self.call(lambda cluster: cluster.requests)

    @property
    def faults(self) -> FaultControl:
        """What goes wrong between clients and the API: nothing, until there is a plan."""
        return FaultControl(lambda *asked: self.call(lambda cluster: cluster.faults.ask(*asked)))

    def call(self, act: Callable[[S], R]) -> R:
        """Call ``act`` with the cluster, in its thread, and give what it gives (or raises)."""

        async def acting() -> R:
            return act(self._ready.result())

        return asyncio.run_coroutine_threadsafe(acting(), self._loop).result()

    def load(self, objects: Iterable[Mapping[str, Any]]) -> int:
        """Store objects (or lists of them) as they are given, and count them."""
        return self.call(lambda cluster: cluster.load(objects))

    def snapshot(self, name: str = "") -> str:
        """Save the present under ``name`` (or a new one), and give the name."""
        return self.call(lambda cluster: cluster.snapshot(name))

    def restore(self, name: str) -> None:
        """Bring back a snapshot's objects; every watch expires. Raises StatusError (404)."""
        self.call(lambda cluster: cluster.restore(name))

    def reset(self) -> None:
        """Drop everything; every watch expires."""
        self.call(lambda cluster: cluster.reset())

    def history(self, kind: str, namespace: str = "", name: str = "") -> History:
        """Return what has happened to the objects of a kind (``pods``, ``Pod``, ``deploy``)."""
        return self.call(lambda cluster: cluster.history(kind, namespace, name))

    def advance(self, seconds: float) -> None:
        """Let time pass in the cluster, and return when all that happens in it has happened."""
        clock = self._ready.result().clock
        asyncio.run_coroutine_threadsafe(clock.advance(seconds), self._loop).result()

    def fork(self, snapshot: str = "") -> ThreadedCluster[Any]:
        """Return a cluster, not yet entered, that goes on from a snapshot, or from now."""
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
