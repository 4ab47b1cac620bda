"""The configuration file of the extender.

Every field is optional and has this default::

    host: 127.0.0.1           # the address to listen on
    port: 8888                # 0 is any free port
    workers: 1                # processes that share the address, each with its own informers
    pathPrefixes: []          # the verbs are also served below these paths
    bodyLimitMiB: 64          # a larger request is refused
    policy: kube-scheduler    # a built-in policy, or a file by its path from this one
    mode: enforce             # observe: kube-scheduler's own choice stands, and that of policy is
                              # only recorded, as those of shadow are
    shadow: []                # at most four more policies, whose choices are only recorded
    shadowCPUShare: 0.005     # of one core: how much decisions that are only recorded take at most
    search: cluster           # the nodes that preempt considers; offered: kube-scheduler's
    upstream: "1.38"          # the kube-scheduler release whose rules to follow
    featureGates: {}          # gates of that kube-scheduler by name: {GenericWorkload: true}
    promiseSeconds: 30        # an assumed preemption expires then, unless the watch confirms it
    managedResources: []      # of extenders, as in their entries of KubeSchedulerConfiguration
    pluginConfig: []          # arguments of plugins, as in a profile of KubeSchedulerConfiguration
    schedulerNames: []        # names of all its profiles; by default that of the pod in the call
    devices:                  # rules that kube-scheduler does not have
      freeVictims: false      # devices of victims count as free (docs/how-it-decides.md)
    tls:                      # by default none: plain HTTP, on loopback only
      certificate: ""         # a PEM file by its path from this one, reloaded when it changes
      key: ""                 # a PEM file, reloaded when it changes
      clientCA: ""            # client certificates must be signed by it; by default none is needed
      allowedClientNames: []  # by default all clients that clientCA certifies
    allowPlainHTTP: false     # serve plain HTTP on addresses other than loopback
    limits:
      connections: 256        # concurrent calls; connections are limited to twice as many, and
                              # serve needs 64 open files more than that
      inFlightMiB: 256        # the size of all unanswered requests together
      headerKiB: 32           # the size of a request's header
      headerSeconds: 10       # the time from the first byte of a request, or of a TLS handshake
      bodySeconds: 30         # the time from the header to the last byte of a request
      idleSeconds: 120        # the time between requests
    deadlineMilliseconds: {filter: 200, preempt: 200}   # from the header of the call
    queueLimit: 64            # the number of calls that may wait
    staleSeconds: 180         # the cluster is stale if the API server is silent for longer; from 75
                              # on, since API servers send bookmarks about once a minute
    degraded:                 # the fallback: error, veto or echo (docs/operations.md)
      late: {filter: error, preempt: error}        # the deadline has passed
      stale: {filter: error, preempt: error}       # the cluster is stale
      overloaded: {filter: error, preempt: error}  # the queue is full
    watchSilenceSeconds: 90   # a watch that is silent for so long is restarted; also from 75 on
    shutdownDelaySeconds: 0   # the time from not being ready to closing the socket
    decisionsKept: 256        # the number of decisions for GET /decisions
    events: false             # record Kubernetes Events on preemptors and victims
    log:                      # on stderr
      level: info             # the least severe lines that are written
      format: json            # text: for people, with colours on a terminal
    ledger:                   # by default none: decisions are kept as decisionsKept states
      location: ""            # a SQLite file by its path from this one, or postgresql://…
      snapshots: false        # keep the input of each decision, for counterfactuals
      verbs: [preempt]        # the calls whose answers are kept
      teamLabel: ""           # the label of pods that names their team; by default none
      keepDays: 30            # older decisions are deleted
      maxMiB: 1024            # the oldest decisions are deleted if the ledger is larger
    page:                     # by default none: the pages of the ledger
      host: 127.0.0.1         # the address to listen on
      port: 8889              # 0 is any free port
      tokenFile: ""           # the token of readers, by its path from this one; by default the
                              # environment variable REPRIEVE_TOKEN
      hosts: []               # names by which browsers reach it, besides those of this machine
    tracing:                  # by default none; needs the extra "otel"
      endpoint: ""            # an OTLP/HTTP collector: http://127.0.0.1:4318/v1/traces
      serviceName: reprieve   # the name of this service in traces
      sampleRatio: 1          # the sampled part of calls without a parent trace; others follow it
      timeoutSeconds: 5       # the time for a batch of spans, retries included

Two fields repeat what KubeSchedulerConfiguration changes about the filters
(extender.config.plugin_args lists the fields that are read), and one its profiles: kube-scheduler
counts only the nominations of pods that it schedules::

    managedResources:
    - {name: example.com/license, ignoredByScheduler: true}
    pluginConfig:
    - name: PodTopologySpread
      args:
        defaultingType: List
        defaultConstraints:
        - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}
    schedulerNames: [default-scheduler, batch-scheduler]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from extender.config.config_file import decode_source, read_source
from extender.config.ledger_location import is_postgresql
from extender.config.plugin_args import ManagedResource, PluginConfig, filter_settings
from extender.config.source_document import parse_path
from extender.config.strict_decoding import ConfigError
from extender.protocol.verb_context import FallbackKind, Search
from extender.terminal.log_output import LogFormat, LogLevel
from policies.kubernetes.releases import NEWEST
from policies.preemption.filtering import Filter, configured_filters
from policies.preemption.policy import POLICIES

MAX_SECONDS = 1e9  # seconds; rejects .inf
_PositiveSeconds = Annotated[float, msgspec.Meta(gt=0, le=MAX_SECONDS)]
_Seconds = Annotated[float, msgspec.Meta(ge=0, le=MAX_SECONDS)]
_NonEmpty = Annotated[str, msgspec.Meta(min_length=1)]


class Mode(Enum):
    """Whether an answer is the choice of the policy, or leaves the choice to kube-scheduler."""

    ENFORCE = "enforce"
    OBSERVE = "observe"


class LedgerVerb(Enum):
    """A verb whose answers are kept."""

    FILTER = "filter"
    PREEMPT = "preempt"


class _ConfigSection(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """A section of the configuration; an empty one has all of its defaults."""


class TlsConfig(_ConfigSection, frozen=True):
    """PEM files for serving; ``client_ca`` "" requests no client certificates."""

    certificate: _NonEmpty
    key: _NonEmpty
    client_ca: str = msgspec.field(default="", name="clientCA")
    allowed_client_names: tuple[str, ...] = ()


class ConnectionLimits(_ConfigSection, frozen=True):
    """Limits on connections and requests.

    ``in_flight_mib`` limits the bytes of all unanswered requests together, in MiB; ``idle_seconds``
    is the time between requests.
    """

    connections: Annotated[int, msgspec.Meta(ge=1)] = 256
    in_flight_mib: Annotated[int, msgspec.Meta(ge=1)] = msgspec.field(
        default=256, name="inFlightMiB"
    )
    header_kib: Annotated[int, msgspec.Meta(ge=1)] = msgspec.field(default=32, name="headerKiB")
    header_seconds: _PositiveSeconds = 10.0
    body_seconds: _PositiveSeconds = 30.0
    idle_seconds: _PositiveSeconds = 120.0


class Deadlines(_ConfigSection, frozen=True):
    """The deadline of a call by verb, in milliseconds."""

    filter: Annotated[int, msgspec.Meta(ge=1, le=3_600_000)] = 200
    preempt: Annotated[int, msgspec.Meta(ge=1, le=3_600_000)] = 200


class FallbackConfig(_ConfigSection, frozen=True):
    """The fallback answer by verb."""

    filter: FallbackKind = FallbackKind.ERROR
    preempt: FallbackKind = FallbackKind.ERROR


class DegradedConfig(_ConfigSection, frozen=True):
    """The fallback answers by the reason why no decision can be made."""

    late: FallbackConfig = FallbackConfig()
    stale: FallbackConfig = FallbackConfig()
    overloaded: FallbackConfig = FallbackConfig()


class DevicesConfig(_ConfigSection, frozen=True):
    """Rules about devices that kube-scheduler does not have."""

    free_victims: bool = False


class LogConfig(_ConfigSection, frozen=True):
    """The level of the log, and the format of its lines."""

    level: LogLevel = LogLevel.INFO
    format: LogFormat = LogFormat.JSON


class TracingConfig(_ConfigSection, frozen=True):
    """The endpoint of traces, and the ratio of calls that are sampled."""

    endpoint: _NonEmpty
    service_name: _NonEmpty = "reprieve"
    sample_ratio: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    timeout_seconds: _PositiveSeconds = 5.0


class LedgerConfig(_ConfigSection, frozen=True):
    """Where decisions are kept, which, and for how long."""

    location: _NonEmpty
    snapshots: bool = False
    verbs: tuple[LedgerVerb, ...] = (LedgerVerb.PREEMPT,)
    team_label: str = ""
    keep_days: Annotated[float, msgspec.Meta(gt=0, le=36_500)] = 30.0
    max_mib: Annotated[int, msgspec.Meta(ge=1)] = msgspec.field(default=1024, name="maxMiB")


class PageConfig(_ConfigSection, frozen=True):
    """Where the pages of the ledger are served; ``token_file`` "" is the environment variable."""

    host: _NonEmpty = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 8889
    token_file: str = ""
    hosts: tuple[_NonEmpty, ...] = ()


class Config(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """The configuration file; sizes in MiB, times in seconds."""

    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 8888
    workers: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    path_prefixes: tuple[str, ...] = ()
    body_limit_mib: Annotated[int, msgspec.Meta(ge=1)] = msgspec.field(
        default=64, name="bodyLimitMiB"
    )
    policy: str = "kube-scheduler"
    search: Search = Search.CLUSTER
    upstream: str = NEWEST.name
    feature_gates: dict[str, bool] = {}
    promise_seconds: _Seconds = 30.0
    managed_resources: tuple[ManagedResource, ...] = ()
    plugin_config: tuple[PluginConfig, ...] = ()
    scheduler_names: tuple[_NonEmpty, ...] = ()
    devices: DevicesConfig = DevicesConfig()
    mode: Mode = Mode.ENFORCE
    shadow: Annotated[tuple[_NonEmpty, ...], msgspec.Meta(max_length=4)] = ()
    shadow_cpu_share: Annotated[float, msgspec.Meta(gt=0, le=1)] = msgspec.field(
        default=0.005, name="shadowCPUShare"
    )
    tls: TlsConfig | None = None
    allow_plain_http: bool = msgspec.field(default=False, name="allowPlainHTTP")
    limits: ConnectionLimits = ConnectionLimits()
    deadline_milliseconds: Deadlines = Deadlines()
    queue_limit: Annotated[int, msgspec.Meta(ge=0)] = 64
    stale_seconds: _PositiveSeconds = 180.0
    degraded: DegradedConfig = DegradedConfig()
    watch_silence_seconds: _PositiveSeconds = 90.0
    shutdown_delay_seconds: _Seconds = 0.0
    decisions_kept: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 256
    events: bool = False
    log: LogConfig = LogConfig()
    ledger: LedgerConfig | None = None
    page: PageConfig | None = None
    tracing: TracingConfig | None = None

    @property
    def recorded_policies(self) -> tuple[str, ...]:
        """The policies whose choices are only recorded, by name or path."""
        return (self.policy, *self.shadow) if self.mode is Mode.OBSERVE else self.shadow


def load_config(path: Path) -> Config:
    """Return a configuration file with valid filters. Raise ConfigError."""
    read = read_config(path)
    errors = (*read.errors, *map(read.locate, validate_filters(read.value)))
    if errors:
        raise ConfigError(*errors)
    return read.value


def _unlocated(field: str) -> str:
    return field


class PartialConfig(NamedTuple):
    """The valid part of a file, one line for each error, and the fields with errors.

    ``locate`` puts ``FILE:LINE: `` before a text that begins with the path of a field.
    """

    value: Config
    errors: tuple[str, ...] = ()
    invalid_fields: frozenset[str] = frozenset()
    locate: Callable[[str], str] = _unlocated


def read_config(path: Path) -> PartialConfig:
    """Return the valid part of a configuration file; an invalid field has its default.

    The paths of a policy and of PEM files are relative to the file. Raise ConfigError if nothing
    can be read.
    """
    file = decode_source(path, read_source(path, Config), Config)
    config = file.result.value
    if config is None:
        raise ConfigError(*file.errors())
    config = msgspec.structs.replace(
        config,
        policy=_policy_beside(config.policy, path.parent),
        shadow=tuple(_policy_beside(each, path.parent) for each in config.shadow),
    )
    if config.tls is not None:
        config = msgspec.structs.replace(config, tls=_tls_beside(config.tls, path.parent))
    if config.ledger is not None and not is_postgresql(config.ledger.location):
        location = str(path.parent / config.ledger.location)
        ledger = msgspec.structs.replace(config.ledger, location=location)
        config = msgspec.structs.replace(config, ledger=ledger)
    if config.page is not None and config.page.token_file:
        token_file = str(path.parent / config.page.token_file)
        page = msgspec.structs.replace(config.page, token_file=token_file)
        config = msgspec.structs.replace(config, page=page)

    def locate(text: str) -> str:
        return f"{file.locate(parse_path(text.partition(': ')[0]))}: {text}"

    return PartialConfig(config, file.errors(), file.result.invalid_fields, locate)


def _policy_beside(name_or_path: str, directory: Path) -> str:
    """Return a built-in policy, or the path of a file, a relative one from a directory."""
    return name_or_path if name_or_path in POLICIES else str(directory / name_or_path)


def _tls_beside(tls: TlsConfig, directory: Path) -> TlsConfig:
    """Return the paths of PEM files, relative ones from a directory."""
    return msgspec.structs.replace(
        tls,
        certificate=str(directory / tls.certificate),
        key=str(directory / tls.key),
        client_ca=str(directory / tls.client_ca) if tls.client_ca else "",
    )


def validate_filters(config: Config) -> tuple[str, ...]:
    """Return the errors of the fields that change kube-scheduler's filters."""
    try:
        filters_from_config(config)
    except ConfigError as error:
        return error.errors
    return ()


def filters_from_config(config: Config) -> tuple[Filter, ...]:
    """Return kube-scheduler's filters as the configuration changes them. Raise ConfigError."""
    settings = filter_settings(config.managed_resources, config.plugin_config)
    return configured_filters(replace(settings, frees_victims=config.devices.free_victims))
