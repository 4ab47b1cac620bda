"""Scripts: what happens to pods and nodes of its own accord, as values.

A container's *run*, from its start to its exit, is a list of stages. Each changes something at its
time: whether the container is ready, how much it uses, that it exits. A restarted container plays
its next run, and the last one again and again.

A :class:`Playbook` says which pods and nodes play what: of its scripts the first that matches
counts. Times are nanoseconds, bytes and processes whole numbers, CPU nanocores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final

from fakeapi.controlplane.kubelet.curves import Step
from fakeapi.controlplane.kubelet.durations import SECOND
from policies.eviction.configuration import DEFAULT_THRESHOLDS, Configuration, Plan, planned

Labels = Mapping[str, str]
Steps = Mapping[str, tuple[Step, ...]]

AMOUNTS: Final = ("cpu", "memory", "disk", "logs", "inodes", "processes", "images")
"""What stages may change the use of; ``images`` are a node's only."""

DEFAULT_PLAN: Final = planned(Configuration(DEFAULT_THRESHOLDS))
"""By what a kubelet evicts that was told nothing."""

_NO_LABELS: Final[Labels] = {}


@dataclass(frozen=True, slots=True)
class Exit:
    """A container ends by itself, ``after`` its start."""

    after: int
    code: int = 0
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """From ``after`` on, something holds or does not."""

    after: int
    to: bool


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a container; ``steps`` by the names in AMOUNTS, ``volumes`` by the volume's."""

    readiness: tuple[Turn, ...] = ()
    steps: Steps = field(default_factory=dict)
    volumes: Steps = field(default_factory=dict)
    exit: Exit | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """How a container ends that is told to: ``after`` that, with an exit code."""

    after: int = SECOND
    code: int = 0


@dataclass(frozen=True, slots=True)
class ContainerScript:
    """What a container does: its runs, at least one, and how it stops.

    The first ``failed_pulls`` attempts to pull its image fail.
    """

    runs: tuple[Run, ...] = (Run(),)
    stop: Stop = field(default_factory=Stop)
    failed_pulls: int = 0

    def run(self, restarts: int) -> Run:
        """Return what a container does after so many restarts."""
        return self.runs[min(restarts, len(self.runs) - 1)]


@dataclass(frozen=True, slots=True)
class PodScript:
    """What a pod does: ``start`` after it was admitted its first container starts.

    ``containers`` are those that do something else than the others. An init container for which
    nothing is said ends well, ``start`` after its own start.
    """

    start: int = SECOND
    rest: ContainerScript = field(default_factory=ContainerScript)
    containers: Mapping[str, ContainerScript] = field(default_factory=dict)

    def of(self, container: str, *, ends: bool) -> ContainerScript:
        """Return the script of a container, ``ends``: of an init container."""
        own = self.containers.get(container)
        if own is not None or not ends:
            return own or self.rest
        return ContainerScript((Run(exit=Exit(self.start)),))


@dataclass(frozen=True, slots=True)
class NodeScript:
    """What a node does beside its pods.

    ``steps`` change what it uses itself. While ``silence`` holds, its kubelet says nothing; while
    ``readiness`` does not, it says that the node is not ready. ``image_disk`` is the size of a disk
    for images and containers in bytes, 0 if they share the node's. ``config`` is what its
    KubeletConfiguration says of eviction, ``plan`` what follows from it.
    """

    steps: Steps = field(default_factory=dict)
    silence: tuple[Turn, ...] = ()
    readiness: tuple[Turn, ...] = ()
    image_disk: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)
    plan: Plan = DEFAULT_PLAN


@dataclass(frozen=True, slots=True)
class Match:
    """Which objects a script is for: each list must have a pattern that fits, if it is not empty.

    Patterns are those of fnmatch; labels must all be there, with values that fit.
    """

    names: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    labels: Labels = field(default_factory=lambda: _NO_LABELS)

    def fits(self, name: str, namespace: str, node: str, labels: Labels) -> bool:
        """Return whether an object is meant."""
        return (
            _one_fits(self.names, name)
            and _one_fits(self.namespaces, namespace)
            and _one_fits(self.nodes, node)
            and all(fnmatchcase(labels.get(k, "\0"), v) for k, v in self.labels.items())
        )


@dataclass(frozen=True, slots=True)
class Registration:
    """Nodes that register themselves: ``names``, and what the node objects are made of.

    ``labels`` may have several values, which the nodes take in turns.
    """

    names: tuple[str, ...]
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    annotations: Labels = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    capacity: Mapping[str, str] = field(default_factory=dict)
    reserved: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Playbook:
    """All that is said about a cluster; ``events`` are written unless it says otherwise."""

    pods: tuple[tuple[Match, PodScript], ...] = ()
    nodes: tuple[tuple[Match, NodeScript], ...] = ()
    register: tuple[Registration, ...] = ()
    events: bool = True

    def for_pod(self, name: str, namespace: str, node: str, labels: Labels | None) -> PodScript:
        """Return the script of a pod that says nothing itself."""
        asked = (name, namespace, node, labels or _NO_LABELS)
        return next((script for match, script in self.pods if match.fits(*asked)), UNSAID_POD)

    def for_node(self, name: str, labels: Labels | None) -> NodeScript:
        """Return the script of a node that says nothing itself."""
        asked = (name, "", name, labels or _NO_LABELS)
        return next((script for match, script in self.nodes if match.fits(*asked)), UNSAID_NODE)


UNSAID_POD: Final = PodScript()
UNSAID_NODE: Final = NodeScript()
NOTHING_SAID: Final = Playbook()


def holds(turns: tuple[Turn, ...], offset: int) -> bool | None:
    """Return whether something holds at a time; None before the first turn."""
    held = None
    for turn in turns:
        if turn.after > offset:
            break
        held = turn.to
    return held


def next_turn(turns: tuple[Turn, ...], offset: int) -> int | None:
    """Return the time of the next turn after ``offset``."""
    return next((turn.after for turn in turns if turn.after > offset), None)


def _one_fits(patterns: tuple[str, ...], text: str) -> bool:
    return not patterns or any(fnmatchcase(text, pattern) for pattern in patterns)
