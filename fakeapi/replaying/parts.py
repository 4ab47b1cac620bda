"""The effects of each control-plane component, which are left to it if it is attached.

    makes        objects of a resource that it creates: those with a controller of this kind, or
                 with these names; not played but expected, see :mod:`fakeapi.replay.event_actions`
    deletes      causes of deletions (:mod:`fakeapi.replay.recorded_state`) that are not played
    removes      resources whose terminating objects it removes
    writes       fields, by resource: the world's values are kept, not the recorded ones
    chooses      causes of deletions for which it chooses the victims, of any controller
    lag_seconds  how many seconds it may be behind
    excluded     fields, by resource, that are the world's own and are not compared; ``*`` is any
                 step

Other components cannot be attached: their writes cannot be distinguished from those of others.
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
"""The maximum backoff of a pod in the scheduling queue."""


@dataclass(frozen=True, slots=True)
class Made:
    """Objects of ``resource`` with a controller of kind ``owner``, or with one of ``names``."""

    resource: str
    owner: str = ""
    names: tuple[str, ...] = ()
    namespace: str = ""

    def covers(self, resource: str, document: Document) -> bool:
        """Return whether an object matches."""
        metadata = document["metadata"]
        if resource != self.resource or self.namespace not in ("", metadata.get("namespace")):
            return False
        if self.owner:
            controller = controller_of(document)
            return controller is not None and controller.get("kind") == self.owner
        return not self.names or metadata["name"] in self.names


@dataclass(frozen=True, slots=True)
class PartEffects:
    """The effects of one component; see the module docstring."""

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
"""The definition contains the conversion webhook of WorkloadSpreads."""

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
"""Container IDs and pod IPs, which each kubelet assigns."""

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
    """A component cannot be attached to a replay."""


@dataclass(frozen=True, slots=True)
class Attached:
    """The attached components."""

    names: tuple[str, ...] = ()

    def maker(self, resource: str, document: Document) -> str:
        """Return the component that creates an object; "" if its creation is played."""
        for name in self.names:
            if any(made.covers(resource, document) for made in EFFECTS[name].makes):
                return name
        return ""

    def deleter(self, hand: str) -> str:
        """Return the component for a cause of deletions; "" if its deletions are played."""
        return next((name for name in self.names if hand in EFFECTS[name].deletes), "")

    @property
    def aftermath_seconds(self) -> float:
        """How long the attached components may work after the last event, in seconds."""
        return max((EFFECTS[name].lags for name in self.names), default=1.0)

    def chooses(self, hand: str) -> bool:
        """Return whether a component chooses the victims of a cause, of any controller."""
        return any(hand in EFFECTS[name].chooses for name in self.names)

    def ender(self, resource: str) -> str:
        """Return the component that removes terminating objects; "" if removals are played."""
        return next((name for name in self.names if resource in EFFECTS[name].ends), "")

    @property
    def spreads(self) -> bool:
        """Whether the component ``workloadspread`` assigns pods to subsets."""
        return SPREADING in self.names

    def keeps(self, resource: str) -> tuple[FieldPath, ...]:
        """Return the fields of a resource that are not compared."""
        return tuple(path for name in self.names for path in EFFECTS[name].keeps.get(resource, ()))

    def writes(self, resource: str) -> tuple[FieldPath, ...]:
        """Return the fields of a resource that are left to components."""
        return tuple(path for name in self.names for path in EFFECTS[name].writes.get(resource, ()))


def attach(names: Iterable[str]) -> Attached:
    """Return the components as attached; raises UnsupportedComponentError."""
    given = tuple(names)
    for name in given:
        if name not in EFFECTS:
            raise UnplayablePartError(
                f"run: part {name!r} cannot be attached to a replay; "
                f"expected none, or of: {', '.join(EFFECTS)}"
            )
    return Attached(given)
