"""What a scheduler and its extenders have said to each other, and what the scheduler made of it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import orjson

MOST_REMEMBERED: Final = 4096


class Verdict(Enum):
    """What the scheduler did with an answer.

    ``ignored``: there was none that it could use, and the extender is ignorable (or only scores);
    ``failed``: what it was about to do has come to nothing.
    """

    ACCEPTED = "accepted"
    IGNORED = "ignored"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One call to an extender and what came of it.

    ``at_ns`` is in nanoseconds since the epoch, ``seconds`` how long the answer took. ``pod`` is
    ``namespace/name``, ``extender`` its urlPrefix. The status is 0 if there was no answer.
    ``problem`` says why the answer could not be used; ``notes`` are what kube-scheduler takes
    without a word, but an extender's author may not have meant.
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
    verdict: Verdict
    problem: str = ""
    notes: tuple[str, ...] = ()

    @property
    def asked(self) -> Any:
        """What was sent, as JSON."""
        return orjson.loads(self.request)

    @property
    def answered(self) -> Any:
        """What came back: JSON, or the text that it is instead."""
        try:
            return orjson.loads(self.answer)
        except orjson.JSONDecodeError:
            return self.answer.decode(errors="replace")

    def document(self) -> dict[str, Any]:
        """Return the exchange as JSON has it."""
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


class Trace(Sequence[Exchange]):
    """The newest exchanges, oldest first."""

    def __init__(self, limit: int = MOST_REMEMBERED) -> None:
        self._kept: deque[Exchange] = deque(maxlen=limit)
        self._grown = asyncio.Event()

    def __len__(self) -> int:
        return len(self._kept)

    def __getitem__(self, index: Any) -> Any:
        return list(self._kept)[index]

    def __iter__(self) -> Iterator[Exchange]:
        return iter(tuple(self._kept))

    def add(self, exchange: Exchange) -> None:
        """Remember an exchange."""
        self._kept.append(exchange)
        self._grown.set()

    async def reached(self, count: int) -> None:
        """Return once there are so many exchanges."""
        while len(self._kept) < count:
            self._grown.clear()
            await self._grown.wait()

    def clear(self) -> None:
        """Forget all there is."""
        self._kept.clear()

    def calls(self, verb: str = "", pod: str = "") -> list[Exchange]:
        """Return the exchanges of a verb, about a pod (``namespace/name``); "" stands for any."""
        return [
            each
            for each in self._kept
            if (not verb or each.verb == verb) and (not pod or each.pod == pod)
        ]

    def refused(self) -> list[Exchange]:
        """Return the exchanges whose answers could not be used."""
        return [each for each in self._kept if each.verdict is not Verdict.ACCEPTED]

    def documents(self) -> list[dict[str, Any]]:
        """Return all exchanges as JSON has them."""
        return [each.document() for each in self._kept]
