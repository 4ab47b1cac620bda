"""Claims that wait for their first consumer: the nodes on which volumes can be found for them.

The claims of a pod are matched one after the other, the smallest first, and each takes the smallest
volume that fits:

    claims of 40 and 45 GiB, volumes of 50 and 100 GiB  ->  40 takes 50, 45 takes 100

For the claims without a volume, one has to be provisioned: the class must allow the node, and if
the driver reports its capacities, one must be large enough. Each claim is compared with it alone,
not the sum of the claims.

kube-scheduler lists volumes in random order; here, the first by name is taken of those of the same
size. Bindings that kube-scheduler has chosen and not written yet are known to itself only.

Source: pkg/scheduler/framework/plugins/volumebinding/binder.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from policies.kubernetes.selectors import Labels, NodeSelector, NodeSelectorTerm, Requirement
from policies.kubernetes.snapshot import NodeState
from policies.kubernetes.storage import (
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    Same,
    Storage,
)
from policies.preemption.filtering.framework import LabelValues
from policies.preemption.filtering.status import Code, Reason

NO_PROVISIONER = ("", "kubernetes.io/no-provisioner")
"""Provisioners of a class without dynamic provisioning."""

Alternatives = Sequence[Sequence[Requirement]]
"""Requirements on node labels: those of at least one alternative have to be met."""


@dataclass(frozen=True, slots=True)
class UnboundClaims:
    """The claims that wait for their first consumer (FindPodVolumes).

    ``selected`` have a selected node, on which their volumes are to be provisioned; ``others`` are
    sorted by size.
    """

    selected: Sequence[tuple[str, Provisioning]]
    others: Sequence[tuple[MatchingVolumes, Provisioning]]

    @staticmethod
    def of(claims: Sequence[PersistentVolumeClaim], storage: Storage) -> UnboundClaims:
        """Return the claims with the volumes and the capacities that they can get."""
        by_size = sorted(claims, key=lambda claim: claim.request)
        return UnboundClaims(
            [
                (claim.selected_node, Provisioning.of(claim, storage))
                for claim in claims
                if claim.selected_node is not None
            ],
            [
                (_matching_volumes(claim, Same(storage.volumes)), Provisioning.of(claim, storage))
                for claim in by_size
                if claim.selected_node is None
            ],
        )

    def failure(self, state: NodeState) -> Reason | None:
        """Return why the claims cannot be bound on the node, or None."""
        labels = state.node.labels
        for node, provisioning in self.selected:
            if node != state.node.name:
                return Reason(Code.NO_VOLUME_TO_BIND, f"{provisioning.claim}, for node {node}")
        to_provision = [provisioning for _, provisioning in self.selected]
        taken: set[str] = set()
        for volumes, provisioning in self.others:
            volume = volumes.find(labels, taken)
            if volume is None:
                to_provision.append(provisioning)
            else:
                taken.add(volume)
        failures = (provisioning.failure(labels) for provisioning in to_provision)
        return next((reason for reason in failures if reason is not None), None)

    def passing_values(self) -> LabelValues | None:
        """Return values of a node label with which the claims can be bound, if they are known."""
        if self.selected or len(self.others) != 1:
            return None
        [(volumes, provisioning)] = self.others
        if volumes.reserved:
            return None
        found = volumes.available.passing_values()
        if found is None and provisioning.capacities and provisioning.topologies == ((),):
            return provisioning.capacities.passing_values()
        return found

    def label_keys(self) -> frozenset[str] | None:
        """Return the node labels that decide; None if the name of the node decides, too."""
        if self.selected:
            return None
        return frozenset().union(
            *(
                volumes.label_keys() | provisioning.label_keys()
                for volumes, provisioning in self.others
            )
        )


@dataclass(frozen=True, slots=True)
class MatchingVolumes:
    """The volumes that a claim can be bound to, where the node allows it.

    ``reserved`` are kept for the claim: the first of them is used or none. ``available`` are sorted
    by size. Source: FindMatchingVolume in k8s.io/component-helpers/storage/volume/pv_helpers.go.
    """

    reserved: Sequence[tuple[str, Alternatives]]
    available: FirstByLabels

    @staticmethod
    def of(claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume]) -> MatchingVolumes:
        """Find the volumes."""
        fitting = [each for each in volumes if _fits(claim, each)]
        fitting.sort(key=lambda volume: (volume.capacity, volume.name))
        reserved = sorted((each for each in fitting if each.claim), key=lambda it: it.name)
        available = (each for each in fitting if not each.claim and _is_eligible(claim, each))
        return MatchingVolumes(
            [(each.name, alternatives_of(each.affinity)) for each in reserved],
            FirstByLabels((each.name, alternatives_of(each.affinity)) for each in available),
        )

    def find(self, labels: Labels, taken: Collection[str]) -> str | None:
        """Return the name of the claim's volume on a node with ``labels``, or None."""
        for name, alternatives in self.reserved:
            if name not in taken:
                return name if _meet(labels, alternatives) else None
        return self.available.first(labels, taken)

    def label_keys(self) -> frozenset[str]:
        """Return the node labels that decide."""
        return (
            keys_of(alternatives for _, alternatives in self.reserved) | self.available.label_keys
        )


@lru_cache(maxsize=16)
def _matching_volumes(
    claim: PersistentVolumeClaim, volumes: Same[Mapping[str, PersistentVolume]]
) -> MatchingVolumes:
    return MatchingVolumes.of(claim, volumes.value.values())


