"""Informers that controllers share: one copy, one watch, however many look at it.

Whoever asks for a resource with the same decoder and selection gets the same copy. The informers
run as tasks from the moment they are asked for, until :meth:`Informers.stop`; one that is no longer
wanted (its resource has gone) is stopped by itself, at once (:meth:`Informers.drop`) or when the
last of those who have joined it leaves (:meth:`Informers.leave`). They stream where the server
offers it (:mod:`extender.kube.streaming`). What a handler raises ends its informer and
sets :attr:`Informers.fault`, and :meth:`Informers.stop` raises it again, so that a fault does not
go unnoticed.

Handlers of several parties hear of changes independently, in the order in which they joined
(:mod:`extender.kube.indexer`). A party that distrusts its own bookkeeping has everything told again
from time to time (:func:`resync`); that asks nothing of the server.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any, Generic, TypeVar, cast

from extender.kube.client import EVERYTHING, Client, Decode, Selection
from extender.kube.clock import Clock
from extender.kube.indexer import Handler, Indexer, Thing
from extender.kube.informer import Informer
from extender.kube.logs import quiet_log
from extender.kube.resources import Resource
from extender.kube.streaming import StreamingInformer

T = TypeVar("T", bound=Thing)


@dataclass(frozen=True, slots=True)
class Shared(Generic[T]):
    """A copy of a resource, and the informer that keeps it."""

    objects: Indexer[T]
    informer: Informer[T]

    async def wait_synced(self) -> None:
        """Return once the copy has been filled for the first time."""
        await self.informer.wait_synced()


class Informers:
    """The informers of one process; see the module's rules."""

    def __init__(self, client: Client, clock: Clock, rng: Random) -> None:
        self._client = client
        self._clock = clock
        self._rng = rng
        self._shared: dict[tuple[Resource, Decode[Any], Selection], Shared[Any]] = {}
        self._tasks: dict[tuple[Resource, Decode[Any], Selection], asyncio.Task[None]] = {}
        self._joined: Counter[tuple[Resource, Decode[Any], Selection]] = Counter()
        self.fault = asyncio.Event()

    def of(
        self,
        resource: Resource,
        decode: Decode[T],
        selection: Selection = EVERYTHING,
    ) -> Shared[T]:
        """Return the copy of a resource, and begin to keep it."""
        wanted = (resource, decode, selection)
        shared = self._shared.get(wanted)
        if shared is None:
            objects: Indexer[T] = Indexer()
            of = (self._client, resource, decode, objects, self._clock, self._rng, selection)
            informer = StreamingInformer(*of, log=quiet_log())
            shared = self._shared[wanted] = Shared(objects, informer)
            task = self._tasks[wanted] = asyncio.create_task(informer.run())
            task.add_done_callback(self._ended)
        return cast("Shared[T]", shared)

    def drop(
        self, resource: Resource, decode: Decode[T], selection: Selection = EVERYTHING
    ) -> None:
        """Stop keeping a copy, and forget it; its objects are told to have gone."""
        wanted = (resource, decode, selection)
        if task := self._tasks.pop(wanted, None):
            task.cancel()
            self._shared.pop(wanted).objects.replace(())

    def join(
        self,
        resource: Resource,
        decode: Decode[T],
        selection: Selection = EVERYTHING,
    ) -> Shared[T]:
        """Return the copy of a resource to somebody who may :meth:`leave` it before others do."""
        self._joined[resource, decode, selection] += 1
        return self.of(resource, decode, selection)

    def leave(
        self,
        resource: Resource,
        decode: Decode[T],
        selection: Selection = EVERYTHING,
        *,
        handlers: Iterable[Handler[T]] = (),
    ) -> None:
        """Leave a copy with one's handlers, to whom its objects are told to have gone.

        It is dropped if nobody else has joined.
        """
        wanted = (resource, decode, selection)
        self._joined[wanted] -= 1
        if self._joined[wanted] > 0:
            for handler in handlers:
                self._shared[wanted].objects.remove_handler(handler)
        else:
            del self._joined[wanted]
            self.drop(resource, decode, selection)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self.fault.set()

    async def stop(self) -> None:
        """End all informers; raises what ended one of them before."""
        await end(self._tasks.values())


async def resync(shared: Shared[T], handler: Handler[T], clock: Clock, seconds: float) -> None:
    """Tell ``handler`` of all objects, as updated, whenever ``seconds`` have passed; without end.

    Old and new are then one and the same object. The first time comes ``seconds`` after the copy
    has been filled. Many parties draw their periods at random, so that they do not come together.
    """
    await shared.wait_synced()
    while True:
        await clock.sleep(seconds)
        for item in tuple(shared.objects.values()):
            handler.updated(item, item)


async def end(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel tasks and await them; raises what had ended one of them before."""
    running = tuple(tasks)
    for task in running:
        task.cancel()
    for outcome in await asyncio.gather(*running, return_exceptions=True):
        if isinstance(outcome, Exception):
            raise outcome
