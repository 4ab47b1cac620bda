"""What each part of the control plane does by itself: this is left to it if it is attached.

    makes     objects of a resource that come by it: those that a controller of this kind owns, or
              of these names; not played but expected, see :mod:`fakeapi.replaying.directing`
    deletes   deletions that are its doing (:mod:`fakeapi.replaying.hands`) are not played
    ends      of these resources it removes what was told to go and is done
    writes    fields, by resource: what the world has there counts, not what was recorded
    chooses   of these deletions, whom they hit is its own choice, whoever controls them
    lags      how many seconds it may be behind
    keeps     fields, by resource, that are the world's own and are not compared; ``*`` is any step

Parts that are not here cannot be attached: what they write cannot be told from what others do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from extender.kube.workloadspread.pods import MATCHED
from fakeapi.replaying.decisions import SCHEDULER
from fakeapi.replaying.objects import Document, FieldPath, controller_of
from fakeapi.replaying.subsets import DEFINITIONS, SPREADING, SPREADS
from policies.scaledown import DELETION_COST

_NOTHING: Final[Mapping[str, tuple[FieldPath, ...]]] = MappingProxyType({})

_LONGEST_BACKOFF_SECONDS: Final = 10.0
"""How long a pod may wait that has been tried often."""


@dataclass(frozen=True, slots=True)
class Made:
    """Objects of ``resource`` that a controller of kind ``owner`` has, or of one of ``names``."""

    resource: str
    owner: str = ""
    names: tuple[str, ...] = ()
    namespace: str = ""

    def covers(self, resource: str, document: Document) -> bool:
        """Return whether an object is one of them."""
        metadata = document["metadata"]
        if resource != self.resource or self.namespace not in ("", metadata.get("namespace")):
            return False
        if self.owner:
            controller = controller_of(document)
            return controller is not None and controller.get("kind") == self.owner
        return not self.names or metadata["name"] in self.names


@dataclass(frozen=True, slots=True)
class PartEffects:
    """What one part does; see the module."""

    makes: tuple[Made, ...] = ()
    deletes: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    writes: Mapping[str, tuple[FieldPath, ...]] = field(default_factory=lambda: _NOTHING)
    chooses: tuple[str, ...] = ()
    lags: float = 1.0
    keeps: Mapping[str, tuple[FieldPath, ...]] = field(default_factory=lambda: _NOTHING)


def _conditions(*types: str) -> tuple[FieldPath, ...]:
    return tuple(("status", "conditions", f"type={each}") for each in types)


def _status(*names: str) -> tuple[FieldPath, ...]:
    return tuple(("status", name) for name in names)


_WHERE_CONVERTED: Final[tuple[FieldPath, ...]] = (
    ("spec", "conversion"),
    ("metadata", "generation"),
)
"""Who converts WorkloadSpreads of another version is written in their definition."""

_STATUSES: Final = ("initContainerStatuses", "containerStatuses")
_GIVEN_BY_KUBELETS: Final[tuple[FieldPath, ...]] = (
    *_status("podIP", "podIPs"),
    *(("status", statuses, "*", "containerID") for statuses in _STATUSES),
    *(
        ("status", statuses, "*", state, "terminated", "containerID")
        for statuses in _STATUSES
        for state in ("state", "lastState")
    ),
)
"""What kubelets call what they run, and the addresses that they give in turn."""

EFFECTS: Final[Mapping[str, PartEffects]] = MappingProxyType(
    {
        "gc": PartEffects(deletes=("gc",)),
        "namespaces": PartEffects(
            deletes=("namespaces",),
            ends=("namespaces",),
            writes={"namespaces": (("spec", "finalizers"), ("status", "conditions"))},
        ),
        "podgc": PartEffects(deletes=("podgc",)),
        "serviceaccounts": PartEffects(
            makes=(
                Made("serviceaccounts", names=("default",)),
                Made("configmaps", names=("kube-root-ca.crt",)),
            )
        ),
        "disruption": PartEffects(writes={"poddisruptionbudgets.policy": (("status",),)}),
        "tainteviction": PartEffects(deletes=("tainteviction",)),
        "replicaset": PartEffects(
            makes=(Made("pods", owner="ReplicaSet"),),
            deletes=("replicaset",),
            writes={
                "replicasets.apps": (("status",),),
                "pods": (("metadata", "ownerReferences"),),
            },
        ),
        "kubelet": PartEffects(
            makes=(Made("leases.coordination.k8s.io", namespace="kube-node-lease"),),
            deletes=("kubelet",),
            ends=("pods",),
            writes={
                "pods": (
                    *_status("phase", "reason", "message", "startTime", "observedGeneration"),
                    *_status("hostIP", "hostIPs", "podIP", "podIPs"),
                    *_status("initContainerStatuses", "containerStatuses"),
                    *_conditions("PodReadyToStartContainers", "Initialized", "Ready"),
                    *_conditions("ContainersReady"),
                    ("status", "conditions", "reason=TerminationByKubelet"),
                ),
                "nodes": (("status",),),
            },
            keeps={"pods": _GIVEN_BY_KUBELETS},
        ),
        SPREADING: PartEffects(
            deletes=(SPREADING,),
            writes={
                SPREADS: (("status",),),
                "pods": (
                    ("metadata", "annotations", MATCHED),
                    ("metadata", "annotations", DELETION_COST),
                ),
                DEFINITIONS: _WHERE_CONVERTED,
            },
            keeps={DEFINITIONS: _WHERE_CONVERTED},
        ),
        SCHEDULER: PartEffects(
            deletes=(SCHEDULER,),
            writes={
                "pods": (
                    ("spec", "nodeName"),
                    ("status", "nominatedNodeName"),
                    *_conditions("PodScheduled"),
                    ("status", "conditions", "reason=PreemptionByScheduler"),
                )
            },
            chooses=(SCHEDULER,),
            keeps={"pods": (("status", "conditions", "PodScheduled", "observedGeneration"),)},
            lags=_LONGEST_BACKOFF_SECONDS + 1.0,
        ),
    }
)


class UnplayablePartError(ValueError):
    """A part cannot be attached to a replay."""


@dataclass(frozen=True, slots=True)
class Attached:
    """The parts that are attached, taken together."""

    names: tuple[str, ...] = ()

    def maker(self, resource: str, document: Document) -> str:
        """Name the part by which an object comes; "" if it is played."""
        for name in self.names:
            if any(made.covers(resource, document) for made in EFFECTS[name].makes):
                return name
        return ""

    def deleter(self, hand: str) -> str:
        """Name the part that a hand is; "" if its deletions are played."""
        return next((name for name in self.names if hand in EFFECTS[name].deletes), "")

    @property
    def aftermath_seconds(self) -> float:
        """How long what is attached goes on working after the last event."""
        return max((EFFECTS[name].lags for name in self.names), default=1.0)

    def chooses(self, hand: str) -> bool:
        """Return whether a hand's deletions hit whom a part chooses, whoever controls them."""
        return any(hand in EFFECTS[name].chooses for name in self.names)

    def ender(self, resource: str) -> str:
        """Name the part that removes what was told to go; "" if removals are played."""
        return next((name for name in self.names if resource in EFFECTS[name].ends), "")

    @property
    def spreads(self) -> bool:
        """Whether pods are put into subsets of WorkloadSpreads."""
        return SPREADING in self.names

    def keeps(self, resource: str) -> tuple[FieldPath, ...]:
        """Return the fields of a resource that are not compared."""
        return tuple(path for name in self.names for path in EFFECTS[name].keeps.get(resource, ()))

    def writes(self, resource: str) -> tuple[FieldPath, ...]:
        """Return the fields of a resource that are left to parts."""
        return tuple(path for name in self.names for path in EFFECTS[name].writes.get(resource, ()))


def attach(names: Iterable[str]) -> Attached:
    """Take parts together; raises UnplayablePartError."""
    given = tuple(names)
    for name in given:
        if name not in EFFECTS:
            raise UnplayablePartError(
                f"run: part {name!r} cannot be attached to a replay; "
                f"expected none, or of: {', '.join(EFFECTS)}"
            )
    return Attached(given)