@lru_cache(maxsize=16)
def _capacities(
    storage_class: str, request: int, capacities: Same[Mapping[str, CsiStorageCapacity]]
) -> FirstByLabels:
    return FirstByLabels(
        (each.key, (each.nodes.requirements,))
        for each in capacities.value.values()
        if each.storage_class == storage_class
        and each.nodes is not None
        and each.largest is not None
        and each.largest >= request
    )


def _fits(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    return (
        volume.storage_class == claim.storage_class
        and (volume.claim is None or volume.is_bound_to(claim))
        and volume.capacity >= claim.request
        and volume.volume_mode == claim.volume_mode
        and volume.attributes_class == claim.attributes_class
        and not volume.deleting
    )


def _is_eligible(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    return (
        volume.available
        and (claim.selector is None or claim.selector.matches(volume.labels))
        and claim.access_modes <= volume.access_modes
    )


@dataclass(frozen=True, slots=True)
class Provisioning:
    """Whether a volume for ``claim`` can be provisioned on a node (checkVolumeProvisions).

    ``topologies`` are the nodes that the class allows. ``capacities`` are large enough; None: the
    driver does not report its capacity.
    """

    claim: str
    topologies: Alternatives
    capacities: FirstByLabels | None = None

    @staticmethod
    def of(claim: PersistentVolumeClaim, storage: Storage) -> Provisioning:
        """Find the topologies and capacities; upstream does not translate in-tree provisioners."""
        found, name = storage.classes[claim.storage_class], f"claim {claim.key}"
        if found.provisioner in NO_PROVISIONER:
            return Provisioning(name, ())
        topologies = alternatives_of(found.topologies)
        driver = storage.drivers.get(found.provisioner)
        if driver is None or not driver.storage_capacity or not claim.request:
            return Provisioning(name, topologies)
        large_enough = _capacities(found.name, claim.request, Same(storage.capacities))
        return Provisioning(name, topologies, large_enough)

    def failure(self, labels: Labels) -> Reason | None:
        """Return why no volume can be provisioned on a node with ``labels``, or None."""
        if not _meet(labels, self.topologies):
            return Reason(Code.NO_VOLUME_TO_BIND, self.claim)
        if self.capacities is not None and self.capacities.first(labels) is None:
            return Reason(Code.NOT_ENOUGH_STORAGE, self.claim)
        return None

    def label_keys(self) -> frozenset[str]:
        """Return the node labels that decide."""
        keys = keys_of([self.topologies])
        return keys if self.capacities is None else keys | self.capacities.label_keys


class FirstByLabels:
    """Names in order, of which the first is found whose requirements a node's labels meet.

    Most volumes and capacities require one value of one label, such as the host name. They are
    indexed by it, so that a node is compared only with its own.
    """

    def __init__(self, entries: Iterable[tuple[str, Alternatives]]) -> None:
        self._entries = tuple(entries)
        self._unindexed: list[int] = []
        self._indexed: dict[str, dict[str, list[int]]] = {}
        # Entries that require nothing but the one value that they are indexed by.
        self._decided: set[int] = set()
        self.label_keys = keys_of(alternatives for _, alternatives in self._entries)
        for place, (_, alternatives) in enumerate(self._entries):
            for requirements in alternatives:
                exact = next((each for each in requirements if each.operator == "In"), None)
                if exact is None:
                    self._unindexed.append(place)
                    continue
                places = self._indexed.setdefault(exact.key, {})
                for value in exact.values:
                    places.setdefault(value, []).append(place)
                if len(alternatives) == len(requirements) == 1:
                    self._decided.add(place)

    def first(self, labels: Labels, excluded: Collection[str] = ()) -> str | None:
        """Return the first name that is not ``excluded``, or None."""
        best = len(self._entries)
        for places in (self._unindexed, *self._of(labels)):
            for place in places:
                if place >= best:
                    break
                name, alternatives = self._entries[place]
                is_met = place in self._decided or _meet(labels, alternatives)
                if is_met and name not in excluded:
                    best = place
        return self._entries[best][0] if best < len(self._entries) else None

    def passing_values(self) -> LabelValues | None:
        """Return the values of a label that are enough for a name to be found, if it is one."""
        if len(self._indexed) != 1:
            return None
        [(key, places)] = self._indexed.items()
        enough = (value for value, each in places.items() if not self._decided.isdisjoint(each))
        return LabelValues(key, frozenset(enough))

    def _of(self, labels: Labels) -> list[Sequence[int]]:
        return [
            places.get(labels[key], ()) for key, places in self._indexed.items() if key in labels
        ]


def alternatives_of(selector: NodeSelector | None) -> Alternatives:
    """Return the requirements of a selector on the labels of a node, whose name it is not given."""
    if selector is None:
        return ((),)
    return tuple(
        term.labels
        for term in selector.terms
        if (NodeSelectorTerm(fields=term.fields).matches("", {}) if term.fields else term.labels)
    )


def _meet(labels: Labels, alternatives: Alternatives) -> bool:
    return any(all(each.matches(labels) for each in required) for required in alternatives)


def keys_of(several: Iterable[Alternatives]) -> frozenset[str]:
    """Return the keys of all requirements."""
    return frozenset(
        each.key for alternatives in several for required in alternatives for each in required
    )
