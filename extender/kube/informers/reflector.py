"""The reflector: keeps a store equal to a resource on the server, by list and watch.

Guarantees towards the store, independent of connection errors:

- It first receives `replace` with all objects, then single changes in the server's order. Each
  change comes once: a watch that breaks is resumed after the last complete event or bookmark.
- If the server cannot resume (410 Gone, a version it does not know, a frame that cannot be
  read), the store receives `replace` again. Changes in between show only as the difference.
- Calls to the store never overlap and are never interrupted by cancellation.
- Between two `replace` the store never goes back in time: a list is requested at the version last
  seen, or newer. Only when the server rejects that version, the newest state is taken as it is.

The reaction to each behaviour of the server (rules and numbers are those of client-go's
tools/cache/reflector.go, but it lists again after a lost connection where this one resumes):

    watch ends by its timeout         resume at once
    watch ends at once, without event resume after a delay
    connection lost, half a frame     resume after a delay
    silent beyond the idle timeout    as a lost connection (by default: timeout + 30 s)
    401 403 408 429 5xx               repeat the same request after a delay, or Retry-After
    410, version ahead of the server  list again after a delay; if the list fails alike, list the
                                      newest state at once
    any other error, malformed frame  list again after a delay

Delays are exponential, with jitter: the n-th in a row is uniform in [base, 2 * base) with
base = min(0.8 s * 2^n, 30 s), so that many clients do not return at the same time after an outage.

    attempt    1        2        3        4         5          6          7 and later
    seconds    0.8-1.6  1.6-3.2  3.2-6.4  6.4-12.8  12.8-25.6  25.6-51.2  30-60

After two minutes without a new delay, the server counts as healthy and the backoff starts again.

Each watch requests a timeout of 5 to 10 minutes, at random, so
that many clients do not return at the same time. Bookmarks come each minute, so a longer silence
means a dead connection or a server that hangs; from servers without bookmarks, an opened watch is
the only sign of life. After an idle timeout, an opened watch does not count as one: a server that
hangs may open watches and send nothing. Only changes of condition are logged: a repeated error is
not logged again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import structlog

from extender.kube.rest.api_errors import (
    ApiError,
    MalformedError,
    RequestError,
    error_kind,
    is_retriable,
    is_version_unusable,
    requested_delay,
)
from extender.kube.rest.client import EVERYTHING, Client, Decode, ObjectList, Selection
from extender.kube.rest.clock import Clock
from extender.kube.rest.resources import Resource
from extender.kube.rest.transport import IdleTimeoutError, TransportError
from extender.kube.rest.watch_events import EventStream, WatchEvent

INITIAL_BACKOFF_SECONDS = 0.8
MAX_BACKOFF_SECONDS = 30.0
BACKOFF_RESET_SECONDS = 120.0
MIN_WATCH_SECONDS = 300
SHORT_WATCH_SECONDS = 1.0

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class ReflectorBackoff:
    """The backoff of retries against one server."""

    def __init__(self, clock: Clock, rng: random.Random) -> None:
        self._clock = clock
        self._rng = rng
        self._base = INITIAL_BACKOFF_SECONDS
        self._last = clock.monotonic()

    def next_delay(self) -> float:
        """Return the delay before the next attempt, in seconds, and increase the backoff."""
        now = self._clock.monotonic()
        if now - self._last > BACKOFF_RESET_SECONDS:
            self._base = INITIAL_BACKOFF_SECONDS
        self._last = now
        base, self._base = self._base, min(self._base * 2, MAX_BACKOFF_SECONDS)
        return base * (1 + self._rng.random())


class ReflectorStore(Protocol[T_contra]):
    """The store that a reflector fills. An exception that it raises ends the reflector."""

    def replace(self, items: Sequence[T_contra]) -> None:
        """Replace all objects by these, in the server's order."""
        ...

    def upsert(self, item: T_contra) -> None:
        """Add an object, or update it."""
        ...

    def remove(self, item: T_contra) -> None:
        """Remove an object; `item` is its last state."""
        ...


def never_locked() -> bool:
    """Return False: the stores may change at any time."""
    return False


