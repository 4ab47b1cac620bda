"""The state of a recording or a world: current and deleted objects, and the causes of deletions.

It is updated by one event after another. A replay keeps two, one of the recording and one of the
world, with the same rules.

An object does not contain the client that deleted it. But components that disrupt pods set the
condition DisruptionTarget, and deletions by controllers follow from the state:

    the condition DisruptionTarget               by its reason, see CAUSES_BY_REASON
    its namespace is being deleted               namespaces
    all its owners are deleted or deleting       gc
    its controller has more pods than replicas   the controller: replicaset, statefulset, …
    it was unschedulable for longer than its     workloadspread
      WorkloadSpread allows
    otherwise                                    a client

Sources: k8s.io/api/core/v1 (PodReasonPreemptionByScheduler and its like), pkg/apis/core/types.go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from extender.kube.decoders.object_meta import parse_time
from extender.recording.format import EventType
from fakeapi.replay.object_fields import (
    SPREADING,
    SPREADS,
    Document,
    ObjectLocation,
    controller_of,
    is_active,
    is_deleting,
    key_of,
    owners_of,
    read_field,
    spread_of,
    subset_of,
    uid_of,
    unschedulable_limit_seconds,
)
from fakeapi.replay.scheduling_decisions import SchedulingDecisionLog


@dataclass(frozen=True, slots=True)
class ObservedDeletion:
    """The deletion of an object, graceful or immediate; ``cause`` is the component behind it."""

    resource: str
    key: str
    uid: str
    cause: str


@dataclass(slots=True)
class RecordedState:
    """The state after the events so far. ``deletion_cause`` returns the cause of a deletion.

    ``created`` are the UIDs of objects by their controller's UID, in the order of creation;
    ``deleting`` those of existing objects with a deletion timestamp; ``removed`` those of objects
    that no longer exist; ``names`` are the keys of all pods so far, ``subsets`` their subsets of
    WorkloadSpreads. Objects without UID are identified by their location.
    """

    deletion_cause: Callable[[RecordedState, str, Document], str]
    present: dict[ObjectLocation, Document] = field(default_factory=dict)
    places: dict[str, ObjectLocation] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    created: dict[str, list[str]] = field(default_factory=dict)
    deleting: dict[str, ObservedDeletion] = field(default_factory=dict)
    deletions: list[ObservedDeletion] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    subsets: dict[str, str] = field(default_factory=dict)
    decisions: SchedulingDecisionLog = field(default_factory=SchedulingDecisionLog)
    _active: dict[str, set[str]] = field(default_factory=dict)

    def apply(self, kind: EventType, resource: str, document: Document) -> ObservedDeletion | None:
        """Apply an event; return the deletion of its object if the event starts it."""
        if kind in ("BOOKMARK", "RELISTED"):
            return None
        place, uid = (resource, key_of(document)), _identity(resource, document)
        deletion = None
        leaves = kind == "DELETED"
        if (leaves or is_deleting(document)) and uid not in self.deleting:
            deletion = ObservedDeletion(*place, uid, self.deletion_cause(self, resource, document))
            self.deleting[uid] = deletion
            self.deletions.append(deletion)
        if resource == "pods":
            self.names[uid], self.subsets[uid] = place[1], subset_of(document)
            self.decisions.record(document, deletion.cause if deletion else "")
        if leaves:
            self._remove(place, uid)
        else:
            self._store(place, uid, document)
        return deletion

    def get(self, place: ObjectLocation) -> Document | None:
        """Return the object at a location, or None."""
        return self.present.get(place)

    def find(self, uid: str) -> Document | None:
        """Return the object with a UID, or None."""
        place = self.places.get(uid)
        return None if place is None else self.present.get(place)

    def active(self, controller: str) -> int:
        """Return the number of a controller's active pods."""
        return len(self._active.get(controller, ()))

    def _store(self, place: ObjectLocation, uid: str, document: Document) -> None:
        before = self.present.get(place)
        if before is not None and _identity(place[0], before) != uid:
            self._remove(place, _identity(place[0], before))
        self.present[place] = document
        self.places[uid] = place
        self.removed.discard(uid)
        controller = controller_of(document)
        if controller is None:
            return
        owner = str(controller.get("uid"))
        born = self.created.setdefault(owner, [])
        if before is None or controller_of(before) is None:
            born.append(uid)
        members = self._active.setdefault(owner, set())
        if place[0] == "pods" and is_active(document):
            members.add(uid)
        else:
            members.discard(uid)

    def _remove(self, place: ObjectLocation, uid: str) -> None:
        before = self.present.pop(place, None)
        self.places.pop(uid, None)
        self.deleting.pop(uid, None)
        self.removed.add(uid)
        controller = None if before is None else controller_of(before)
        if controller is not None:
            self._active.get(str(controller.get("uid")), set()).discard(uid)


