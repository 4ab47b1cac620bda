"""Simulation scripts as values: the behaviour of simulated pods and nodes, and kubelet options.

A container's *run*, from its start to its exit, is a list of stages. Each changes something at its
time: the container's readiness, its usage, its log, or its exit. A restarted container performs its
next run, and repeats the last one.

A :class:`SimulationScript` assigns scripts to pods and nodes: the first that matches applies. Times
are nanoseconds, bytes and processes integers, CPU nanocores. Usage that no script defines:

    memory       half of what is requested, or 16Mi
    cpu          a tenth of what is requested, or 1m
    disk         1Mi of its own layer, 64Ki of logs, 16 inodes
    processes    1

A node itself uses 256Mi of memory, 2Gi of its disk, 1Gi of the one for images, 100m, 100 processes.

The options of the component ``kubelet`` are separate from its code, since a cluster needs them with
or without kubelets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Final

from extender.kube.rest.client import Client
from fakeapi.controlplane.kubelet.types import SCRIPT, ContainerResources, ResourceAmounts
from fakeapi.controlplane.kubelet.usage_curves import SECOND, Curve, CurveStep, curve_from_steps
from policies.eviction.config import DEFAULT_THRESHOLDS, EvictionConfig, ResolvedConfig, resolve
from policies.kubernetes.quantity import QuantityError, parse_quantity, units

Labels = Mapping[str, str]
Steps = Mapping[str, tuple[CurveStep, ...]]

AMOUNTS: Final = ("cpu", "memory", "disk", "logs", "inodes", "processes", "images")
"""The resources whose usage stages may change; ``images`` are a node's only."""

DEFAULT_PLAN: Final = resolve(EvictionConfig(DEFAULT_THRESHOLDS))
"""The eviction configuration of a kubelet without one of its own."""

_NO_LABELS: Final[Labels] = {}


@dataclass(frozen=True, slots=True)
class Exit:
    """The exit of a container by itself, ``after`` its start."""

    after: int
    code: int = 0
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Transition:
    """From ``after`` on, a state is true or false."""

    after: int
    state: bool


@dataclass(frozen=True, slots=True)
class LogWrite:
    """Text of one or several lines that a container writes to its log, ``after`` its start."""

    after: int
    text: str


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a container; ``steps`` by the names in AMOUNTS, ``volumes`` by volume.

    ``log`` is the text of its log. ``logs`` in AMOUNTS is the disk usage of logs, and independent.
    """

    readiness: tuple[Transition, ...] = ()
    steps: Steps = field(default_factory=dict)
    volumes: Steps = field(default_factory=dict)
    exit: Exit | None = None
    log: tuple[LogWrite, ...] = ()


@dataclass(frozen=True, slots=True)
class Stop:
    """The exit of a container after a stop request: ``after`` the request, with an exit code."""

    after: int = SECOND
    code: int = 0


@dataclass(frozen=True, slots=True)
class ContainerScript:
    """The script of a container: its runs, at least one, and how it stops.

    The first ``failed_pulls`` attempts to pull its image fail.
    """

    runs: tuple[Run, ...] = (Run(),)
    stop: Stop = field(default_factory=Stop)
    failed_pulls: int = 0

    def run(self, restarts: int) -> Run:
        """Return a container's run after a number of restarts."""
        return self.runs[min(restarts, len(self.runs) - 1)]


@dataclass(frozen=True, slots=True)
class PodScript:
    """The script of a pod: ``start`` after its admission its first container starts.

    ``containers`` are the scripts of single containers. An init container without one succeeds,
    ``start`` after its own start.
    """

    start: int = SECOND
    default: ContainerScript = field(default_factory=ContainerScript)
    containers: Mapping[str, ContainerScript] = field(default_factory=dict)

    def of(self, container: str, *, ends: bool) -> ContainerScript:
        """Return the script of a container; ``ends`` is set for an init container."""
        own = self.containers.get(container)
        if own is not None or not ends:
            return own or self.default
        return ContainerScript((Run(exit=Exit(self.start)),))


