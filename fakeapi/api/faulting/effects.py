"""What can go wrong with a request: each fault is one frozen value.

Before the request is carried out:

- :class:`Latency`: it waits; with ``when`` ``after`` its answer waits, and it has been carried out;
- :class:`Refusal`: it is answered 403, 429, 500, 503 or 504;
- :class:`Compaction`: the server forgets its history first;
- :class:`Staleness`: what a lagging watch cache may answer, it answers from an older state.

After it, or instead of it:

- :class:`Drop`: the connection is reset, ``before`` the request is carried out or ``after`` it
  ("did it happen?"), and a watch's in mid-stream;
- :class:`Cut`: the answer ends inside its JSON.

While it watches: :class:`Lag`, :class:`Silence`, :class:`Expiry`, :class:`Duplication`.

Events are never lost, repeated or put in another order, as upstream never does that within one
watch; only bookmarks are repeated. What a client may see twice it sees after a stale start.

Sources: k8s.io/apiserver/pkg/server/filters (maxinflight.go, timeout.go), pkg/storage/cacher, and
k8s.io/apimachinery/pkg/api/errors for the words of the refusals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from fakeapi.api.errors import StatusError, internal_error
from fakeapi.api.messages import Response

When = Literal["before", "after"]
End = Literal["abrupt", "clean"]


@dataclass(frozen=True, slots=True)
class Latency:
    """Waits ``least`` to ``most`` seconds, before the request is carried out or after it."""

    least: float
    most: float
    when: When = "before"

    def drawn(self, draw: float) -> Latency:
        """Return the one latency that a number from [0, 1) stands for."""
        seconds = self.least + (self.most - self.least) * draw
        return Latency(seconds, seconds, self.when)

    def __str__(self) -> str:
        return f"latency {self.most:.3f} s"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Answers ``code`` and tells the client to wait ``retry_after`` seconds (0: tells nothing).

    ``message`` stands in place of the usual one, as a quota or a policy would put it.
    """

    code: int
    retry_after: int = 0
    message: str = ""

    def response(self) -> Response:
        """Return the Status, with a Retry-After header if there is something to tell."""
        answer = self._status().response()
        headers = {"Retry-After": str(self.retry_after)} if self.retry_after else {}
        return Response(answer.status, answer.body, headers=headers)

    def _status(self) -> StatusError:
        if self.code == 500 and not self.retry_after:
            return internal_error("injected fault")
        reason, usual = REFUSALS[self.code]
        details = {"retryAfterSeconds": self.retry_after} if self.code != 403 else None
        return StatusError(self.code, reason, self.message or usual, details)

    def __str__(self) -> str:
        return str(self.code)


REFUSALS: Final = {
    403: ("Forbidden", "forbidden: injected fault"),
    429: ("TooManyRequests", "Too many requests, please try again later."),
    500: ("InternalError", "Internal error occurred: injected fault"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: ("Timeout", "Timeout: request did not complete within the allotted timeout"),
}
"""Code → reason and message."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """Forgets the history up to now, before the request is carried out."""

    def __str__(self) -> str:
        return "compact"


@dataclass(frozen=True, slots=True)
class Staleness:
    """Answers from the state before the resource's newest ``behind`` events."""

    behind: int

    def __str__(self) -> str:
        return f"stale {self.behind}"


@dataclass(frozen=True, slots=True)
class Drop:
    """Resets the connection; a watch's after ``after_frames`` whole frames, if not ``before``."""

    when: When
    after_frames: int

    def __str__(self) -> str:
        return f"drop {self.when}"


@dataclass(frozen=True, slots=True)
class Cut:
    """Sends half an answer, or of a watch half a frame after ``after_frames`` whole ones.

    ``abrupt``: the connection ends there; ``clean``: the answer ends as if it were whole.
    """

    end: End
    after_frames: int

    def __str__(self) -> str:
        return f"cut {self.end}"


@dataclass(frozen=True, slots=True)
class Lag:
    """Holds every frame of a watch back for ``seconds``; their order stays."""

    seconds: float

    def __str__(self) -> str:
        return f"lag {self.seconds:g} s"


@dataclass(frozen=True, slots=True)
class Silence:
    """A watch gives no frame for ``seconds`` (None: until its end), after ``after_frames``."""

    seconds: float | None
    after_frames: int

    def __str__(self) -> str:
        return "silence" if self.seconds is None else f"silence {self.seconds:g} s"


@dataclass(frozen=True, slots=True)
class Expiry:
    """Ends a watch with an ERROR 410 after ``after_frames``."""

    after_frames: int

    def __str__(self) -> str:
        return "expire"


@dataclass(frozen=True, slots=True)
class Duplication:
    """A watch's bookmarks come twice."""

    def __str__(self) -> str:
        return "duplicate"


Effect: TypeAlias = (
    Latency | Refusal | Compaction | Staleness | Drop | Cut | Lag | Silence | Expiry | Duplication
)

WATCHING: Final = (Lag, Silence, Expiry, Duplication)
"""Faults that only watches meet."""

ENDING: Final = (Refusal, Drop, Cut, Expiry)
"""Faults after which a request can meet no further one."""
