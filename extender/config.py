"""What the extender is told by its configuration file, and the policies that people write.

A configuration, with every field optional and these defaults::

    host: 127.0.0.1
    port: 8888
    pathPrefixes: []          # serve the verbs below these paths, too
    bodyLimitMiB: 64
    policy: kube-scheduler    # a built-in policy or a file
    search: offered           # or: cluster
    upstream: "1.38"          # the kube-scheduler release whose rules to follow
    promiseSeconds: 30        # how long an answer is remembered that the watch does not confirm
    managedResources: []      # as in kube-scheduler's configuration, its extender's entry
    pluginConfig: []          # as in kube-scheduler's configuration, its profile
    tls:                      # by default none: plain HTTP, on loopback only
      certificate: ""         # files, PEM, read again when they change
      key: ""
      clientCA: ""            # whose clients are served; by default all are
      allowedClientNames: []  # only these; by default all that clientCA certifies
    allowPlainHTTP: false     # elsewhere than on loopback
    limits:
      connections: 256        # calls under way; of connections there are twice as many at most
      headerKiB: 32
      headerSeconds: 10       # from the first byte of a request, or of a TLS handshake
      bodySeconds: 30
      idleSeconds: 120        # between requests
    deadlineMilliseconds: {filter: 200, preempt: 200}
    queueLimit: 64            # calls that wait for their turn
    staleSeconds: 180         # how long the API server may be silent
    degraded:                 # what is answered then: error, veto or echo (docs/operations.md)
      late: {filter: error, preempt: error}
      stale: {filter: error, preempt: error}
      overloaded: {filter: error, preempt: error}
    watchSilenceSeconds: 90   # when a silent watch is opened anew
    shutdownDelaySeconds: 0   # between the end of readiness and the end of listening
    decisionsKept: 256        # for GET /decisions
    events: false             # tell preemptors and victims by Kubernetes Events
    tracing:                  # by default none; needs the extra "otel"
      endpoint: ""            # an OTLP/HTTP collector: http://127.0.0.1:4318/v1/traces
      serviceName: reprieve
      sampleRatio: 1          # of the calls that come without a trace; the others bring their say
      timeoutSeconds: 5       # for a batch of spans, tries included

Two tell what kube-scheduler's own configuration changes about its filters
(extender.plugin_config says what is read)::

    managedResources:
    - {name: example.com/license, ignoredByScheduler: true}
    pluginConfig:
    - name: PodTopologySpread
      args:
        defaultingType: List
        defaultConstraints:
        - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}

A policy is made of kube-scheduler's named criteria in an order of your own, and of guards::

    name: spare-the-control-plane
    victims: [highest priority, earliest start]      # who is reprieved first
    candidates: [fewest victims, fewest PDB violations]
    protect:
    - name: system namespaces
      namespaces: [kube-system]
    - name: databases
      selector: {matchLabels: {role: db}}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar

import msgspec

from extender.configfile import ConfigFileError, read_document
from extender.faults import sift
from extender.kube import shapes
from extender.kube.decoding import FieldError, label_selector_of
from extender.plugin_config import ManagedResource, PluginConfig, settings_of
from extender.verdict import Search, Substitute
from policies.filtering import Filter, configured
from policies.model import Pod
from policies.policy import (
    CANDIDATE_CRITERIA,
    POD_CRITERIA,
    POLICIES,
    Guard,
    Policy,
    candidate_order,
    pod_order,
)
from policies.upstream import NEWEST

T = TypeVar("T")


class ConfigError(ValueError):
    """A configuration or policy is wrong.

    Each of ``faults``, and each line of the text, names file, field and what was expected.
    """

    def __init__(self, *faults: str) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


_LONGEST = 1e9  # seconds; what has no end (.inf) is no time
_Positive = Annotated[float, msgspec.Meta(gt=0, le=_LONGEST)]
_Span = Annotated[float, msgspec.Meta(ge=0, le=_LONGEST)]


class _Part(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """A part of the configuration; without any fields, all of its defaults."""


class Tls(_Part, frozen=True):
    """Files of PEM blocks; ``client_ca`` "" asks clients for nothing."""

    certificate: Annotated[str, msgspec.Meta(min_length=1)]
    key: Annotated[str, msgspec.Meta(min_length=1)]
    client_ca: str = msgspec.field(default="", name="clientCA")
    allowed_client_names: tuple[str, ...] = ()


class Limits(_Part, frozen=True):
    """What a client may take of us; ``idle_seconds`` is the pause between its requests."""

    connections: Annotated[int, msgspec.Meta(ge=1)] = 256
    header_kib: Annotated[int, msgspec.Meta(ge=1)] = msgspec.field(default=32, name="headerKiB")
    header_seconds: _Positive = 10.0
    body_seconds: _Positive = 30.0
    idle_seconds: _Positive = 120.0


class Deadlines(_Part, frozen=True):
    """How long a call may take us, by verb, in milliseconds."""

    filter: Annotated[int, msgspec.Meta(ge=1, le=3_600_000)] = 200
    preempt: Annotated[int, msgspec.Meta(ge=1, le=3_600_000)] = 200


class Substitutes(_Part, frozen=True):
    """What is answered in place of a decision, by verb."""

    filter: Substitute = Substitute.ERROR
    preempt: Substitute = Substitute.ERROR


class Degraded(_Part, frozen=True):
    """What is answered when no decision can be, by what is the matter."""

    late: Substitutes = Substitutes()
    stale: Substitutes = Substitutes()
    overloaded: Substitutes = Substitutes()


class Tracing(_Part, frozen=True):
    """Where traces are sent, and of how many calls."""

    endpoint: Annotated[str, msgspec.Meta(min_length=1)]
    service_name: Annotated[str, msgspec.Meta(min_length=1)] = "reprieve"
    sample_ratio: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    timeout_seconds: _Positive = 5.0


class Config(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """The configuration file; sizes in MiB, times in seconds."""

    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 8888
    path_prefixes: tuple[str, ...] = ()
    body_limit_mib: Annotated[int, msgspec.Meta(ge=1)] = msgspec.field(
        default=64, name="bodyLimitMiB"
    )
    policy: str = "kube-scheduler"
    search: Search = Search.OFFERED
    upstream: str = NEWEST.name
    promise_seconds: _Span = 30.0
    managed_resources: tuple[ManagedResource, ...] = ()
    plugin_config: tuple[PluginConfig, ...] = ()
    tls: Tls | None = None
    allow_plain_http: bool = msgspec.field(default=False, name="allowPlainHTTP")
    limits: Limits = Limits()
    deadline_milliseconds: Deadlines = Deadlines()
    queue_limit: Annotated[int, msgspec.Meta(ge=0)] = 64
    stale_seconds: _Positive = 180.0
    degraded: Degraded = Degraded()
    watch_silence_seconds: _Positive = 90.0
    shutdown_delay_seconds: _Span = 0.0
    decisions_kept: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 256
    events: bool = False
    tracing: Tracing | None = None


# A key that is misspelt or null would leave a selector empty, and an empty one matches every pod.
class _Expression(msgspec.Struct, forbid_unknown_fields=True):
    key: str
    operator: str
    values: tuple[str, ...] = ()

    def shape(self) -> shapes.Expression:
        return shapes.Expression(self.key, self.operator, list(self.values))


class _Selector(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    match_labels: dict[str, str] = {}
    match_expressions: tuple[_Expression, ...] = ()

    def shape(self) -> shapes.Selector:
        return shapes.Selector(self.match_labels, [e.shape() for e in self.match_expressions])


class _Protection(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    namespaces: tuple[str, ...] = ()
    selector: _Selector | None = None


class PolicyFile(msgspec.Struct, forbid_unknown_fields=True):
    """A policy as people write it, by the names of its criteria."""

    name: str
    victims: tuple[str, ...] = tuple(POD_CRITERIA)
    candidates: tuple[str, ...] = tuple(CANDIDATE_CRITERIA)
    protect: tuple[_Protection, ...] = ()


def load_config(path: Path) -> Config:
    """Read a configuration file for its rules. Raises ConfigError."""
    read = read_config(path)
    faults = (*read.faults, *(f"{path}: {fault}" for fault in filter_faults(read.value)))
    if faults:
        raise ConfigError(*faults)
    return read.value


class ReadConfig(NamedTuple):
    """What could be read of a file, a line for each fault, and the fields that are lost by one."""

    value: Config
    faults: tuple[str, ...] = ()
    lost: frozenset[str] = frozenset()


def read_config(path: Path) -> ReadConfig:
    """Read what can be read of a configuration file; what is at fault has its default.

    Raises ConfigError if nothing can be read.
    """
    document, faults = _document(path)
    sifted = sift(document, Config)
    told = tuple(f"{path}: {fault}" for fault in (*faults, *sifted.faults))
    if sifted.value is None:
        raise ConfigError(*told)
    return ReadConfig(sifted.value, told, sifted.lost)


def filter_faults(config: Config) -> tuple[str, ...]:
    """Return what is wrong with what changes kube-scheduler's filters."""
    try:
        filters_of(config)
    except ConfigError as error:
        return error.faults
    return ()


