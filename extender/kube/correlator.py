"""What becomes of an event that is to be told: told, counted, combined with others, or dropped.

    the same words about the same object     one Event, whose count grows
    like it but for the message, the tenth   one Event for all of them, "(combined from similar
    within ten minutes of the last           events): ..." with the latest message, that is counted
    more than 25 about one object, of one    dropped; one more is let through each five minutes
    component and type                       (what was dropped is counted all the same)

Of each kind of note the 4,096 most recently used are kept. Pure: time is an argument.

client-go combines as soon as ten different messages are remembered, and then forgets any one of
them; here it is the oldest, so that the same events always lead to the same Events.

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
    """What an event is about; the namespace of a cluster-wide object is "" .

    Events about an object are about the same object whatever its ``resource_version``.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str = field(default="", compare=False)

    def document(self) -> dict[str, str]:
        """Return the reference as JSON has it."""
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
    """What is told: ``component`` says it of ``about``, ``type`` is Normal or Warning.

    ``name`` is that of the Event that it stands in; ``first_ns`` and ``last_ns`` are when it came
    about for the first and the last time of ``count``, in epoch nanoseconds. ``combined`` is one
    that stands for several.
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
    """A dictionary that forgets what has not been used for longest."""

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
    """Messages of events that differ in nothing else."""

    last_ns: int
    messages: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Allowance:
    """How many events may still be told of an object; it grows with time."""

    as_of_ns: int
    left: float = BURST

    def take(self, now_ns: int) -> bool:
        self.left = min(BURST, self.left + max(0, now_ns - self.as_of_ns) / REFILL_NS)
        self.as_of_ns = now_ns
        allowed = self.left >= 1
        self.left -= allowed
        return allowed


class Correlator:
    """Remembers what was told; see the module's rules."""

    def __init__(self) -> None:
        self._similar: _Recent[Hashable, _Similar] = _Recent()
        self._told: _Recent[Hashable, Event] = _Recent()
        self._allowances: _Recent[Hashable, _Allowance] = _Recent()

    def correlate(self, event: Event, now_ns: int) -> Event | None:
        """Return the Event to write for one that is to be told; None if it is to be dropped.

        With a count above 1 it has been written before, if that could be done: only its count,
        last time and message are new.
        """
        key, event = self._combined(event, now_ns)
        told = self._told.get(key)
        if told is not None:
            event = replace(event, name=told.name, first_ns=told.first_ns, count=told.count + 1)
        self._told.put(key, event)
        return event if self._allowed(event, now_ns) else None

    def _combined(self, event: Event, now_ns: int) -> tuple[Hashable, Event]:
        """Return the event, or one for all that are similar, and what it is counted by."""
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
