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

from extender.kube.workloadspread.spread_pods import MATCHED_WORKLOADSPREAD
from fakeapi.replay.object_fields import (
    DEFINITIONS,
    SPREADING,
    SPREADS,
    Document,
    FieldPath,
    controller_of,
)
from fakeapi.replay.scheduling_decisions import SCHEDULER
from policies.replicaset import DELETION_COST

_NOTHING: Final[Mapping[str, tuple[FieldPath, ...]]] = MappingProxyType({})

_LONGEST_BACKOFF_SECONDS: Final = 10.0
"""The maximum backoff of a pod in the scheduling queue."""


@dataclass(frozen=True, slots=True)
class ControlledObjects:
    """Objects of ``resource`` with a controller of kind ``owner``, or with one of ``names``."""

    resource: str
    owner: str = ""
    names: tuple[str, ...] = ()
    namespace: str = ""

    def matches(self, resource: str, document: Document) -> bool:
        """Return whether an object matches."""
        metadata = document["metadata"]
        if resource != self.resource or self.namespace not in ("", metadata.get("namespace")):
            return False
        if self.owner:
            controller = controller_of(document)
            return controller is not None and controller.get("kind") == self.owner
        return not self.names or metadata["name"] in self.names


@dataclass(frozen=True, slots=True)
class ComponentEffects:
    """The effects of one component; see the module docstring."""

    makes: tuple[ControlledObjects, ...] = ()
    deletes: tuple[str, ...] = ()
    removes: tuple[str, ...] = ()
    writes: Mapping[str, tuple[FieldPath, ...]] = field(default_factory=lambda: _NOTHING)
    chooses: tuple[str, ...] = ()
    lag_seconds: float = 1.0
    excluded: Mapping[str, tuple[FieldPath, ...]] = field(default_factory=lambda: _NOTHING)


def _conditions(*types: str) -> tuple[FieldPath, ...]:
    return tuple(("status", "conditions", f"type={each}") for each in types)


def _status(*names: str) -> tuple[FieldPath, ...]:
    return tuple(("status", name) for name in names)


_CONVERSION_FIELDS: Final[tuple[FieldPath, ...]] = (
    ("spec", "conversion"),
    ("metadata", "generation"),
)
"""The definition contains the conversion webhook of WorkloadSpreads."""

_STATUSES: Final = ("initContainerStatuses", "containerStatuses")
_ASSIGNED_BY_KUBELETS: Final[tuple[FieldPath, ...]] = (
    *_status("podIP", "podIPs"),
    *(("status", statuses, "*", "containerID") for statuses in _STATUSES),
    *(
        ("status", statuses, "*", state, "terminated", "containerID")
        for statuses in _STATUSES
        for state in ("state", "lastState")
    ),
)
"""Container IDs and pod IPs, which each kubelet assigns."""

EFFECTS: Final[Mapping[str, ComponentEffects]] = MappingProxyType(
    {
        "gc": ComponentEffects(deletes=("gc",)),
        "namespaces": ComponentEffects(
            deletes=("namespaces",),
            removes=("namespaces",),
            writes={"namespaces": (("spec", "finalizers"), ("status", "conditions"))},
        ),
        "podgc": ComponentEffects(deletes=("podgc",)),
        "serviceaccounts": ComponentEffects(
            makes=(
                ControlledObjects("serviceaccounts", names=("default",)),
                ControlledObjects("configmaps", names=("kube-root-ca.crt",)),
            )
        ),
        "disruption": ComponentEffects(writes={"poddisruptionbudgets.policy": (("status",),)}),
        "tainteviction": ComponentEffects(deletes=("tainteviction",)),
        "replicaset": ComponentEffects(
            makes=(ControlledObjects("pods", owner="ReplicaSet"),),
            deletes=("replicaset",),
            writes={"replicasets.apps": (("status",),), "pods": (("metadata", "ownerReferences"),)},
        ),
        "kubelet": ComponentEffects(
            makes=(ControlledObjects("leases.coordination.k8s.io", namespace="kube-node-lease"),),
            deletes=("kubelet",),
            removes=("pods",),
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
            excluded={"pods": _ASSIGNED_BY_KUBELETS},
        ),
        SPREADING: ComponentEffects(
            deletes=(SPREADING,),
            writes={
                SPREADS: (("status",),),
                "pods": (
                    ("metadata", "annotations", MATCHED_WORKLOADSPREAD),
                    ("metadata", "annotations", DELETION_COST),
                ),
                DEFINITIONS: _CONVERSION_FIELDS,
            },
            excluded={DEFINITIONS: _CONVERSION_FIELDS},
        ),
        SCHEDULER: ComponentEffects(
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
            excluded={"pods": (("status", "conditions", "PodScheduled", "observedGeneration"),)},
            lag_seconds=_LONGEST_BACKOFF_SECONDS + 1.0,
        ),
    }
)


class UnsupportedComponentError(ValueError):
    """A component cannot be attached to a replay."""


@dataclass(frozen=True, slots=True)
class AttachedComponents:
    """The attached components."""

    names: tuple[str, ...] = ()

    def creating_component(self, resource: str, document: Document) -> str:
        """Return the component that creates an object; "" if its creation is played."""
        for name in self.names:
            if any(made.matches(resource, document) for made in EFFECTS[name].makes):
                return name
        return ""

    def deleting_component(self, cause: str) -> str:
        """Return the component for a cause of deletions; "" if its deletions are played."""
        return next((name for name in self.names if cause in EFFECTS[name].deletes), "")

    @property
    def settling_seconds(self) -> float:
        """How long the attached components may work after the last event, in seconds."""
        return max((EFFECTS[name].lag_seconds for name in self.names), default=1.0)

    def chooses_victims(self, cause: str) -> bool:
        """Return whether a component chooses the victims of a cause, of any controller."""
        return any(cause in EFFECTS[name].chooses for name in self.names)

    def removing_component(self, resource: str) -> str:
        """Return the component that removes terminating objects; "" if removals are played."""
        return next((name for name in self.names if resource in EFFECTS[name].removes), "")

    @property
    def assigns_subsets(self) -> bool:
        """Whether the component ``workloadspread`` assigns pods to subsets."""
        return SPREADING in self.names

    def excluded_fields(self, resource: str) -> tuple[FieldPath, ...]:
        """Return the fields of a resource that are not compared."""
        return tuple(
            path for name in self.names for path in EFFECTS[name].excluded.get(resource, ())
        )

    def written_fields(self, resource: str) -> tuple[FieldPath, ...]:
        """Return the fields of a resource that are left to components."""
        return tuple(path for name in self.names for path in EFFECTS[name].writes.get(resource, ()))


def attach(names: Iterable[str]) -> AttachedComponents:
    """Return the components as attached; raises UnsupportedComponentError."""
    components = tuple(names)
    for name in components:
        if name not in EFFECTS:
            raise UnsupportedComponentError(
                f"run: component {name!r} cannot be attached to a replay; "
                f"expected none, or some of: {', '.join(EFFECTS)}"
            )
    return AttachedComponents(components)
