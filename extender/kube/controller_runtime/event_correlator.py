"""The event correlator: which recorded events are written, counted, aggregated or dropped.

    same object and same message             one Event, whose count grows
    same but for the message, the tenth      one Event for all of them, "(combined from similar
    within ten minutes of the last           events): ..." with the latest message, and a count
    more than 25 about one object, of one    dropped; one more is let through each five minutes
    component and type                       (dropped events are counted all the same)

Each of its caches keeps the 4,096 most recently used entries. Pure: time is an argument.

client-go aggregates as soon as ten different messages are cached, and then drops any one of them;
here it is the oldest, so that the same events always lead to the same Events.

Source: client-go's tools/record/events_cache.go.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Final, Generic, TypeVar

MAX_SIMILAR: Final = 10
AGGREGATION_INTERVAL_NS: Final = 600 * 10**9
BURST: Final = 25
REFILL_NS: Final = 300 * 10**9
MAX_CACHE_ENTRIES: Final = 4096

_COMBINED: Final = "(combined from similar events): "

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """The involved object of an event; the namespace of a cluster-scoped object is "".

    Two references to one object are equal whatever their ``resource_version``.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str = field(default="", compare=False)

    def document(self) -> dict[str, str]:
        """Return the reference as JSON."""
        fields = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "resourceVersion": self.resource_version,
        }
        return {name: value for name, value in fields.items() if value}


@dataclass(frozen=True, slots=True)
class EventRecord:
    """A recorded event: by ``component``, about an object; ``type`` is Normal or Warning.

    ``name`` is the name of the Event object. ``first_ns`` and ``last_ns`` are the times of the
    first and the last of ``count`` occurrences, in epoch nanoseconds. An aggregated event
    represents several similar ones.
    """

    name: str
    component: str
    involved_object: ObjectReference
    type: str
    reason: str
    message: str
    first_ns: int
    last_ns: int
    count: int = 1
    aggregated: bool = False


class _LruCache(Generic[K, V]):
    """A dictionary that drops the least recently used item."""

    def __init__(self) -> None:
        self._items: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        value = self._items.pop(key, None)
        if value is not None:
            self._items[key] = value
        return value

    def put(self, key: K, value: V) -> None:
        self._items.pop(key, None)
        self._items[key] = value
        if len(self._items) > MAX_CACHE_ENTRIES:
            del self._items[next(iter(self._items))]


@dataclass(slots=True)
class _SimilarEvents:
    """The messages of events that differ in nothing else."""

    last_ns: int
    messages: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class _SpamFilterBucket:
    """A token bucket of events about one object; tokens are added with time."""

    as_of_ns: int
    left: float = BURST

    def take(self, now_ns: int) -> bool:
        self.left = min(BURST, self.left + max(0, now_ns - self.as_of_ns) / REFILL_NS)
        self.as_of_ns = now_ns
        allowed = self.left >= 1
        self.left -= allowed
        return allowed


class EventCorrelator:
    """Correlates events with the earlier ones; see the module's rules."""

    def __init__(self) -> None:
        self._similar: _LruCache[Hashable, _SimilarEvents] = _LruCache()
        self._last: _LruCache[Hashable, EventRecord] = _LruCache()
        self._buckets: _LruCache[Hashable, _SpamFilterBucket] = _LruCache()

    def correlate(self, event: EventRecord, now_ns: int) -> EventRecord | None:
        """Return the Event to write for a recorded event; None if it is dropped.

        If its count is above 1, it has been written before (unless the write failed): only its
        count, last time and message are new.
        """
        key, event = self._aggregate(event, now_ns)
        last = self._last.get(key)
        if last is not None:
            event = replace(event, name=last.name, first_ns=last.first_ns, count=last.count + 1)
        self._last.put(key, event)
        return event if self._is_allowed(event, now_ns) else None

    def _aggregate(self, event: EventRecord, now_ns: int) -> tuple[Hashable, EventRecord]:
        """Return the event, or the aggregate of all similar ones, and the key to count it by."""
        kind = (event.component, event.involved_object, event.type, event.reason)
        similar = self._similar.get(kind)
        if similar is None or now_ns - similar.last_ns > AGGREGATION_INTERVAL_NS:
            similar = _SimilarEvents(now_ns)
        similar.messages[event.message] = None
        similar.last_ns = now_ns
        self._similar.put(kind, similar)
        if len(similar.messages) < MAX_SIMILAR:
            return (*kind, event.message), event
        del similar.messages[next(iter(similar.messages))]
        return kind, replace(event, message=_COMBINED + event.message, aggregated=True)

    def _is_allowed(self, event: EventRecord, now_ns: int) -> bool:
        source = (event.component, event.involved_object, event.type)
        bucket = self._buckets.get(source) or _SpamFilterBucket(now_ns)
        self._buckets.put(source, bucket)
        return bucket.take(now_ns)
