"""The scheduler's configuration: profiles, extenders, and backoff.

It is separate from the scheduler, because a cluster takes these options even if it runs none.

Source: pkg/scheduler/apis/config/types.go.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

import msgspec
import orjson

from extender.config.plugin_args import DefaultPreemptionArgs, ManagedResource
from extender.kube.rest.clock import Clock
from fakeapi.controlplane.scheduler.extender_trace import ExtenderCallTrace
from policies.kubernetes.duration import parse_duration
from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import DEFAULT_SCHEDULER
from policies.preemption.policy import SchedulerRules

DEFAULT_TIMEOUT_SECONDS: Final = 5.0


class StrictConfig(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """Base of types that reject unknown fields, so that a misspelt field is an error."""


class TlsConfig(StrictConfig, frozen=True):
    """How an extender's certificate is verified, and the client certificate; data is base64."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: str = ""
    key_data: str = ""
    ca_data: str = ""


class ExtenderConfig(StrictConfig, frozen=True):
    """An extender in kube-scheduler's configuration."""

    url_prefix: str
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: TlsConfig | None = None
    http_timeout: str = msgspec.field(default="", name="httpTimeout")
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False

    @property
    def managed(self) -> frozenset[str]:
        """The resources for which a pod is sent to the extender; if empty, every pod is."""
        return frozenset(each.name for each in self.managed_resources)

    @property
    def timeout_seconds(self) -> float:
        """The time limit of a call."""
        nanoseconds = parse_duration(self.http_timeout) if self.http_timeout else 0
        return nanoseconds / 1e9 or DEFAULT_TIMEOUT_SECONDS


@dataclass(frozen=True, slots=True)
class Profile:
    """The profile of one schedulerName; with ``preemption`` None it never preempts."""

    rules: SchedulerRules = field(default_factory=SchedulerRules)
    preemption: DefaultPreemptionArgs | None = field(default_factory=DefaultPreemptionArgs)
    percentage_of_nodes_to_score: int = 0


@dataclass(frozen=True, slots=True)
class SchedulerConfiguration:
    """Profiles by schedulerName, extenders in call order, and backoff."""

    profiles: Mapping[str, Profile] = field(default_factory=lambda: {DEFAULT_SCHEDULER: Profile()})
    extenders: Sequence[ExtenderConfig] = ()
    initial_backoff_seconds: float = 1.0
    max_backoff_seconds: float = 10.0

    @property
    def release(self) -> Release:
        """The Kubernetes release that all profiles follow."""
        return next(iter(self.profiles.values())).rules.release


def plain_extender(url: str) -> ExtenderConfig:
    """Return an extender of which only the URL is given: filter and preempt, by node name."""
    return ExtenderConfig(
        url, filter_verb="filter", preempt_verb="preempt", node_cache_capable=True
    )


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
