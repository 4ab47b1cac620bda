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

MOST_SIMILAR: Final = 10
SIMILAR_WITHIN_NS: Final = 600 * 10**9
BURST: Final = 25
REFILL_NS: Final = 300 * 10**9
REMEMBERED: Final = 4096

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
class Event:
    """A recorded event: by ``component``, about an object; ``type`` is Normal or Warning.

    ``name`` is the name of the Event object. ``first_ns`` and ``last_ns`` are the times of the
    first and the last of ``count`` occurrences, in epoch nanoseconds. An aggregated event
    represents several similar ones.
    """

    name: str
    component: str
    about: ObjectReference
    type: str
    reason: str
    message: str
    first_ns: int
    last_ns: int
    count: int = 1
    combined: bool = False


class _Recent(Generic[K, V]):
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
        if len(self._items) > REMEMBERED:
            del self._items[next(iter(self._items))]


@dataclass(slots=True)
class _Similar:
    """The messages of events that differ in nothing else."""

    last_ns: int
    messages: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Allowance:
    """A token bucket of events about one object; tokens are added with time."""

    as_of_ns: int
    left: float = BURST

    def take(self, now_ns: int) -> bool:
        self.left = min(BURST, self.left + max(0, now_ns - self.as_of_ns) / REFILL_NS)
        self.as_of_ns = now_ns
        allowed = self.left >= 1
        self.left -= allowed
        return allowed


class Correlator:
    """Correlates events with the earlier ones; see the module's rules."""

    def __init__(self) -> None:
        self._similar: _Recent[Hashable, _Similar] = _Recent()
        self._told: _Recent[Hashable, Event] = _Recent()
        self._allowances: _Recent[Hashable, _Allowance] = _Recent()

    def correlate(self, event: Event, now_ns: int) -> Event | None:
        """Return the Event to write for a recorded event; None if it is dropped.

        If its count is above 1, it has been written before (unless the write failed): only its
        count, last time and message are new.
        """
        key, event = self._combined(event, now_ns)
        told = self._told.get(key)
        if told is not None:
            event = replace(event, name=told.name, first_ns=told.first_ns, count=told.count + 1)
        self._told.put(key, event)
        return event if self._allowed(event, now_ns) else None

    def _combined(self, event: Event, now_ns: int) -> tuple[Hashable, Event]:
        """Return the event, or the aggregate of all similar ones, and the key to count it by."""
        kind = (event.component, event.about, event.type, event.reason)
        similar = self._similar.get(kind)
        if similar is None or now_ns - similar.last_ns > SIMILAR_WITHIN_NS:
            similar = _Similar(now_ns)
        similar.messages[event.message] = None
        similar.last_ns = now_ns
        self._similar.put(kind, similar)
        if len(similar.messages) < MOST_SIMILAR:
            return (*kind, event.message), event
        del similar.messages[next(iter(similar.messages))]
        return kind, replace(event, message=_COMBINED + event.message, combined=True)

    def _allowed(self, event: Event, now_ns: int) -> bool:
        source = (event.component, event.about, event.type)
        allowance = self._allowances.get(source) or _Allowance(now_ns)
        self._allowances.put(source, allowance)
        return allowance.take(now_ns)
