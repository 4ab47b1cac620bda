"""The recorder of a server: one reflector for each resource, all with one recording writer.

It records the events of an informer, errors included: an interrupted watch is resumed; one that
cannot be resumed is recorded as RELISTED and the differences. A recording begins when all resources
have been listed, or after ten seconds with those listed by then.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Final

import orjson

from extender.kube.api_error import NestedTooDeeplyError
from extender.kube.client import Client, Listing
from extender.kube.clock import Clock, within
from extender.kube.informer import OptionalInformer
from extender.kube.informers import end
from extender.kube.logs import quiet_log
from extender.kube.trouble import Trouble
from extender.kube.watch_stream import Event
from extender.recording.choosing import Followed, Plan
from extender.recording.format import TOO_DEEP, FormatError
from extender.recording.tape import Tape
from extender.recording.tracks import Sighting, Track, sight

BEGIN_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Source:
    """The client, the clock and the randomness of a recorder."""

    client: Client
    clock: Clock
    rng: Random


class TrackedInformer(OptionalInformer[Sighting]):
    """A reflector that also passes bookmarks and relists to its track."""

    def __init__(self, source: Source, followed: Followed, track: Track) -> None:
        of = source.client, followed.resource, sight, track, source.clock, source.rng
        super().__init__(*of, followed.selection, quiet_log())
        self._track = track
        self._name = followed.recorded.name

    async def run(self) -> None:
        """List and watch until cancelled. Raise FormatError if an object is nested too deeply."""
        try:
            await super().run()
        except (NestedTooDeeplyError, RecursionError, orjson.JSONDecodeError):
            raise FormatError(f"{self._name}: an object is {TOO_DEEP}") from None

    async def _recover(self, trouble: Trouble) -> None:
        if isinstance(trouble, NestedTooDeeplyError):
            raise trouble  # a relist would fail again
        await super()._recover(trouble)

    def mark(self) -> None:
        """Record a bookmark with the current resource version."""
        if self.synced:
            self._track.bookmark(self.resource_version)

    def _fill(self, listing: Listing[Sighting]) -> None:
        if self.synced:
            self._track.relisted(listing.resource_version)
        super()._fill(listing)
        self.mark()

    def _tell(self, event: Event) -> None:
        if event.type == "BOOKMARK":
            self._track.bookmark(event.resource_version)
        else:
            super()._tell(event)


class Recorder:
    """Records the resources of a plan while :meth:`run` runs."""

    def __init__(self, source: Source, plan: Plan, tape: Tape) -> None:
        self._clock = source.clock
        self._plan = plan
        self._tape = tape
        self._informers = [
            TrackedInformer(source, each, Track(each.recorded, tape.tell)) for each in plan.followed
        ]

    async def run(self, stop: asyncio.Event) -> None:
        """Record until ``stop`` is set; end with a bookmark for each resource.

        Raise FormatError if an object is nested too deeply to be recorded, and the errors of the
        recording file.
        """
        tasks = [asyncio.create_task(informer.run()) for informer in self._informers]
        told = asyncio.create_task(stop.wait())
        try:
            beginning = asyncio.create_task(self._begin())
            await _first_of(told, beginning, *tasks)
            beginning.cancel()
            if not self._tape.begun:
                self._start()
            await _first_of(told, *tasks)
        finally:
            told.cancel()
            await end(tasks)
        for informer in self._informers:
            informer.mark()

    async def _begin(self) -> None:
        with suppress(TimeoutError):
            await within(self._clock, BEGIN_SECONDS, self._settled())
        self._start()

    async def _settled(self) -> None:
        for informer in self._informers:
            await informer.wait_settled()

    def _start(self) -> None:
        plan = self._plan
        self._tape.begin(plan.server, [each.recorded for each in plan.followed], plan.namespace)


async def _first_of(*tasks: asyncio.Task[object]) -> None:
    """Return when one of the tasks has ended; raise its error."""
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