@dataclass(frozen=True, slots=True)
class NodeScript:
    """The script of a node, without its pods.

    ``steps`` change its own usage. While ``silence`` is true, its kubelet is silent; while
    ``readiness`` is false, it reports the node as not ready. ``image_disk`` is the size of a
    separate disk for images and containers in bytes, 0 if they share the node's. ``config`` is the
    part of its KubeletConfiguration about eviction, ``plan`` is derived from it.
    """

    steps: Steps = field(default_factory=dict)
    silence: tuple[Transition, ...] = ()
    readiness: tuple[Transition, ...] = ()
    image_disk: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)
    plan: ResolvedConfig = DEFAULT_PLAN


@dataclass(frozen=True, slots=True)
class ObjectSelector:
    """A selector of objects: each non-empty list must have a matching pattern.

    Patterns are those of fnmatch; all labels must be present, with matching values.
    """

    names: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    labels: Labels = field(default_factory=lambda: _NO_LABELS)

    def matches(self, name: str, namespace: str, node: str, labels: Labels) -> bool:
        """Return whether an object matches."""
        return (
            _one_matches(self.names, name)
            and _one_matches(self.namespaces, namespace)
            and _one_matches(self.nodes, node)
            and all(fnmatchcase(labels.get(k, "\0"), v) for k, v in self.labels.items())
        )


@dataclass(frozen=True, slots=True)
class NodeRegistration:
    """Nodes that register themselves: ``names``, and the fields of the node objects.

    A label may have several values, which are assigned to the nodes in rotation.
    """

    names: tuple[str, ...]
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    annotations: Labels = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    capacity: Mapping[str, str] = field(default_factory=dict)
    reserved: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SimulationScript:
    """The simulation script of a cluster; ``events`` are recorded unless disabled.

    Without ``evictions``, kubelets do not observe the usage of their nodes.
    """

    pods: tuple[tuple[ObjectSelector, PodScript], ...] = ()
    nodes: tuple[tuple[ObjectSelector, NodeScript], ...] = ()
    register: tuple[NodeRegistration, ...] = ()
    events: bool = True
    evictions: bool = True

    def for_pod(self, name: str, namespace: str, node: str, labels: Labels | None) -> PodScript:
        """Return the script of a pod without an annotation."""
        target = (name, namespace, node, labels or _NO_LABELS)
        return next(
            (script for match, script in self.pods if match.matches(*target)), DEFAULT_POD_SCRIPT
        )

    def for_node(self, name: str, labels: Labels | None) -> NodeScript:
        """Return the script of a node without an annotation."""
        target = (name, "", name, labels or _NO_LABELS)
        return next(
            (script for match, script in self.nodes if match.matches(*target)), DEFAULT_NODE_SCRIPT
        )


DEFAULT_POD_SCRIPT: Final = PodScript()
DEFAULT_NODE_SCRIPT: Final = NodeScript()
EMPTY_SCRIPT: Final = SimulationScript()

MAX_NODES: Final = 100_000
NODE_CAPACITY: Final[Mapping[str, str]] = {"cpu": "8", "memory": "32Gi", "pods": "110"}
"""The capacity of nodes that are requested by their number alone."""


def with_nodes(script: SimulationScript, count: int) -> SimulationScript:
    """Return the script with ``count`` further nodes, ``node-0`` first, that register themselves.

    Raise ScriptError.
    """
    if not 0 <= count <= MAX_NODES:
        raise ScriptError(f"nodes: {count}; expected 0 to {MAX_NODES}")
    names = tuple(f"node-{index}" for index in range(count))
    registration = NodeRegistration(names, capacity=NODE_CAPACITY)
    return replace(script, register=(*script.register, registration))


def state_at(transitions: tuple[Transition, ...], offset: int) -> bool | None:
    """Return the state at a time; None before the first transition."""
    value = None
    for turn in transitions:
        if turn.after > offset:
            break
        value = turn.state
    return value


