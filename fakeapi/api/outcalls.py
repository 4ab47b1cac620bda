"""Calls to webhooks, in the middle of a pure function.

The API is a function from a request to an answer, and waits for nothing. Where it needs to know
what webhooks say, it *suspends*: it raises :class:`SuspendedError` with the calls, whoever drives
it (:mod:`fakeapi.webhooks`) makes them, all at once, and then everything is done again, this time
with the answers at hand. Nothing has been written before; time and dice stand still from attempt to
attempt, so that the second does what the first did, and goes further.

    attempt 1    convert ... suspended: call A
    attempt 2    convert (A says ...), review ... suspended: calls B and C
    attempt 3    convert (A says ...), review (B and C say ...), write, answer

Why not a generator that goes on where it stopped: while a call is under way others are served, and
what was read before it may have changed. Doing everything again reads everything again, so a stale
base is refused, and an object that has moved on is shown anew (another body is another call), as
upstream does when its storage finds a conflict. What has to be done once only, such as one of
several deletions, goes through :meth:`Outbox.once`; so does what takes long and reads nothing that
can change, such as what is made of a body.

A *hook*, a function of this process, may stand in for a webhook: a plain one is called on the spot,
an ``async`` one by the driver.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import Any, Final, TypeVar

import orjson

from fakeapi.api.metadata import Sources

T = TypeVar("T")
Review = dict[str, Any]
Hook = Callable[[Review], "Review | Awaitable[Review]"]
"""Takes a review and gives it answered; raises OutCallError for a call that fails."""

_ANSWER: Final = ("kind", "apiVersion", "response")

MOST_CALLS: Final = 1_000
"""How many calls one request may make; it would take a loop to make more."""


@dataclass(frozen=True, slots=True)
class OutCall:
    """A POST of JSON; ``host`` is the name that the certificate must bear ("": the URL's).

    A ``hook`` is asked in place of the URL.
    """

    url: str
    body: bytes
    ca_bundle: bytes = b""
    host: str = ""
    timeout_seconds: int = 30
    hook: Hook | None = None


class OutCallError(Exception):
    """A call failed; the words are those of Go's client, without the URL."""


class AnsweredError(OutCallError):
    """A call was answered by something that is no review; the words are client-go's."""


class SuspendedError(Exception):
    """Nothing goes on until calls have been made."""

    def __init__(self, calls: Sequence[OutCall]) -> None:
        super().__init__(", ".join(call.url for call in calls))
        self.calls = calls


@dataclass(slots=True)
class Attempts:
    """What attempts at one request share: answers so far, and what time and dice said."""

    answers: dict[OutCall, bytes | OutCallError] = field(default_factory=dict)
    drawn: dict[Hashable, list[tuple[Any, Sequence[Hashable]]]] = field(default_factory=dict)
    _used: dict[Hashable, int] = field(default_factory=dict)
    _order: list[Hashable] = field(default_factory=list)

    def begin(self) -> None:
        """Begin another attempt, in which nothing has been drawn yet."""
        self._used.clear()
        self._order.clear()

    def draw(self, what: Hashable, source: Callable[[], T]) -> T:
        """Return what the last attempt got here, or something new.

        What ``source`` itself has drawn counts as drawn in either case.
        """
        values = self.drawn.setdefault(what, [])
        position = self._used.get(what, 0)
        self._count(what)
        value: T
        if position == len(values):
            begun = len(self._order)
            value = source()
            values.append((value, self._order[begun:]))
            return value
        value, inside = values[position]
        for each in inside:
            self._count(each)
        return value

    def _count(self, what: Hashable) -> None:
        """Note that something has been drawn in this attempt."""
        self._used[what] = self._used.get(what, 0) + 1
        self._order.append(what)


class Outbox:
    """Through which the API asks webhooks."""

    def __init__(self) -> None:
        self._attempts: Attempts | None = None

    def attempt(self, attempts: Attempts) -> Outbox:
        """Begin an attempt that ends with the ``with`` around it; it must not wait for anything."""
        attempts.begin()
        self._attempts = attempts
        return self

    def __enter__(self) -> None:
        """Attempts begin where they are made."""

    def __exit__(self, *_failure: object) -> None:
        self._attempts = None

    def ask(self, call: OutCall) -> bytes:
        """Return the answer's body; raises SuspendedError, OutCallError."""
        [answer] = self.ask_all([call])
        if isinstance(answer, OutCallError):
            raise answer
        return answer

    def ask_all(self, calls: Sequence[OutCall]) -> list[bytes | OutCallError]:
        """Return the answers' bodies, or what has failed; raises SuspendedError."""
        answers = [self._answer(call) for call in calls]
        missing = [c for c, answer in zip(calls, answers, strict=True) if answer is None]
        if missing and self._attempts is not None:
            raise SuspendedError(missing)
        undriven = OutCallError("webhooks are called only while a request is served")
        return [undriven if answer is None else answer for answer in answers]

    def once(self, what: Hashable, act: Callable[[], T]) -> T:
        """Return what ``act`` gives, done in the first attempt that comes so far."""
        return act() if self._attempts is None else self._attempts.draw(what, act)

    def steady(self, sources: Sources) -> Sources:
        """Return sources that say the same in all attempts at one request."""
        return Sources(
            lambda offset: self.once(offset, lambda: sources.timestamp(offset)),
            lambda: self.once("uid", sources.uid),
            lambda: self.once("suffix", sources.suffix),
            lambda: self.once("now", sources.now),
        )

    def _answer(self, call: OutCall) -> bytes | OutCallError | None:
        """Return what is known of an answer, or what a plain hook says."""
        known = None if self._attempts is None else self._attempts.answers.get(call)
        if known is not None or call.hook is None or iscoroutinefunction(call.hook):
            return known
        answer = _ask(call.hook, call.body)
        if self._attempts is not None:
            self._attempts.answers[call] = answer
        return answer


def _ask(hook: Hook, body: bytes) -> bytes | OutCallError:
    try:
        return told(hook(orjson.loads(body)))
    except OutCallError as error:
        return error


def told(answer: Any) -> bytes:
    """Encode what a hook has answered; its question, which many give back, nobody reads again."""
    if isinstance(answer, dict):
        answer = {name: answer[name] for name in _ANSWER if name in answer}
    return orjson.dumps(answer)
