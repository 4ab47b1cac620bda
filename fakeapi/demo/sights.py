"""The cluster at one moment, as far as the story is told by it.

Everything is what anybody can see: pods, nodes and Events as the API server has them, and what
scheduler and extender have said to each other. Pure.
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
        """Whether it is there to stay."""
        return not self.going and self.phase not in ("Succeeded", "Failed")

    @property
    def evicted(self) -> bool:
        """Whether its kubelet has ended it for its node's sake."""
        return self.phase == "Failed" and self.reason == "Evicted"


@dataclass(frozen=True, slots=True)
class SeenNode:
    """A node; ``taints`` are written ``key:effect``."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    ready: bool = True
    short_of_memory: bool = False
    taints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SeenEvent:
    """An Event about an object, which ``key`` names."""

    key: str
    uid: str
    reason: str
    message: str
    order: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class Preempted:
    """A pod that kube-scheduler's stand-in has told to go, by its own Event."""

    uid: str
    pod: str
    preemptor: str
    node: str


@dataclass(frozen=True, slots=True)
class Sight:
    """One moment, ``seconds`` after the story began, on the cluster's clock.

    ``before`` are the UIDs of the pods that were there when the burst came; empty until then.
    ``spreading`` tells whether the webhooks of WorkloadSpreads are known to the server.
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
        """Return the pods of a workload that are there to stay."""
        return [pod for pod in self.pods if pod.workload == workload and pod.active]

    def pod(self, key: str) -> SeenPod | None:
        """Return the pod of a name."""
        return next((pod for pod in self.pods if pod.key == key), None)

    def replacements(self) -> list[SeenPod]:
        """Return the pods that ReplicaSets have made since the burst came."""
        if not self.before:
            return []
        return [pod for pod in self.pods if pod.workload and pod.uid not in self.before]

    def preempted(self) -> list[Preempted]:
        """Return who has been told to go by the scheduler, in the order in which it was told."""
        found: dict[str, Preempted] = {}
        for event in sorted(self.events, key=lambda each: each.order):
            told = _PREEMPTED.fullmatch(event.message) if event.reason == "Preempted" else None
            if told is not None:
                found.setdefault(event.uid, Preempted(event.uid, event.key, told[1], told[2]))
        return list(found.values())

    def deliberation(self, gone: Preempted) -> Deliberation | None:
        """Return the extender's answer by which a pod was told to go."""
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
        """Return what the last Event FailedScheduling says of a pod; "" if there is none."""
        told = [e for e in self.events if e.uid == pod.uid and e.reason == "FailedScheduling"]
        return max(told, key=lambda each: each.order).message if told else ""

    def evicted(self) -> list[SeenPod]:
        """Return the pods that kubelets have evicted."""
        return [pod for pod in self.pods if pod.evicted]
