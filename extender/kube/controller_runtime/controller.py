"""The loop of a controller: take a key from the work queue, sync it, take the next.

- Level-triggered: ``sync`` receives a key, not an event, and reads the current state.
- A request that the server rejects or does not answer is retried with a rate limit; a success
  resets it. ``sync`` may return a number of seconds after which the key is enqueued again.
- Any other exception is a bug of the controller and ends it with all of its workers.
- Several workers sync several keys at a time, but never one key twice.
- Paused, the controller enqueues keys and syncs none; a step syncs one key.
- Drained, it syncs the keys that are left and ends. Cancelled, it drops them.

Delays and clock are those of its queue (:mod:`extender.kube.controller_runtime.workqueue`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from extender.kube.controller_runtime.workqueue import ShutDownError, WorkQueue
from extender.kube.rest.api_errors import ApiError, MalformedError
from extender.kube.rest.rate_limited_log import quiet_log
from extender.kube.rest.transport import TransportError

K = TypeVar("K", bound=Hashable)
Sync = Callable[[K], Awaitable[float | None]]


class RetryError(Exception):
    """A sync could not be finished now, for the reason in the text; it is retried."""


class Controller(Generic[K]):
    """Workers over one queue; ``sync`` returns the seconds until the next sync, or None."""

    def __init__(self, name: str, queue: WorkQueue[K], sync: Sync[K], workers: int = 1) -> None:
        self.name = name
        self.queue = queue
        self._sync = sync
        self._workers = workers
        self._log = quiet_log(controller=name)

    async def run(self) -> None:
        """Run the workers until drained or cancelled."""
        workers = [asyncio.create_task(self._run_worker()) for _ in range(self._workers)]
        try:
            await asyncio.gather(*workers)
        finally:
            self.queue.close()
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def drain(self) -> None:
        """Accept no more keys, and return when all keys are synced; :meth:`run` ends, too."""
        await self.queue.drain()

    async def step(self) -> K | None:
        """Sync the next key, paused or not, and return it; None if no key waits."""
        key = self.queue.take()
        if key is not None:
            await self._process_key(key)
        return key

    async def _run_worker(self) -> None:
        try:
            while True:
                await self._process_key(await self.queue.get())
        except ShutDownError:
            return

    async def _process_key(self, key: K) -> None:
        try:
            again = await self._sync(key)
        except (ApiError, MalformedError, TransportError, RetryError) as error:
            self._log.debug("sync_failed", key=str(key), error=str(error))
            self.queue.add_rate_limited(key)
        else:
            self.queue.forget(key)
            if again is not None:
                self.queue.add_after(key, again)
        finally:
            self.queue.done(key)