def next_transition(transitions: tuple[Transition, ...], offset: int) -> int | None:
    """Return the time of the next transition after ``offset``."""
    return next((turn.after for turn in transitions if turn.after > offset), None)


def _one_matches(patterns: tuple[str, ...], text: str) -> bool:
    return not patterns or any(fnmatchcase(text, pattern) for pattern in patterns)


USER_AGENT: Final = "kubelet/v1.37.0 (linux/amd64) kubernetes/fakeapi"
"""The User-Agent of kubelets, which determines their field manager."""

ScriptSource = str | bytes | Mapping[str, Any]
"""A simulation script as a document, or its YAML."""


class ScriptError(ValueError):
    """A script is invalid; the text names the field and the expected value."""


def script_error(annotations: Mapping[str, str] | None, parse: Callable[[str], object]) -> str:
    """Return the error of an object's own script; "" if it is valid, or if there is none."""
    own = (annotations or {}).get(SCRIPT)
    if own is None:
        return ""
    try:
        parse(own)
    except ScriptError as error:
        return str(error)
    return ""


@dataclass(frozen=True, slots=True)
class KubeletResponse:
    """An HTTP response of a kubelet; the status 0 means that nothing listens at the node's port."""

    status: int
    content_type: str
    body: bytes


KubeletEndpoint = Callable[[str, str, Mapping[str, str]], KubeletResponse | None]
"""Returns the response of a node to a path and query; None if its kubelet is not simulated."""


def _register_nothing(_function: object) -> Callable[[], None]:
    return lambda: None


@dataclass(frozen=True, slots=True)
class KubeletOptions:
    """The options of hollow kubelets.

    ``script`` is the simulation script (None: the default behaviour), ``client`` sends the
    kubelets' requests (None: the client of the component). ``register_endpoint`` lets the API
    server proxy requests to nodes to a function, and ``on_reset`` calls a function after each reset
    of the server, both until the returned function is called. Without ``heartbeats``,
    kubelets renew no leases.
    """

    script: SimulationScript | None = None
    client: Client | None = None
    register_endpoint: Callable[[KubeletEndpoint], Callable[[], None]] = _register_nothing
    on_reset: Callable[[Callable[[], None]], Callable[[], None]] = _register_nothing
    heartbeats: bool = True


DEFAULT_KUBELET_OPTIONS: Final = KubeletOptions()

MI: Final = 2**20

NODE_USAGE: Final[Mapping[str, int]] = {
    "cpu": 100 * 10**6,
    "memory": 256 * MI,
    "disk": 2048 * MI,
    "images": 1024 * MI,
    "inodes": 50_000,
    "processes": 100,
}
_CONTAINER_USAGE: Final[Mapping[str, int]] = {
    "cpu": 10**6,
    "memory": 16 * MI,
    "disk": MI,
    "logs": 64 * 2**10,
    "inodes": 16,
    "processes": 1,
}
_PERSISTENT: Final = ("disk", "logs", "inodes")


def parse_amount(amounts: ResourceAmounts | None, name: str) -> int:
    """Return an amount of a resource list in nanos; 0 if it is absent or malformed."""
    try:
        return parse_quantity(str((amounts or {}).get(name, 0)))
    except QuantityError:
        return 0


def default_usage(name: str, resources: ContainerResources | None) -> int:
    """Return a container's default usage of a resource."""
    requested = parse_amount(resources.requests if resources else None, name)
    if name == "memory" and requested:
        return units(requested) // 2
    if name == "cpu" and requested:
        return requested // 10
    return _CONTAINER_USAGE[name]


def usage_curve(name: str, first: int, steps: Steps) -> Curve:
    """Return the curve of a resource's usage."""
    return curve_from_steps(first, steps.get(name, ()))


def is_persistent(name: str) -> bool:
    """Return whether a terminated container still uses a resource."""
    return name in _PERSISTENT