def filters_of(config: Config) -> tuple[Filter, ...]:
    """Return kube-scheduler's filters as its configuration changes them. Raises ConfigError."""
    try:
        return configured(settings_of(config.managed_resources, config.plugin_config))
    except FieldError as error:
        raise ConfigError(str(error)) from None


def find_policy(name_or_path: str) -> Policy:
    """Return a built-in policy by its name, or read one from a file. Raises ConfigError."""
    if name_or_path in POLICIES:
        return POLICIES[name_or_path]
    path = Path(name_or_path)
    if not _is_there(path):
        known = ", ".join(POLICIES)
        raise ConfigError(
            f"policy {name_or_path!r}: no such file, nor a policy called so ({known})"
        )
    file = _load(path, PolicyFile)
    try:
        return Policy(
            name=file.name,
            victims=pod_order(_chosen("victims", file.victims, POD_CRITERIA)),
            candidates=candidate_order(_chosen("candidates", file.candidates, CANDIDATE_CRITERIA)),
            guards=tuple(
                _guard(f"protect[{index}]", each) for index, each in enumerate(file.protect)
            ),
        )
    except FieldError as error:
        raise ConfigError(f"{path}: {error}") from None


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # no file could have such a name
        return False


def _load(path: Path, kind: type[T]) -> T:
    document, faults = _document(path)
    sifted = sift(document, kind)
    if sifted.value is None or faults or sifted.faults:
        raise ConfigError(*(f"{path}: {fault}" for fault in (*faults, *sifted.faults)))
    return sifted.value


def _document(path: Path) -> tuple[object, tuple[str, ...]]:
    try:
        return read_document(path)
    except ConfigFileError as error:
        raise ConfigError(f"{path}: {error}") from None


def _chosen(field: str, names: tuple[str, ...], known: Mapping[str, T]) -> tuple[T, ...]:
    for name in names:
        if name not in known:
            raise FieldError(field, f"unknown criterion {name!r}; expected some of {list(known)}")
    return tuple(known[name] for name in names)


def _guard(path: str, protection: _Protection) -> Guard:
    written = protection.selector
    selector = label_selector_of(f"{path}.selector", None if written is None else written.shape())
    if selector is None and not protection.namespaces:
        raise FieldError(path, "protects nothing; expected namespaces, a selector, or both")

    def protects(pod: Pod) -> bool:
        here = not protection.namespaces or pod.namespace in protection.namespaces
        return here and (selector is None or selector.matches(pod.labels))

    return Guard(protection.name, protects)
