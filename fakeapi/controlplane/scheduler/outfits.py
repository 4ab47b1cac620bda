"""What a scheduler is given beside what all parts of the control plane are.

It stands apart from what it does, since whoever starts a cluster needs it, with a scheduler or not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import orjson

from extender.kube.clock import Clock
from fakeapi.controlplane.scheduler.trace import Trace

if TYPE_CHECKING:
    from fakeapi.controlplane.scheduler.configuration import Configuration  # who needs it, loads it

OK: Final = 200


class SchedulerError(ValueError):
    """A scheduler's configuration is wrong; the text says where, and what was expected."""


class UnansweredError(Exception):
    """An extender gave no answer; the text says why, in the words of Go's HTTP client."""


@dataclass(frozen=True, slots=True)
class Call:
    """A POST to an extender: its ``urlPrefix`` as it is configured, the verb, and JSON."""

    prefix: str
    verb: str
    body: bytes

    @property
    def url(self) -> str:
        """Where the call goes: slashes at the prefix's end are dropped."""
        return f"{self.prefix.rstrip('/')}/{self.verb}"

    def document(self) -> Any:
        """Return the body as JSON."""
        return orjson.loads(self.body)


@dataclass(frozen=True, slots=True)
class Reply:
    """What an extender answers; kube-scheduler takes any status but 200 for an error."""

    status: int
    body: bytes

    @staticmethod
    def of(document: Any, status: int = OK) -> Reply:
        """Answer with JSON."""
        return Reply(status, orjson.dumps(document))


Extend: TypeAlias = Callable[[Call], Reply | Awaitable[Reply]]
"""An extender in this process, plain or async; UnansweredError is one that cannot be reached."""

Configured: TypeAlias = str | bytes | Mapping[str, Any]
"""A KubeSchedulerConfiguration: a document, or its YAML."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """How a scheduler waits for extenders: by which clock, and in which block."""

    clock: Clock
    during: Callable[[], AbstractContextManager[None]] = nullcontext


@dataclass(frozen=True, slots=True)
class SchedulerOutfit:
    """What a scheduler needs.

    ``configuration`` None is kube-scheduler's own default: one profile, no extenders. ``extenders``
    stand in for those whose ``urlPrefix`` is the key; all others are called over HTTP. Every
    exchange goes into ``trace``. Unless ``waiting`` says otherwise, answers are awaited by the
    world's clock, which goes on.
    """

    configuration: Configuration | None = None
    extenders: Mapping[str, Extend] = field(default_factory=dict)
    trace: Trace = field(default_factory=Trace)
    waiting: Waiting | None = None

    def for_fork(self) -> SchedulerOutfit:
        """Return the same for another world, which has a trace of its own."""
        return replace(self, trace=Trace())
