"""The calls between a scheduler and its extenders, with their outcomes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import orjson

CALL_LIMIT: Final = 4096


class ExtenderOutcome(Enum):
    """The outcome of a call to an extender.

    ``ignored``: no usable response, and the extender is ignorable (or only scores); ``failed``: the
    scheduler's operation failed with it.
    """

    ACCEPTED = "accepted"
    IGNORED = "ignored"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ExtenderCall:
    """One call to an extender and its outcome.

    ``at_ns`` is in nanoseconds since the epoch, ``seconds`` the duration of the call. ``pod`` is
    ``namespace/name``, ``extender`` its urlPrefix. The status is 0 without a response. ``problem``
    is why the response could not be used; ``notes`` are oddities that kube-scheduler accepts
    silently, but that the extender's author may not have intended.
    """

    at_ns: int
    seconds: float
    pod: str
    extender: str
    verb: str
    url: str
    request: bytes
    status: int
    answer: bytes
    verdict: ExtenderOutcome
    problem: str = ""
    notes: tuple[str, ...] = ()

    @property
    def asked(self) -> Any:
        """The request, as JSON."""
        return orjson.loads(self.request)

    @property
    def answered(self) -> Any:
        """The response: JSON, or its text if it is not JSON."""
        try:
            return orjson.loads(self.answer)
        except orjson.JSONDecodeError:
            return self.answer.decode(errors="replace")

    def document(self) -> dict[str, Any]:
        """Return the call as a JSON document."""
        return {
            "timeNs": self.at_ns,
            "seconds": self.seconds,
            "pod": self.pod,
            "extender": self.extender,
            "verb": self.verb,
            "url": self.url,
            "request": self.asked,
            "status": self.status,
            "answer": self.answered,
            "verdict": self.verdict.value,
            "problem": self.problem,
            "notes": list(self.notes),
        }


class ExtenderCallTrace(Sequence[ExtenderCall]):
    """Keeps the newest calls, oldest first."""

    def __init__(self, limit: int = CALL_LIMIT) -> None:
        self._kept: deque[ExtenderCall] = deque(maxlen=limit)
        self._grown = asyncio.Event()

    def __len__(self) -> int:
        return len(self._kept)

    def __getitem__(self, index: Any) -> Any:
        return list(self._kept)[index]

    def __iter__(self) -> Iterator[ExtenderCall]:
        return iter(tuple(self._kept))

    def add(self, exchange: ExtenderCall) -> None:
        """Add a call."""
        self._kept.append(exchange)
        self._grown.set()

    async def reached(self, count: int) -> None:
        """Wait until there are at least this many calls."""
        while len(self._kept) < count:
            self._grown.clear()
            await self._grown.wait()

    def clear(self) -> None:
        """Remove all calls."""
        self._kept.clear()

    def calls(self, verb: str = "", pod: str = "") -> list[ExtenderCall]:
        """Return the calls of a verb, about a pod (``namespace/name``); "" matches any."""
        return [
            each
            for each in self._kept
            if (not verb or each.verb == verb) and (not pod or each.pod == pod)
        ]

    def refused(self) -> list[ExtenderCall]:
        """Return the calls whose responses could not be used."""
        return [each for each in self._kept if each.verdict is not ExtenderOutcome.ACCEPTED]

    def documents(self) -> list[dict[str, Any]]:
        """Return all calls as JSON documents."""
        return [each.document() for each in self._kept]
