"""Keeps a local copy of a resource equal to the server's: list once, then follow the watch.

Guarantees towards the sink, whatever the connection does:

- It first gets `replace` with everything, then single changes in the server's order. Each change
  comes once: a broken watch is resumed after the last event or bookmark that was read whole.
- If the server cannot resume (410 Gone, a version it does not know, a frame that cannot be
  read), the sink gets `replace` again. What was missed in between shows only as the difference.
- Calls to the sink never overlap and are never cut by cancellation.
- Between two `replace` the copy never goes back in time: a list is asked for at least at the
  version last seen. Only when the server refuses that version is the newest state taken as is.

What the server does, and what follows (the rules of client-go's tools/cache/reflector.go, except
that it lists again after a lost connection where this one resumes):

    watch ends by its timeout         resume at once
    watch ends at once, without event resume after a delay
    connection lost, half a frame     resume after a delay
    silent beyond a limit             as a lost connection (by default: timeout + 30 s)
    401 403 408 429 5xx               repeat the same request after a delay, or Retry-After
    410, version ahead of the server  list again after a delay; if the list says so too, list the
                                      newest state at once
    any other error, malformed frame  list again after a delay

Delays are `backoff`'s. Each watch asks for a timeout of 5 to 10 minutes, drawn at random so that
many clients do not come back together. Bookmarks come each minute, so that a longer
silence means a connection that leads nowhere, or a server that is stuck; servers without bookmarks
are heard from when a watch is opened. After a silent watch, opening the next one is no sign of life
yet: whoever is stuck opens watches and says nothing. One log line per change of condition: the same
trouble repeated is not logged again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

import structlog

from extender.kube.api_error import ApiError, MalformedError
from extender.kube.backoff import Backoff
from extender.kube.client import EVERYTHING, Client, Decode, Listing, Selection
from extender.kube.clock import Clock
from extender.kube.resources import Resource
from extender.kube.transport import SilentError, TransportError
from extender.kube.trouble import (
    Trouble,
    asked_to_wait,
    kind_of,
    repeatable,
    version_unusable,
)
from extender.kube.watch_stream import Event, EventStream

MIN_WATCH_SECONDS = 300
SHORT_WATCH_SECONDS = 1.0
_REFUSALS = frozenset({403, 404})

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Sink(Protocol[T_contra]):
    """Where the copy is kept. What it raises ends the informer."""

    def replace(self, items: Sequence[T_contra]) -> None:
        """The whole state, in the server's order; forget everything else."""
        ...

    def upsert(self, item: T_contra) -> None:
        """An object was created or changed."""
        ...

    def remove(self, item: T_contra) -> None:
        """An object is gone; `item` is its last state."""
        ...