@dataclass(frozen=True, slots=True)
class ReflectorContext:
    """What the reflectors of one server share.

    ``clock`` and ``rng`` determine delays and watch timeouts. ``log`` is by default structlog's
    logger. A watch that is silent for ``silence_seconds`` is restarted (None: never). While
    ``is_locked`` returns True, no store changes.
    """

    client: Client
    clock: Clock
    rng: random.Random
    log: Any = None
    silence_seconds: float | None = None
    is_locked: Callable[[], bool] = never_locked


class Reflector(Generic[T]):
    """Lists and watches one resource into one store.

    `decode` must return a value for a malformed object too; an exception of it ends the reflector.
    Attributes for gauges:

    - `resource_version`: the version that the store has reached, "" before the first list;
    - `last_heard`: when the server last sent anything, or opened a watch (not after an idle
      timeout), in the clock's monotonic seconds;
    - `watching`: whether a watch is open, so that silence means that nothing changed;
    - `relists`: lists after the first; `reconnects`: watches resumed without a list;
    - `refusal`: why the resource is unavailable, "" if it is not;
    - `last_error`: the error of the last request or watch, "" if it succeeded; of a 403, with the
      permission to grant;
    - `retry_at`: when the request that failed is retried, in the clock's monotonic seconds.
    """

    def __init__(
        self,
        context: ReflectorContext,
        resource: Resource,
        decode: Decode[T],
        store: ReflectorStore[T],
        selection: Selection = EVERYTHING,
    ) -> None:
        self._client = context.client
        self._clock = context.clock
        self._rng = context.rng
        self._silence_seconds = context.silence_seconds
        self._is_locked = context.is_locked
        self._resource = resource
        self._decode = decode
        self._store = store
        self._selection = selection
        self._backoff = ReflectorBackoff(context.clock, context.rng)
        self._log = (context.log or structlog.get_logger()).bind(resource=str(resource))
        self._synced = asyncio.Event()
        self._settled = asyncio.Event()
        self._attempt: asyncio.Timeout | None = None
        self._relisted = asyncio.Event()
        self._must_list = True
        self._version_refused = False
        self._resuming = False
        self._suspect = False
        self._error_kind = ""
        self.last_error = ""
        self.retry_at = 0.0
        self.resource_version = ""
        self.last_heard = context.clock.monotonic()
        self.watching = False
        self.refusal = ""
        self.relists = 0
        self.reconnects = 0

    @property
    def synced(self) -> bool:
        """Whether the store has received its first `replace`."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Return once the store has received its first `replace`."""
        await self._synced.wait()

    @property
    def settled(self) -> bool:
        """Whether the store has synced, or the resource is unavailable; stays true."""
        return self._settled.is_set()

    async def wait_settled(self) -> None:
        """Return once the store has synced, or the resource is unavailable."""
        await self._settled.wait()

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            try:
                await self._run_attempt()
            except (ApiError, MalformedError, TransportError) as error:
                await self._recover(error)

    async def relist(self, decode: Decode[T]) -> None:
        """Decode all objects anew, from now on with ``decode``; return when the store has them.

        The store keeps its objects until then. The new list is not older than these.
        """
        self._decode, self._must_list = decode, True
        self._relisted.clear()
        if self._attempt is not None:
            self._attempt.reschedule(0)
        await self._relisted.wait()

    async def _run_attempt(self) -> None:
        """List and watch until the watch ends, or until ``relist`` ends the attempt."""
        try:
            async with asyncio.timeout(None) as attempt:
                self._attempt = attempt
                await self._list_and_watch()
        except TimeoutError:
            if not attempt.expired():
                raise
        finally:
            self._attempt = None

    async def _list_and_watch(self) -> None:
        if self._must_list:
            await self._list()
        await self._watch()

    async def _list(self) -> None:
        listing = await self._client.list(
            self._resource, self._decode, self._selection, resource_version=self._least_version("0")
        )
        await self._wait_unlocked()
        self._replace(listing)

    def _replace(self, listing: ObjectList[T]) -> None:
        """Replace the state of the store."""
        self._store.replace(listing.items)
        self._reached(listing.resource_version)
        self._must_list = self._version_refused = self._resuming = False
        self.refusal = ""
        self.relists += self.synced
        self._synced.set()
        self._settled.set()
        self._relisted.set()
        self._log_recovery()
        self._log.info(
            "informer_listed", items=len(listing.items), resource_version=self.resource_version
        )

    def _least_version(self, at_first: str) -> str:
        """Return the least version of a list: any at first, then the one reached, or the newest."""
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
            raise TransportError("very short watch: the server closed it without an event")

    def _watch_seconds(self) -> int:
        return int(MIN_WATCH_SECONDS * (1 + self._rng.random()))

    async def _follow(self, events: EventStream) -> None:
        """Apply the events of a watch until it ends."""
        self.watching = True
        self.reconnects += self._resuming
        self._resuming = True
        if not self._suspect:
            self.last_heard = self._clock.monotonic()
        self._log_recovery()
        try:
            async for event in events:
                await self._wait_unlocked()
                self._apply_to_store(event)
                self._reached(event.resource_version)
            self._suspect = False
        except IdleTimeoutError:
            self._suspect = True
            raise
        finally:
            self.watching = False

    async def _wait_unlocked(self) -> None:
        """Return when the store may change.

        Decisions lock it, and wait for each other in the same way: in each iteration of the event
        loop, each of them looks once. So the next decision does not overtake those who wait.
        """
        while self._is_locked():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0)

    def _apply_to_store(self, event: WatchEvent) -> None:
        if event.type == "DELETED":
            self._store.remove(self._decode(event.object))
        elif event.type != "BOOKMARK":
            self._store.upsert(self._decode(event.object))

    def _reached(self, resource_version: str) -> None:
        self.resource_version = resource_version
        self._suspect = False
        self.last_heard = self._clock.monotonic()

    async def _recover(self, error: RequestError) -> None:
        """Choose between resuming and listing again, and wait for the delay."""
        if is_version_unusable(error) and self._must_list and not self._version_refused:
            self._version_refused = True
            return
        await self._wait_unlocked()
        self._settle_unless_served(error)
        self._must_list = self._must_list or not is_retriable(error)
        delay = max(self._backoff.next_delay(), requested_delay(error))
        self.retry_at = self._clock.monotonic() + delay
        self._log_failure(error, delay)
        await self._clock.sleep(delay)

    def _settle_unless_served(self, error: RequestError) -> None:
        """Do nothing: the resource is required."""

    def _log_failure(self, error: RequestError, delay: float) -> None:
        kind = error_kind(error)
        if kind != self._error_kind:
            then = "list" if self._must_list else "resume"
            log = self._log.info if self._is_routine(error) else self._log.warning
            log("informer_trouble", error=str(error), then=then, in_seconds=round(delay, 1))
        self._error_kind, self.last_error = kind, self._describe_error(error)

    def _is_routine(self, error: RequestError) -> bool:
        """Return whether a new list mends an error: a compaction or a reset of the server."""
        return isinstance(error, ApiError) and error.expired and not self._version_refused

    def _describe_error(self, error: RequestError) -> str:
        if isinstance(error, ApiError) and error.status == 403:
            return f"{error.status} {error.reason}: {error.message}; {self._missing_permission()}"
        return str(error)

    def _missing_permission(self) -> str:
        return f"grant list and watch on {self._resource}"

    def _log_recovery(self) -> None:
        if self._error_kind:
            self._log.info("informer_recovered", resource_version=self.resource_version)
        self._error_kind = self.last_error = ""


class OptionalReflector(Reflector[T]):
    """Lists and watches a resource that the server may not serve, or may not permit.

    After a 404 or 403 it counts as unavailable, so that waiting for it ends. The list is retried
    with the usual delays, and the resource is watched once it is served.
    """

    def _settle_unless_served(self, error: RequestError) -> None:
        if isinstance(error, ApiError) and error.status in (403, 404):
            self.refusal = self._describe_refusal(error)
            self._settled.set()

    def _describe_refusal(self, error: ApiError) -> str:
        described = f"{error.status} {error.reason}"
        return f"{described}; {self._missing_permission()}" if error.status == 403 else described
