"""The effects of injected faults; each effect is a frozen value.

Before the request is handled:

- :class:`Latency`: the request is delayed; with ``when`` ``after`` it is handled first, and its
  response is delayed;
- :class:`Refusal`: the response is 403, 429, 500, 503 or 504;
- :class:`Conflict`: the response to an update or a patch is 409;
- :class:`Compaction`: the server compacts its history first;
- :class:`Staleness`: a request that a watch cache may answer is answered from an older state.

After the request is handled, or instead:

- :class:`Drop`: the connection is reset, ``before`` the request is handled or ``after`` it, so that
  the client cannot know whether it was handled; that of a watch is reset in mid-stream;
- :class:`Cut`: the response ends inside its JSON.

During a watch: :class:`Lag`, :class:`Silence`, :class:`Expiry`, :class:`Duplication`.

Events are never lost, repeated or reordered, because upstream does not do that within one watch;
only bookmarks are repeated. A client receives an event twice only after a stale start.

Sources: k8s.io/apiserver/pkg/server/filters (maxinflight.go, timeout.go), pkg/storage/cacher, and
k8s.io/apimachinery/pkg/api/errors for the messages of the error responses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from fakeapi.apiserver.wire.errors import OBJECT_MODIFIED, StatusError, internal_error
from fakeapi.apiserver.wire.http_messages import Response

When = Literal["before", "after"]
End = Literal["abrupt", "clean"]


@dataclass(frozen=True, slots=True)
class Latency:
    """Delays for ``least`` to ``most`` seconds, before or after the request is handled."""

    least: float
    most: float
    when: When = "before"

    def sampled(self, draw: float) -> Latency:
        """Return the fixed latency that a random number from [0, 1) selects."""
        seconds = self.least + (self.most - self.least) * draw
        return Latency(seconds, seconds, self.when)

    def __str__(self) -> str:
        return f"latency {self.most:.3f} s"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Responds with ``code``, and with Retry-After ``retry_after`` seconds (0: without it).

    ``message`` replaces the default one, for example with that of a quota or a policy.
    """

    code: int
    retry_after: int = 0
    message: str = ""

    def response(self) -> Response:
        """Return the Status, with a Retry-After header if ``retry_after`` is set."""
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


@dataclass(frozen=True, slots=True)
class Conflict(Refusal):
    """Responds with 409 to an update or a patch, as if another client had written the object."""

    code: int = 409
    resource: str = ""
    name: str = ""

    def about(self, resource: str, name: str) -> Conflict:
        """Return the conflict of an object; ``resource`` is like ``deployments.apps``."""
        return replace(self, resource=resource, name=name)

    def _status(self) -> StatusError:
        plural, _, group = self.resource.partition(".")
        message = f'Operation cannot be fulfilled on {self.resource} "{self.name}": '
        details = {"name": self.name, "group": group, "kind": plural}
        return StatusError(self.code, "Conflict", message + OBJECT_MODIFIED, details)


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
    """Compacts the history up to now, before the request is handled."""

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
    """Resets the connection; that of a watch after ``after_frames`` frames, if not ``before``."""

    when: When
    after_frames: int

    def __str__(self) -> str:
        return f"drop {self.when}"


@dataclass(frozen=True, slots=True)
class Cut:
    """Sends half a response, or for a watch half a frame after ``after_frames`` whole ones.

    ``abrupt``: the connection ends there; ``clean``: the response ends as if it were complete.
    """

    end: End
    after_frames: int

    def __str__(self) -> str:
        return f"cut {self.end}"


@dataclass(frozen=True, slots=True)
class Lag:
    """Delays every frame of a watch by ``seconds``; their order is preserved."""

    seconds: float

    def __str__(self) -> str:
        return f"lag {self.seconds:g} s"


@dataclass(frozen=True, slots=True)
class Silence:
    """A watch sends no frame for ``seconds`` (None: until its end), after ``after_frames``."""

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
    """Sends each bookmark of a watch twice."""

    def __str__(self) -> str:
        return "duplicate"


Effect: TypeAlias = (
    Latency | Refusal | Compaction | Staleness | Drop | Cut | Lag | Silence | Expiry | Duplication
)

WATCHING: Final = (Lag, Silence, Expiry, Duplication)
"""Effects that apply only to watches."""

CONFLICT_VERBS: Final = ("update", "patch")
"""The verbs to which :class:`Conflict` applies."""

ENDING: Final = (Refusal, Drop, Cut, Expiry)
"""Effects after which no further effect can apply to a request."""