class Informer(Generic[T]):
    """Follows one resource for one sink.

    `decode` must give a value for a broken object too; what it raises ends the informer. `clock`
    and `rng` decide delays and watch timeouts. For gauges:

    - `resource_version`: the version the copy has reached, "" before the first list;
    - `last_heard`: when the server last said anything, or opened a watch that followed no silent
      one, in the clock's monotonic seconds;
    - `watching`: whether a watch is open, so that silence means that nothing happened;
    - `relists`: lists after the first; `reconnects`: watches resumed without a list.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        decode: Decode[T],
        sink: Sink[T],
        clock: Clock,
        rng: random.Random,
        selection: Selection = EVERYTHING,
        log: Any = None,
        silence_seconds: float | None = None,
    ) -> None:
        self._client = client
        self._resource = resource
        self._decode = decode
        self._sink = sink
        self._silence_seconds = silence_seconds
        self._clock = clock
        self._rng = rng
        self._selection = selection
        self._backoff = Backoff(clock, rng)
        self._log = (log or structlog.get_logger()).bind(resource=str(resource))
        self._synced = asyncio.Event()
        self._settled = asyncio.Event()
        self._must_list = True
        self._version_refused = False
        self._resuming = False
        self._doubted = False
        self._trouble = ""
        self.resource_version = ""
        self.last_heard = clock.monotonic()
        self.watching = False
        self.relists = 0
        self.reconnects = 0

    @property
    def synced(self) -> bool:
        """Whether the sink has had its first `replace`; stays true."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Return once the sink has had its first `replace`."""
        await self._synced.wait()

    @property
    def settled(self) -> bool:
        """Whether there is no first `replace` to wait for; stays true."""
        return self._settled.is_set()

    async def wait_settled(self) -> None:
        """Return once there is no first `replace` to wait for."""
        await self._settled.wait()

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            try:
                await self._list_and_watch()
            except (ApiError, MalformedError, TransportError) as trouble:
                await self._recover(trouble)

    async def _list_and_watch(self) -> None:
        if self._must_list:
            await self._list()
        await self._watch()

    async def _list(self) -> None:
        listing = await self._client.list(
            self._resource,
            self._decode,
            self._selection,
            resource_version=self._least_version("0"),
        )
        self._fill(listing)

    def _fill(self, listing: Listing[T]) -> None:
        """Take over the whole state."""
        self._sink.replace(listing.items)
        self._reached(listing.resource_version)
        self._must_list = self._version_refused = self._resuming = False
        self.relists += self.synced
        self._synced.set()
        self._settled.set()
        self._well()
        self._log.info(
            "informer_listed", items=len(listing.items), resource_version=self.resource_version
        )

    def _least_version(self, at_first: str) -> str:
        """How old the whole state may be: anything at first, then none older, then the newest."""
        return "" if self._version_refused else self.resource_version or at_first

    async def _watch(self) -> None:
        started, before = self._clock.monotonic(), self.resource_version
        async with self._client.watch(
            self._resource,
            self._selection,
            resource_version=self.resource_version,
            timeout_seconds=self._watch_seconds(),
            silence_seconds=self._silence_seconds,
        ) as events:
            await self._follow(events)
        lasted = self._clock.monotonic() - started
        if lasted < SHORT_WATCH_SECONDS and self.resource_version == before:
            raise TransportError("the server closed the watch at once, without an event")

    def _watch_seconds(self) -> int:
        return int(MIN_WATCH_SECONDS * (1 + self._rng.random()))

    async def _follow(self, events: EventStream) -> None:
        """Take over each change, until the watch ends."""
        self.watching = True
        self.reconnects += self._resuming
        self._resuming = True
        if not self._doubted:
            self.last_heard = self._clock.monotonic()
        self._well()
        try:
            async for event in events:
                self._apply(event)
            self._doubted = False
        except SilentError:
            self._doubted = True
            raise
        finally:
            self.watching = False

    def _apply(self, event: Event) -> None:
        self._tell(event)
        self._reached(event.resource_version)

    def _tell(self, event: Event) -> None:
        if event.type == "DELETED":
            self._sink.remove(self._decode(event.object))
        elif event.type != "BOOKMARK":
            self._sink.upsert(self._decode(event.object))

    def _reached(self, resource_version: str) -> None:
        self.resource_version = resource_version
        self._doubted = False
        self.last_heard = self._clock.monotonic()

    async def _recover(self, trouble: Trouble) -> None:
        """Choose between resuming and listing again, and wait as long as it takes."""
        if version_unusable(trouble) and self._must_list and not self._version_refused:
            self._version_refused = True
            return
        if self._ends_waiting(trouble):
            self._settled.set()
        self._must_list = self._must_list or not repeatable(trouble)
        delay = max(self._backoff.next_delay(), asked_to_wait(trouble))
        self._unwell(trouble, delay)
        await self._clock.sleep(delay)

    def _ends_waiting(self, trouble: Trouble) -> bool:  # noqa: ARG002 - OptionalInformer's say
        return False

    def _unwell(self, trouble: Trouble, delay: float) -> None:
        kind = kind_of(trouble)
        if kind != self._trouble:
            then = "list" if self._must_list else "resume"
            self._log.warning(
                "informer_trouble", error=str(trouble), then=then, in_seconds=round(delay, 1)
            )
        self._trouble = kind

    def _well(self) -> None:
        if self._trouble:
            self._log.info("informer_recovered", resource_version=self.resource_version)
        self._trouble = ""


class OptionalInformer(Informer[T]):
    """Follows a resource that the server may not have, or may not show to us.

    Once the server has said so (404, 403), nobody need wait for it: it is settled. It is asked for
    again with the usual delays, and followed from the day that it is served.
    """

    def _ends_waiting(self, trouble: Trouble) -> bool:
        return isinstance(trouble, ApiError) and trouble.status in _REFUSALS
