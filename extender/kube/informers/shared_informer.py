"""The shared informer factory: one cache and one watch of a resource for all controllers.

The same resource, decoder and selection share one cache. The informers run as tasks from the
moment they are requested, until :meth:`SharedInformerFactory.stop`. A single informer (of a
resource that is gone) is stopped at once by :meth:`SharedInformerFactory.drop`, or with its last
user by :meth:`SharedInformerFactory.leave`. Informers use WatchList where the server supports it
(:mod:`extender.kube.informers.watch_list`). An exception of a handler ends its informer and sets
:attr:`SharedInformerFactory.failure`, and :meth:`SharedInformerFactory.stop` raises it again, so
that it is not lost.

The handlers of an informer are independent, and receive events in the order in which they were
added (:mod:`extender.kube.informers.indexer`). A handler may receive all objects again at an
interval (:func:`resync`); that sends no request to the server.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any, Generic, TypeVar, cast

from extender.kube.informers.indexer import IndexedObject, Indexer, ResourceEventHandler
from extender.kube.informers.reflector import Reflector, ReflectorContext
from extender.kube.informers.watch_list import WatchListReflector
from extender.kube.rest.client import EVERYTHING, Client, Decode, Selection
from extender.kube.rest.clock import Clock
from extender.kube.rest.rate_limited_log import quiet_log
from extender.kube.rest.resources import Resource

T = TypeVar("T", bound=IndexedObject)
InformerKey = tuple[Resource, Decode[Any], Selection]


@dataclass(frozen=True, slots=True)
class SharedInformer(Generic[T]):
    """A cache of a resource, and the reflector that fills it."""

    objects: Indexer[T]
    reflector: Reflector[T]

    async def wait_synced(self) -> None:
        """Return once the cache has been filled for the first time."""
        await self.reflector.wait_synced()


class SharedInformerFactory:
    """The shared informers of one process; see the module's rules."""

    def __init__(self, client: Client, clock: Clock, rng: Random) -> None:
        self._context = ReflectorContext(client, clock, rng, quiet_log())
        self._shared: dict[InformerKey, SharedInformer[Any]] = {}
        self._tasks: dict[InformerKey, asyncio.Task[None]] = {}
        self._joined: Counter[InformerKey] = Counter()
        self.failure = asyncio.Event()

    def of(
        self, resource: Resource, decode: Decode[T], selection: Selection = EVERYTHING
    ) -> SharedInformer[T]:
        """Return the shared informer of a resource, and start it if it is new."""
        key = (resource, decode, selection)
        shared = self._shared.get(key)
        if shared is None:
            objects: Indexer[T] = Indexer()
            informer = WatchListReflector(self._context, resource, decode, objects, selection)
            shared = self._shared[key] = SharedInformer(objects, informer)
            task = self._tasks[key] = asyncio.create_task(informer.run())
            task.add_done_callback(self._ended)
        return cast("SharedInformer[T]", shared)

    def drop(
        self, resource: Resource, decode: Decode[T], selection: Selection = EVERYTHING
    ) -> None:
        """Stop an informer, and drop it; its handlers receive its objects as removed."""
        key = (resource, decode, selection)
        if task := self._tasks.pop(key, None):
            task.cancel()
            self._shared.pop(key).objects.replace(())

    def join(
        self, resource: Resource, decode: Decode[T], selection: Selection = EVERYTHING
    ) -> SharedInformer[T]:
        """Return the shared informer of a resource, to be followed by :meth:`leave`."""
        self._joined[resource, decode, selection] += 1
        return self.of(resource, decode, selection)

    def leave(
        self,
        resource: Resource,
        decode: Decode[T],
        selection: Selection = EVERYTHING,
        *,
        handlers: Iterable[ResourceEventHandler[T]] = (),
    ) -> None:
        """Remove one's handlers from an informer; they receive its objects as removed.

        The informer is dropped with its last user.
        """
        key = (resource, decode, selection)
        self._joined[key] -= 1
        if self._joined[key] > 0:
            for handler in handlers:
                self._shared[key].objects.remove_handler(handler)
        else:
            del self._joined[key]
            self.drop(resource, decode, selection)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self.failure.set()

    async def stop(self) -> None:
        """Stop all informers; raise the exception that ended one of them before."""
        await cancel_tasks(self._tasks.values())


async def resync(
    shared: SharedInformer[T], handler: ResourceEventHandler[T], clock: Clock, seconds: float
) -> None:
    """Call ``handler.updated`` for all objects, every ``seconds``; never return.

    Old and new are the same object. The first resync comes ``seconds`` after the cache has synced.
    Callers with many resyncs draw the intervals at random, so that they do not coincide.
    """
    await shared.wait_synced()
    while True:
        await clock.sleep(seconds)
        for item in tuple(shared.objects.values()):
            handler.updated(item, item)


async def cancel_tasks(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel tasks and await them; raise the exception that ended one of them before."""
    running = tuple(tasks)
    for task in running:
        task.cancel()
    for outcome in await asyncio.gather(*running, return_exceptions=True):
        if isinstance(outcome, Exception):
            raise outcome
