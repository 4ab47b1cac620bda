"""The recorder of a server: one reflector for each resource, all with one recording writer.

It records the events of an informer, errors included: an interrupted watch is resumed; one that
cannot be resumed is recorded as RELISTED and the differences. A recording begins when all resources
have been listed, or after ten seconds with those listed by then. If all resources are recorded,
those of definitions that are established later are listed then; the header does not name them.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final

import orjson

from extender.kube.informers.reflector import OptionalReflector, ReflectorContext
from extender.kube.informers.shared_informer import cancel_tasks
from extender.kube.rest.api_errors import NestedTooDeeplyError, RequestError
from extender.kube.rest.client import ObjectList
from extender.kube.rest.clock import within
from extender.kube.rest.watch_events import WatchEvent
from extender.recording.event_writer import (
    ObservedObject,
    RecordingWriter,
    ResourceTrack,
    observe_object,
)
from extender.recording.format import TOO_DEEP, Document, EventType, FormatError
from extender.recording.resource_selection import (
    DEFINITIONS,
    RecordedSource,
    RecordingPlan,
    established_source,
)

BEGIN_SECONDS: Final = 10.0


class TrackedReflector(OptionalReflector[ObservedObject]):
    """A reflector that also passes bookmarks and relists to its track."""

    def __init__(
        self, context: ReflectorContext, recorded: RecordedSource, track: ResourceTrack
    ) -> None:
        super().__init__(context, recorded.resource, observe_object, track, recorded.selection)
        self._track = track
        self._name = recorded.recorded.name

    async def run(self) -> None:
        """List and watch until cancelled. Raise FormatError if an object is nested too deeply."""
        try:
            await super().run()
        except (NestedTooDeeplyError, RecursionError, orjson.JSONDecodeError):
            raise FormatError(f"{self._name}: an object is {TOO_DEEP}") from None

    async def _recover(self, error: RequestError) -> None:
        if isinstance(error, NestedTooDeeplyError):
            raise error  # a relist would fail again
        await super()._recover(error)

    def record_bookmark(self) -> None:
        """Record a bookmark with the current resource version."""
        if self.synced:
            self._track.bookmark(self.resource_version)

    def _replace(self, listing: ObjectList[ObservedObject]) -> None:
        if self.synced:
            self._track.relisted(listing.resource_version)
        super()._replace(listing)
        self.record_bookmark()

    def _apply_to_store(self, event: WatchEvent) -> None:
        if event.type == "BOOKMARK":
            self._track.bookmark(event.resource_version)
        else:
            super()._apply_to_store(event)


class Recorder:
    """Records the resources of a plan while :meth:`run` runs."""

    def __init__(
        self, context: ReflectorContext, plan: RecordingPlan, writer: RecordingWriter
    ) -> None:
        self._context = context
        self._plan = plan
        self._writer = writer
        self._informers: dict[str, TrackedReflector] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._failed = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Record until ``stop`` is set; end with a bookmark for each resource.

        Raise FormatError if an object is nested too deeply to be recorded, and the errors of the
        recording file.
        """
        for source in self._plan.sources:
            self._follow(source)
        ended = [asyncio.create_task(each.wait()) for each in (stop, self._failed)]
        try:
            beginning = asyncio.create_task(self._begin())
            await _wait_first(beginning, *ended)
            beginning.cancel()
            if not self._writer.has_begun and not self._failed.is_set():
                self._start()
            await _wait_first(*ended)
        finally:
            for each in ended:
                each.cancel()
            await cancel_tasks(self._tasks)
        for informer in self._informers.values():
            informer.record_bookmark()

    def _follow(self, source: RecordedSource) -> None:
        track = ResourceTrack(source.recorded, self._on_event)
        informer = TrackedReflector(self._context, source, track)
        self._informers[_key(source)] = informer
        task = asyncio.create_task(informer.run())
        task.add_done_callback(lambda _: self._failed.set())
        self._tasks.append(task)

    def _on_event(self, kind: EventType, resource: str, document: Document) -> None:
        """Record an event; follow the resource of a definition that has been established."""
        source = None
        if self._plan.follows_definitions and resource == str(DEFINITIONS) and "spec" in document:
            source = established_source(document, self._plan.namespace)
        self._writer.write_event(kind, resource, document)
        if source is not None and _key(source) not in self._informers:
            self._follow(source)

    async def _begin(self) -> None:
        with suppress(TimeoutError):
            await within(self._context.clock, BEGIN_SECONDS, self._settled())
        self._start()

    async def _settled(self) -> None:
        for informer in list(self._informers.values()):
            await informer.wait_settled()

    def _start(self) -> None:
        plan = self._plan
        self._writer.begin(plan.server, [each.recorded for each in plan.sources], plan.namespace)


def _key(source: RecordedSource) -> str:
    """Return the key of a source: several single objects of a resource may be recorded."""
    return f"{source.recorded.name} {source.recorded.only}"


async def _wait_first(*tasks: asyncio.Task[Any]) -> None:
    """Return when one of the tasks has ended; raise its error."""
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
