"""The event recorder: core/v1 Events about objects, for people, as client-go's tools/record.

    writer = EventWriter(client, clock, rng)
    recorder = writer.recorder("replicaset-controller")
    recorder.normal(pod, "Started", "Started container c")
    await writer.flush()

- Recording never waits and never fails. A task of the writer writes the events one after the
  other, in the order in which they were recorded; it runs while events are pending.
- Before an event is written, :mod:`extender.kube.controller_runtime.event_correlator` counts,
  aggregates or drops it.
- If the server rejects an event, it is dropped. If there is no response, the write is retried, 12
  attempts in all, 10 seconds apart (the first pause is shorter, at random), while others wait; a
  write that was carried out but not answered counts once. At 1,000 pending events, new ones are
  dropped.
- A flush tries each pending event once, and takes at most five seconds.

Events have names such as ``web.18e9ee83bd8f2e72`` (the object's name, and the nanosecond), and two
of one writer never have the same name. They are core/v1 Events, in the namespace of their object,
or in ``default``. An aggregated event has its component in ``source`` only, as upstream's has.

Source: client-go's tools/record/event.go.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any, Final, TypeAlias
from uuid import UUID

import msgspec

from extender.kube.controller_runtime.event_correlator import (
    EventCorrelator,
    EventRecord,
    ObjectReference,
)
from extender.kube.decoders.object_meta import format_time
from extender.kube.rest.api_errors import ApiError, MalformedError
from extender.kube.rest.client import Client, PatchType
from extender.kube.rest.clock import Clock, within
from extender.kube.rest.rate_limited_log import quiet_log
from extender.kube.rest.resources import EVENTS
from extender.kube.rest.transport import TransportError

__all__ = ["EVENTS", "EventRecorder", "EventWriter", "ObjectReference", "format_time"]

MAX_PENDING: Final = 1000
MAX_ATTEMPTS: Final = 12
RETRY_SECONDS: Final = 10.0
FLUSH_SECONDS: Final = 5.0

_DEFAULT_NAMESPACE: Final = "default"
_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*", re.ASCII)


class EventWriter:
    """Writes the Events of one process; see the module's rules."""

    def __init__(self, client: Client, clock: Clock, rng: Random) -> None:
        self._client = client
        self._clock = clock
        self._rng = rng
        self._correlator = EventCorrelator()
        self._waiting: deque[EventRecord] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._pause: asyncio.Task[None] | None = None
        self._flushing = False
        self._last_ns = 0
        self._log = quiet_log()

    def recorder(self, component: str) -> EventRecorder:
        """Return a recorder of events by ``component``."""
        return EventRecorder(self, component)

    def enqueue(
        self, component: str, involved: ObjectReference, type_: str, reason: str, message: str
    ) -> None:
        """Enqueue an event to be written."""
        if len(self._waiting) >= MAX_PENDING:
            self._log.warning("event_dropped", reason=reason, error="too many events are pending")
            return
        now_ns = self._last_ns = max(self._last_ns + 1, self._clock.now_ns())
        name = self._event_name(involved.name, now_ns)
        event = EventRecord(name, component, involved, type_, reason, message, now_ns, now_ns)
        self._waiting.append(event)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all())

    async def flush(self) -> None:
        """Write the pending events, one attempt each."""
        if self._writing is None:
            return
        writing, self._flushing = self._writing, True
        if self._pause is not None:
            self._pause.cancel()
        try:
            await within(self._clock, FLUSH_SECONDS, _wait(writing))
        except TimeoutError:
            self._log.warning("events_dropped", left=len(self._waiting) + 1)
            self._waiting.clear()
        finally:
            writing.cancel()
            await asyncio.wait((writing,))
            self._flushing = False
            if self._writing is writing:
                self._writing = None
        if not writing.cancelled():
            writing.result()

    async def _write_all(self) -> None:
        while self._waiting:
            event = self._correlator.correlate(self._waiting.popleft(), self._clock.now_ns())
            if event is not None:
                await self._write(event)
        self._writing = None

    async def _write(self, event: EventRecord) -> None:
        for attempt in range(MAX_ATTEMPTS):
            if attempt:
                await self._sleep(RETRY_SECONDS * (self._rng.random() if attempt == 1 else 1))
            if await self._try_write(event):
                return
            if self._flushing:
                break
        self._log.warning("event_dropped", event_name=event.name, error="no answer")

    async def _try_write(self, event: EventRecord) -> bool:
        """Write an event; return False if there was no response."""
        try:
            if event.count == 1 or not await self._patch_count(event):
                await self._create(event)
        except ApiError as error:
            self._log.debug("event_dropped", event_name=event.name, error=str(error))
        except (MalformedError, TransportError):
            return False
        return True

    async def _patch_count(self, event: EventRecord) -> bool:
        """Update the count of an Event; return False if it has expired or was never written."""
        changes = {
            "count": event.count,
            "lastTimestamp": format_time(event.last_ns),
            "message": event.message,
        }
        path = EVENTS.object(event.name, _event_namespace(event))
        try:
            await self._client.patch(path, PatchType.STRATEGIC, msgspec.json.encode(changes), bytes)
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return True

    async def _create(self, event: EventRecord) -> None:
        body = msgspec.json.encode(_document(event))
        await self._client.create(EVENTS.collection(_event_namespace(event)), body, bytes)

    async def _sleep(self, seconds: float) -> None:
        """Wait, unless a flush ends the pause."""
        self._pause = asyncio.create_task(self._clock.sleep(seconds))
        await asyncio.wait((self._pause,))
        self._pause = None

    def _event_name(self, of: str, now_ns: int) -> str:
        name = f"{of}.{now_ns:x}"
        if _SUBDOMAIN.fullmatch(name):
            return name
        return str(UUID(int=self._rng.getrandbits(128), version=4))


EventCallback: TypeAlias = Callable[[ObjectReference, str, str], None]
"""Takes an Event: the object that it is about, the reason and the message."""


class EventForwarder(EventWriter):
    """Calls a function with each Event, and writes none."""

    def __init__(self, client: Client, clock: Clock, rng: Random, call: EventCallback) -> None:
        super().__init__(client, clock, rng)
        self._call = call

    def enqueue(
        self,
        component: str,  # noqa: ARG002
        involved: ObjectReference,
        type_: str,  # noqa: ARG002
        reason: str,
        message: str,
    ) -> None:
        """Forward an event."""
        self._call(involved, reason, message)


class EventRecorder:
    """Records the events of one component."""

    def __init__(self, writer: EventWriter, component: str) -> None:
        self._writer = writer
        self._component = component

    def normal(self, involved_object: ObjectReference, reason: str, message: str) -> None:
        """Record an event of type Normal."""
        self._writer.enqueue(self._component, involved_object, "Normal", reason, message)

    def warning(self, involved_object: ObjectReference, reason: str, message: str) -> None:
        """Record an event of type Warning."""
        self._writer.enqueue(self._component, involved_object, "Warning", reason, message)


async def _wait(task: asyncio.Task[None]) -> None:
    await asyncio.wait((task,))


def _event_namespace(event: EventRecord) -> str:
    return event.involved_object.namespace or _DEFAULT_NAMESPACE


def _document(event: EventRecord) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": event.name, "namespace": _event_namespace(event)},
        "involvedObject": event.involved_object.document(),
        "reason": event.reason,
        "message": event.message,
        "source": {"component": event.component},
        "firstTimestamp": format_time(event.first_ns),
        "lastTimestamp": format_time(event.last_ns),
        "count": event.count,
        "type": event.type,
        "reportingComponent": "" if event.aggregated else event.component,
        "reportingInstance": "",
    }