def _identity(resource: str, document: Document) -> str:
    return uid_of(document) or f"{resource}/{key_of(document)}"


UNKNOWN_CAUSE: Final = "somebody"
CAUSES_BY_REASON: Final = MappingProxyType(
    {
        "PreemptionByScheduler": "scheduler",
        "PreemptionByKubeScheduler": "scheduler",
        "EvictionByEvictionAPI": "eviction",
        "DeletionByTaintManager": "tainteviction",
        "DeletionByPodGC": "podgc",
        "TerminationByKubelet": "kubelet",
    }
)


def deletion_cause(before: RecordedState, resource: str, document: Document) -> str:
    """Return the cause of an object's deletion; ``before`` is the state before the event."""
    disrupted = _disruption(document)
    if disrupted:
        return CAUSES_BY_REASON.get(disrupted, UNKNOWN_CAUSE)
    namespace = before.get(("namespaces", str(document["metadata"].get("namespace", ""))))
    if namespace is not None and is_deleting(namespace):
        return "namespaces"
    owners = owners_of(document)
    if owners and all(_is_owner_deleted(before, str(owner.get("uid"))) for owner in owners):
        return "gc"
    if resource != "pods":
        return UNKNOWN_CAUSE
    # Only a deletion timestamp shows that the limit of the WorkloadSpread was over.
    rules = (
        (_workloadspread_cause, _controller_cause)
        if is_deleting(document)
        else (_controller_cause, _workloadspread_cause)
    )
    return next(filter(None, (rule(before, document) for rule in rules)), UNKNOWN_CAUSE)


def _disruption(document: Document) -> str:
    for condition in read_field(document, ("status", "conditions")) or ():
        if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
            return str(condition.get("reason", ""))
    return ""


def _is_owner_deleted(before: RecordedState, uid: str) -> bool:
    owner = before.find(uid)
    return uid in before.removed if owner is None else is_deleting(owner)


def _controller_cause(before: RecordedState, pod: Document) -> str:
    reference = controller_of(pod)
    if reference is None:
        return ""
    uid = str(reference.get("uid"))
    replicas = read_field(before.find(uid) or {}, ("spec", "replicas"))
    known = before.find(str(pod["metadata"].get("uid")))
    counted = known is not None and is_active(known)
    if counted and isinstance(replicas, int) and before.active(uid) > replicas:
        return str(reference.get("kind", "")).lower()
    return ""


def _workloadspread_cause(before: RecordedState, pod: Document) -> str:
    """Return the component's name if a WorkloadSpread deletes a pod as unschedulable, else ""."""
    known = before.find(str(pod["metadata"].get("uid")))
    spread = before.get((SPREADS, spread_of(pod)))
    if known is None or spread is None or not _is_unschedulable(known):
        return ""
    seconds = unschedulable_limit_seconds(spread, pod)
    if seconds is None:
        return ""
    deleted, created = (
        pod["metadata"].get(f"{each}Timestamp") for each in ("deletion", "creation")
    )
    return SPREADING if not deleted or _seconds(deleted) >= _seconds(created) + seconds else ""


def _is_unschedulable(pod: Document) -> bool:
    scheduled = read_field(pod, ("status", "conditions", "type=PodScheduled")) or {}
    condition = scheduled.get("status"), scheduled.get("reason")
    return condition == ("False", "Unschedulable") and not read_field(pod, ("spec", "nodeName"))


def _seconds(time: str | None) -> int:
    return parse_time(time) // 10**9
