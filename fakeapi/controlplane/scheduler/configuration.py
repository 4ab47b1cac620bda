"""The scheduler's configuration: profiles, extenders, and backoff.

Source: pkg/scheduler/apis/config/types.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

import msgspec

from extender.config.plugin_args import DefaultPreemptionArgs, ManagedResource
from fakeapi.controlplane.scheduler.scheduling_queue import UNSCHEDULABLE_SECONDS
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


class Retries(Enum):
    """When a pod that fits nowhere is tried again."""

    AFTER_EACH_HINT = auto()
    """As kube-scheduler does: after each event that may help such pods."""
    AFTER_HELPFUL_DEPARTURES = auto()
    """The same, unless a pod leaves a node that has no room for this one even then."""


@dataclass(frozen=True, slots=True)
class SchedulerConfiguration:
    """Profiles by schedulerName, extenders in call order, backoff, and retries.

    ``unschedulable_seconds`` is how long a pod waits for events at most; None: without a limit.
    """

    profiles: Mapping[str, Profile] = field(default_factory=lambda: {DEFAULT_SCHEDULER: Profile()})
    extenders: Sequence[ExtenderConfig] = ()
    initial_backoff_seconds: float = 1.0
    max_backoff_seconds: float = 10.0
    unschedulable_seconds: float | None = UNSCHEDULABLE_SECONDS
    retries: Retries = Retries.AFTER_EACH_HINT

    @property
    def release(self) -> Release:
        """The Kubernetes release that all profiles follow."""
        return next(iter(self.profiles.values())).rules.release


def plain_extender(url: str) -> ExtenderConfig:
    """Return an extender of which only the URL is given: filter and preempt, by node name."""
    return ExtenderConfig(
        url, filter_verb="filter", preempt_verb="preempt", node_cache_capable=True
    )
