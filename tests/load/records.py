"""The records of a load run: calls as CSV, samples and the extender's decisions as JSON lines.

Times are in seconds of the machine's monotonic clock, which all processes share.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Final, TypeVar

import msgspec

ANSWERED: Final = "answered"
REFUSED: Final = "refused"
FULL_HOUSE: Final = "refused: a full house"
CUT: Final = "cut"
ORDERLY: Final = frozenset({ANSWERED, REFUSED, FULL_HOUSE})
"""The acceptable outcomes under any load."""

REPRIEVE: Final = "reprieve"
ECHO: Final = "echo"

T = TypeVar("T")

_VERBS: Final = frozenset({"filter", "preempt"})
_TOO_MANY: Final = "reprieve: overloaded: there are too many connections"
_DEGRADED: Final = ("reprieve: late: ", "reprieve: overloaded: ", "reprieve: stale: ")


@dataclass(frozen=True, slots=True)
class Call:
    """One call: its user and phase, the replica it went to, and how it ended."""

    phase: str
    user: str
    target: str
    kind: str
    started: float
    ended: float
    status: int
    outcome: str

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.ended - self.started


class Sample(msgspec.Struct, frozen=True):
    """A call whose answer was kept; ``body`` is the number of its body among its kind."""

    phase: str
    kind: str
    body: int
    request_id: str
    started: float
    ended: float
    answer: str


class Decision(msgspec.Struct, frozen=True):
    """A decision in the extender's log; ``event`` is the verb.

    ``generation`` is that of its snapshot.
    """

    event: str
    request_id: str
    pod: str
    generation: int
    pods_version: str
    node: str | None = None
    victims: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    took_ms: float = 0.0


class Change(msgspec.Struct, frozen=True):
    """An event of a pod, and when a watch of our own received it."""

    at: float
    event: Event

    @property
    def version(self) -> int:
        """The resource version that it made."""
        found = msgspec.json.decode(self.event.object, type=_Versioned)
        return int(found.metadata.resource_version)


class Event(msgspec.Struct, frozen=True):
    """A watch event: ADDED, MODIFIED or DELETED, and the object as it was written."""

    type: str
    object: msgspec.Raw


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str


class _Versioned(msgspec.Struct, frozen=True):
    metadata: _Version


class _Line(msgspec.Struct, frozen=True):
    event: str


def outcome(status: int, retry_after: str, body: bytes) -> str:
    """Return how a call ended: answered, refused as is documented, cut, or what is wrong with it.

    A refusal is a 429 or 503 with a Retry-After, and with the documented case that it is; the one
    for too many calls is distinguished, where as many calls are under way as may be connections.
    """
    if status == 200:
        return ANSWERED
    if status == 0:
        return CUT
    if status not in {429, 503}:
        return f"status {status}"
    if not retry_after.isdecimal():
        return f"status {status} without Retry-After"
    said = body.decode(errors="replace")
    if not said.startswith(_DEGRADED):
        return f"status {status} without a documented case"
    return FULL_HOUSE if said.startswith(_TOO_MANY) else REFUSED


def write_calls(path: Path, calls: Iterable[Call]) -> None:
    """Write calls with a head line."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(each.name for each in fields(Call))
        writer.writerows(astuple(call) for call in calls)


def read_calls(path: Path) -> list[Call]:
    """Read what :func:`write_calls` wrote."""
    with path.open(newline="") as file:
        return [msgspec.convert(row, Call, strict=False) for row in csv.DictReader(file)]


def read_samples(path: Path) -> list[Sample]:
    """Read samples, one in a line."""
    return list(_lines(path, Sample))


def read_changes(path: Path) -> list[Change]:
    """Read the events that the churn's watch has written."""
    return list(_lines(path, Change))


def read_decisions(path: Path) -> list[Decision]:
    """Read the decisions, in the order in which they were made, out of the extender's log.

    A line is written after its answer is sent. So the answer to a client that reads slowly may be
    logged after a later one.
    """
    decoder = msgspec.json.Decoder(Decision)
    with path.open("rb") as file:
        found = [decoder.decode(line) for line in file if _event(line) in _VERBS]
    return sorted(found, key=lambda each: each.generation)


def _event(line: bytes) -> str:
    return msgspec.json.decode(line, type=_Line).event


def _lines(path: Path, kind: type[T]) -> Iterator[T]:
    decoder = msgspec.json.Decoder(kind)
    with path.open("rb") as file:
        for line in file:
            yield decoder.decode(line)


def select(
    calls: Sequence[Call], phase: str, target: str = REPRIEVE, user: str = "", kind: str = ""
) -> list[Call]:
    """Return the calls of a phase to a target, of one user or kind if it is named."""
    return [
        call
        for call in calls
        if (call.phase, call.target) == (phase, target)
        and user in ("", call.user)
        and kind in ("", call.kind)
    ]
