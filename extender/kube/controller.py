"""The loop that every controller runs: take a key, make the world as it should be, take the next.

- Level-triggered: ``sync`` gets a name, never an event, and looks at the present state.
- What a server refuses or does not answer is tried again, later each time; a success begins the
  delays anew. ``sync`` may ask to be called again after some seconds by returning them.
- Any other exception is a fault of the controller and ends it, all of its workers.
- With several workers, several keys are synced at a time; never one key twice.
- Paused, it keeps noting what is to be done and does nothing; stepped, it does one thing.
- Drained, it does what is left and ends. Cancelled, it drops everything.

The delays and the clock are those of its queue (:mod:`extender.kube.workqueue`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from extender.kube.api_error import ApiError, MalformedError
from extender.kube.logs import quiet_log
from extender.kube.transport import TransportError
from extender.kube.workqueue import ShutDownError, WorkQueue

K = TypeVar("K", bound=Hashable)
Sync = Callable[[K], Awaitable[float | None]]


class RetryError(Exception):
    """A sync could not be finished now; the text says why. It is to be tried again."""


class Controller(Generic[K]):
    """Workers over one queue; ``sync`` gives seconds after which to look again, or None."""

    def __init__(self, name: str, queue: WorkQueue[K], sync: Sync[K], workers: int = 1) -> None:
        self.name = name
        self.queue = queue
        self._sync = sync
        self._workers = workers
        self._log = quiet_log(controller=name)

    async def run(self) -> None:
        """Work until drained or cancelled."""
        workers = [asyncio.create_task(self._work_on()) for _ in range(self._workers)]
        try:
            await asyncio.gather(*workers)
        finally:
            self.queue.close()
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def drain(self) -> None:
        """Take no more work, and return when what there is has been done; :meth:`run` ends, too."""
        await self.queue.drain()

    async def step(self) -> K | None:
        """Work on the one key that is next, paused or not, and give it; None if none waits."""
        key = self.queue.take()
        if key is not None:
            await self._work(key)
        return key

    async def _work_on(self) -> None:
        try:
            while True:
                await self._work(await self.queue.get())
        except ShutDownError:
            return

    async def _work(self, key: K) -> None:
        try:
            again = await self._sync(key)
        except (ApiError, MalformedError, TransportError, RetryError) as trouble:
            self._log.debug("sync_failed", key=str(key), error=str(trouble))
            self.queue.add_rate_limited(key)
        else:
            self.queue.forget(key)
            if again is not None:
                self.queue.add_after(key, again)
        finally:
            self.queue.done(key)
