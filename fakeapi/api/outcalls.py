"""Calls to webhooks, in the middle of a pure function.

The API is a function from a request to an answer, and waits for nothing. Where it needs to know
what a webhook says, it *suspends*: it raises :class:`SuspendedError` with the call, whoever drives
it makes the call, and then everything is done again, this time with the answer at hand. Nothing has
been written before; time and dice stand still from attempt to attempt, so that the second does what
the first did, and goes further.

    attempt 1    convert ... suspended: call A
    attempt 2    convert (A says ...), write, answer
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from fakeapi.api.metadata import Sources

T = TypeVar("T")
MOST_CALLS: Final = 1_000
"""How many calls one request may make; it would take a loop to make more."""


@dataclass(frozen=True, slots=True)
class OutCall:
    """A POST of JSON; ``host`` is the name that the certificate must bear ("": the URL's)."""

    url: str
    body: bytes
    ca_bundle: bytes = b""
    host: str = ""
    timeout_seconds: int = 30


class OutCallError(Exception):
    """A call failed; the words are those of Go's client, without the URL."""


class SuspendedError(Exception):
    """Nothing goes on until a call has been made."""

    def __init__(self, call: OutCall) -> None:
        super().__init__(call.url)
        self.call = call


@dataclass(slots=True)
class Attempts:
    """What attempts at one request share: answers so far, and what time and dice said."""

    answers: dict[OutCall, bytes | OutCallError] = field(default_factory=dict)
    drawn: dict[Hashable, list[Any]] = field(default_factory=dict)
    used: dict[Hashable, int] = field(default_factory=dict)

    def draw(self, what: Hashable, source: Callable[[], T]) -> T:
        """Give what the last attempt got here, or something new."""
        values = self.drawn.setdefault(what, [])
        position = self.used.get(what, 0)
        self.used[what] = position + 1
        if position == len(values):
            values.append(source())
        value: T = values[position]
        return value


class Outbox:
    """Through which the API asks webhooks."""

    def __init__(self) -> None:
        self._attempts: Attempts | None = None

    @contextmanager
    def attempt(self, attempts: Attempts) -> Iterator[None]:
        """Begin an attempt; it must not wait for anything."""
        attempts.used.clear()
        self._attempts = attempts
        try:
            yield
        finally:
            self._attempts = None

    def ask(self, call: OutCall) -> bytes:
        """Give the answer's body; raises SuspendedError, OutCallError."""
        if self._attempts is None:
            raise OutCallError("webhooks are called only while a request is served")
        answer = self._attempts.answers.get(call)
        if answer is None:
            raise SuspendedError(call)
        if isinstance(answer, OutCallError):
            raise answer
        return answer

    def steady(self, sources: Sources) -> Sources:
        """Give sources that say the same in all attempts at one request."""
        return Sources(
            lambda offset: self._draw(offset, lambda: sources.timestamp(offset)),
            lambda: self._draw("uid", sources.uid),
            lambda: self._draw("suffix", sources.suffix),
            lambda: self._draw("now", sources.now),
        )

    def _draw(self, what: Hashable, source: Callable[[], T]) -> T:
        return source() if self._attempts is None else self._attempts.draw(what, source)
