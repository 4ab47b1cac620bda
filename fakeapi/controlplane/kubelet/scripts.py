"""Simulation scripts as values: the behaviour of simulated pods and nodes.

A container's *run*, from its start to its exit, is a list of stages. Each changes something at its
time: the container's readiness, its usage, or its exit. A restarted container performs its next
run, and repeats the last one.

A :class:`SimulationScript` assigns scripts to pods and nodes: the first that matches applies. Times
are nanoseconds, bytes and processes integers, CPU nanocores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final

from fakeapi.controlplane.kubelet.curves import CurveStep
from fakeapi.controlplane.kubelet.durations import SECOND
from policies.eviction.configuration import (
    DEFAULT_THRESHOLDS,
    EvictionConfig,
    ResolvedConfig,
    resolve,
)

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
class Run:
    """One run of a container; ``steps`` by the names in AMOUNTS, ``volumes`` by volume."""

    readiness: tuple[Transition, ...] = ()
    steps: Steps = field(default_factory=dict)
    volumes: Steps = field(default_factory=dict)
    exit: Exit | None = None


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
    """The simulation script of a cluster; ``events`` are recorded unless disabled."""

    pods: tuple[tuple[ObjectSelector, PodScript], ...] = ()
    nodes: tuple[tuple[ObjectSelector, NodeScript], ...] = ()
    register: tuple[NodeRegistration, ...] = ()
    events: bool = True

    def for_pod(self, name: str, namespace: str, node: str, labels: Labels | None) -> PodScript:
        """Return the script of a pod without an annotation."""
        asked = (name, namespace, node, labels or _NO_LABELS)
        return next(
            (script for match, script in self.pods if match.matches(*asked)), DEFAULT_POD_SCRIPT
        )

    def for_node(self, name: str, labels: Labels | None) -> NodeScript:
        """Return the script of a node without an annotation."""
        asked = (name, "", name, labels or _NO_LABELS)
        return next(
            (script for match, script in self.nodes if match.matches(*asked)), DEFAULT_NODE_SCRIPT
        )


DEFAULT_POD_SCRIPT: Final = PodScript()
DEFAULT_NODE_SCRIPT: Final = NodeScript()
EMPTY_SCRIPT: Final = SimulationScript()


def state_at(turns: tuple[Transition, ...], offset: int) -> bool | None:
    """Return the state at a time; None before the first transition."""
    held = None
    for turn in turns:
        if turn.after > offset:
            break
        held = turn.state
    return held


def next_transition(turns: tuple[Transition, ...], offset: int) -> int | None:
    """Return the time of the next transition after ``offset``."""
    return next((turn.after for turn in turns if turn.after > offset), None)


def _one_matches(patterns: tuple[str, ...], text: str) -> bool:
    return not patterns or any(fnmatchcase(text, pattern) for pattern in patterns)
