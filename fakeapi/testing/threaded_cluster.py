"""A fake cluster in a thread with its own event loop, for blocking code.

with FakeCluster(seed=7) as cluster:            # or FakeCluster.in_thread(seed=7)
    subprocess.run(["kubectl", "--kubeconfig", cluster.kubeconfig_path, "get", "nodes"])
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from threading import Thread
from typing import Generic, Protocol, Self, TypeVar

from fakeapi.testing.remote_cluster import RemoteCluster


class ThreadableCluster(Protocol):
    """A cluster that can run in a thread."""

    kubeconfig_path: Path

    @property
    def url(self) -> str:
        """The server's base URL."""
        ...


S = TypeVar("S", bound=ThreadableCluster)
R = TypeVar("R")


class ThreadedCluster(RemoteCluster, Generic[S]):
    """A cluster in its own thread, as a context manager; ``create`` is called in that thread."""

    def __init__(self, create: Callable[[], AbstractAsyncContextManager[S]]) -> None:
        super().__init__()
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

    def call(self, act: Callable[[S], R]) -> R:
        """Call ``act`` with the cluster, in its thread; return its result or raise its error.

        The call never runs in the middle of a request.
        """

        async def acting() -> R:
            return act(self._ready.result())

        return asyncio.run_coroutine_threadsafe(acting(), self._loop).result()

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
