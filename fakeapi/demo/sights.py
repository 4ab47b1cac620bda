"""The observed state of the cluster at one moment, as far as the demo shows it.

It consists of pods, nodes and Events of the API server, and the calls between scheduler and
extender. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from fakeapi.controlplane.scheduler.trace import Exchange
from fakeapi.demo.deliberations import Deliberation

PRESSURE_TAINT: Final = "node.kubernetes.io/memory-pressure"

_PREEMPTED: Final = re.compile(r"Preempted by pod (\S+) on node (\S+)")


@dataclass(frozen=True, slots=True)
class SeenPod:
    """A pod. ``workload`` is ``namespace/name`` of its controller, "" if it has none."""

    uid: str
    key: str
    workload: str = ""
    subset: str = ""
    priority: int = 0
    node: str = ""
    nominated: str = ""
    phase: str = "Pending"
    ready: bool = False
    going: bool = False
    reason: str = ""
    message: str = ""

    @property
    def active(self) -> bool:
        """Whether it is neither being deleted nor finished."""
        return not self.going and self.phase not in ("Succeeded", "Failed")

    @property
    def evicted(self) -> bool:
        """Whether its kubelet evicted it."""
        return self.phase == "Failed" and self.reason == "Evicted"


@dataclass(frozen=True, slots=True)
class SeenNode:
    """A node; ``taints`` have the format ``key:effect``."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    ready: bool = True
    short_of_memory: bool = False
    taints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SeenEvent:
    """An Event about the object ``key``."""

    key: str
    uid: str
    reason: str
    message: str
    order: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class Preempted:
    """A pod that the scheduler preempted, from the Event about it."""

    uid: str
    pod: str
    preemptor: str
    node: str


@dataclass(frozen=True, slots=True)
class Sight:
    """The state ``seconds`` after the start of the demo, on the cluster's clock.

    ``pods_before_burst`` are the UIDs of the pods that existed when the burst was created; empty
    until then. ``webhooks_registered``: the webhooks of WorkloadSpreads are registered.
    """

    seconds: float = 0.0
    pods: tuple[SeenPod, ...] = ()
    nodes: tuple[SeenNode, ...] = ()
    events: tuple[SeenEvent, ...] = ()
    deliberations: tuple[Deliberation, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    before: frozenset[str] = frozenset()
    spreading: bool = False

    def pods_of(self, workload: str) -> list[SeenPod]:
        """Return the active pods of a workload."""
        return [pod for pod in self.pods if pod.workload == workload and pod.active]

    def pod(self, key: str) -> SeenPod | None:
        """Return the pod with the key, or None."""
        return next((pod for pod in self.pods if pod.key == key), None)

    def replacements(self) -> list[SeenPod]:
        """Return the pods that ReplicaSets created since the burst."""
        if not self.before:
            return []
        return [pod for pod in self.pods if pod.workload and pod.uid not in self.before]

    def preempted(self) -> list[Preempted]:
        """Return the pods that the scheduler preempted, in the order of their Events."""
        found: dict[str, Preempted] = {}
        for event in sorted(self.events, key=lambda each: each.order):
            told = _PREEMPTED.fullmatch(event.message) if event.reason == "Preempted" else None
            if told is not None:
                found.setdefault(event.uid, Preempted(event.uid, event.key, told[1], told[2]))
        return list(found.values())

    def deliberation(self, gone: Preempted) -> Deliberation | None:
        """Return the extender's decision by which a pod was preempted, or None."""
        return next(
            (
                each
                for each in reversed(self.deliberations)
                if each.preemptor == gone.preemptor
                and each.node == gone.node
                and gone.pod in [victim.pod for victim in each.victims]
            ),
            None,
        )

    def refusal(self, pod: SeenPod) -> str:
        """Return the message of a pod's last FailedScheduling Event; "" if there is none."""
        told = [e for e in self.events if e.uid == pod.uid and e.reason == "FailedScheduling"]
        return max(told, key=lambda each: each.order).message if told else ""

    def evicted(self) -> list[SeenPod]:
        """Return the pods that kubelets evicted."""
        return [pod for pod in self.pods if pod.evicted]
