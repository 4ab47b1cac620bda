"""The scheduler's options, and the calls of its extenders as values.

They are separate from the scheduler and its configuration, because each cluster takes these options
when it starts, even if it runs no scheduler.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import orjson

from extender.kube.rest.clock import Clock
from fakeapi.controlplane.scheduler.extender_trace import ExtenderCallTrace

if TYPE_CHECKING:
    from fakeapi.controlplane.scheduler.configuration import SchedulerConfiguration

OK: Final = 200


class SchedulerConfigError(ValueError):
    """A scheduler's configuration is invalid; the text has the field and what was expected."""


class UnansweredError(Exception):
    """An extender did not respond; the text is the reason in the words of Go's HTTP client."""


@dataclass(frozen=True, slots=True)
class Call:
    """A POST to an extender: its ``urlPrefix`` as it is configured, the verb, and JSON."""

    prefix: str
    verb: str
    body: bytes

    @property
    def url(self) -> str:
        """The URL of the call; slashes at the end of the prefix are dropped."""
        return f"{self.prefix.rstrip('/')}/{self.verb}"

    def document(self) -> Any:
        """Return the body as JSON."""
        return orjson.loads(self.body)


@dataclass(frozen=True, slots=True)
class Reply:
    """The response of an extender; kube-scheduler treats any status but 200 as an error."""

    status: int
    body: bytes

    @staticmethod
    def of(document: Any, status: int = OK) -> Reply:
        """Return a response with a JSON body."""
        return Reply(status, orjson.dumps(document))


ExtenderFunction: TypeAlias = Callable[[Call], Reply | Awaitable[Reply]]
"""An extender in this process, plain or async; one that raises UnansweredError is unreachable."""

ConfigurationSource: TypeAlias = str | bytes | Mapping[str, Any]
"""A KubeSchedulerConfiguration: a document, or its YAML."""


@dataclass(frozen=True, slots=True)
class ExtenderWait:
    """How a scheduler waits for extenders: the clock of time limits, and a context to wait in."""

    clock: Clock
    during: Callable[[], AbstractContextManager[None]] = nullcontext


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """The options of a scheduler.

    ``configuration`` None is kube-scheduler's default: one profile, no extenders. ``extenders`` are
    called in this process for configured ones whose ``urlPrefix`` is the key; all others are called
    over HTTP. Every call is added to ``trace``. Without ``waiting``, time limits of extender calls
    are measured by the world's clock, which keeps running.
    """

    configuration: SchedulerConfiguration | None = None
    extenders: Mapping[str, ExtenderFunction] = field(default_factory=dict)
    trace: ExtenderCallTrace = field(default_factory=ExtenderCallTrace)
    waiting: ExtenderWait | None = None

    def for_fork(self) -> SchedulerOptions:
        """Return the same options for another world, with a new trace."""
        return replace(self, trace=ExtenderCallTrace())
