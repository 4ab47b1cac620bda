"""Victim units: the pods that preemption evicts together, and the priority that it compares.

A plain pod is a unit. So is a pod of a PodGroup, unless the group or a group above it has the
disruption mode *all*: then all scheduled pods below the highest such group are one unit, on
whatever nodes they are. The priority of a unit is that of the root group:

    group                        unit                              kind         priority
    none                         the pod                           Pod          the pod's
    the object is missing        the pod                           PodGroup     the pod's
    only groups of mode single   the pod                           PodGroup     the root group's
    some group of mode all       all pods below the highest one    its kind     the root group's

If one of the groups above is missing, the one below it counts as the root.

Sources: pkg/scheduler/framework/preemption/types.go and util.go, v1.37.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum

from policies.kubernetes.feature_gates import FeatureGate
from policies.kubernetes.pod_groups import MAX_TREE_DEPTH, DisruptionMode, PodGroup
from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import Pod, Snapshot


class UnitKind(IntEnum):
    """The kind of a unit, the more important the higher."""

    POD = 1
    POD_GROUP = 2
    COMPOSITE_POD_GROUP = 3


@dataclass(frozen=True, slots=True)
class VictimUnit:
    """Pods that are evicted together. ``group`` is the key of their group, "" for a pod alone."""

    pods: tuple[Pod, ...]
    priority: int
    kind: UnitKind = UnitKind.POD
    group: str = ""

    def away_from(self, node: str) -> tuple[Pod, ...]:
        """Return the pods on other nodes than ``node``, on which the unit has a pod."""
        if len(self.pods) == 1:
            return ()
        return tuple(pod for pod in self.pods if pod.node_name != node)


@dataclass(frozen=True, slots=True)
class VictimUnits:
    """The units of a snapshot.

    Without ``grouped`` every pod is a unit of its own. Without ``composite`` CompositePodGroups are
    not read. Units of several pods are built once.
    """

    snapshot: Snapshot
    grouped: bool
    composite: bool
    _built: dict[str, VictimUnit] = field(default_factory=dict, repr=False, compare=False)

    def priority_of(self, pod: Pod) -> int:
        """Return the priority of a pod's root group, or its own (GetPodPriority)."""
        ancestry = self._ancestry(pod)
        return ancestry[-1].priority if ancestry else pod.priority

    def unit_of(self, pod: Pod) -> VictimUnit:
        """Return the unit of a pod (getHighestAllAncestor, searchCrossNodesVictimPods)."""
        if not (self.grouped and pod.group):
            return VictimUnit((pod,), pod.priority)
        ancestry = self._ancestry(pod)
        priority = ancestry[-1].priority if ancestry else pod.priority
        for level in range(len(ancestry), 0, -1):
            if ancestry[level - 1].mode is DisruptionMode.ALL:
                return self._whole(pod, ancestry[level - 1], level, priority)
        return VictimUnit((pod,), priority, UnitKind.POD_GROUP)

    def of(self, pods: Iterable[Pod]) -> list[VictimUnit]:
        """Return each unit that has one of ``pods`` once (getCrossNodesVictims)."""
        if not self.grouped:
            return [VictimUnit((pod,), pod.priority) for pod in pods]
        units: list[VictimUnit] = []
        seen: set[tuple[UnitKind, str]] = set()
        for unit in map(self.unit_of, pods):
            if not unit.group:
                units.append(unit)
            elif (unit.kind, unit.group) not in seen:
                seen.add((unit.kind, unit.group))
                units.append(unit)
        return units

    def missing_group(self, pod: Pod) -> str | None:
        """Return the kind and key of the first group of a pod that is missing, or None."""
        if not (self.grouped and pod.group):
            return None
        return self._missing_object(f"{pod.namespace}/{pod.group}")

    def uncertain_member(self, unit: VictimUnit) -> str | None:
        """Return the kind and key of an object that may belong to a unit, too, or None.

        It is a pod that may be on a node, or a missing group of a pod.
        """
        if not unit.group:
            return None
        unplaced = self.snapshot.unplaced_members
        below: tuple[str, ...] = (unit.group,)
        if unit.kind is UnitKind.COMPOSITE_POD_GROUP:
            namespace = unit.group.partition("/")[0]
            present = (*self.snapshot.group_members, *unplaced)
            keys = [key for key in present if key.partition("/")[0] == namespace]
            missing = next(filter(None, map(self._missing_object, keys)), None)
            if missing is not None:
                return missing
            below = self._groups_below(self.snapshot.pod_groups.composites[unit.group])
        return next((f"Pod {pod}" for key in below for pod in unplaced.get(key, ())), None)

    def _missing_object(self, key: str) -> str | None:
        """Return the kind and key of the first missing object from a PodGroup upwards, or None."""
        ancestry = self._upwards(self.snapshot.pod_groups.groups.get(key))
        if not ancestry:
            return f"PodGroup {key}"
        parent = f"{ancestry[-1].namespace}/{ancestry[-1].parent}"
        if (
            self.composite
            and ancestry[-1].parent
            and parent not in self.snapshot.pod_groups.composites
        ):
            return f"CompositePodGroup {parent}"
        return None

    def _ancestry(self, pod: Pod) -> list[PodGroup]:
        """Return the pod's group and those above it, as far as they exist."""
        if not (self.grouped and pod.group):
            return []
        return self._upwards(self.snapshot.pod_groups.groups.get(f"{pod.namespace}/{pod.group}"))

    def _upwards(self, group: PodGroup | None) -> list[PodGroup]:
        """Return a group and those above it; a cycle ends where it begins."""
        found: list[PodGroup] = []
        while group is not None and group not in found and len(found) < MAX_TREE_DEPTH:
            found.append(group)
            above = f"{group.namespace}/{group.parent}" if self.composite and group.parent else ""
            group = self.snapshot.pod_groups.composites.get(above)
        return found

    def _whole(self, pod: Pod, top: PodGroup, level: int, priority: int) -> VictimUnit:
        """Return the unit of all scheduled pods below ``top``, as one of them sees it."""
        kind = UnitKind.POD_GROUP if level == 1 else UnitKind.COMPOSITE_POD_GROUP
        identity = f"{kind.name} {top.key}"
        unit = self._built.get(identity)
        if unit is None:
            members = self.snapshot.group_members
            below = (top.key,) if level == 1 else self._groups_below(top)
            pods = tuple(each for key in below for each in members.get(key, ()))
            unit = VictimUnit(pods or (pod,), priority, kind, top.key)
            self._built[identity] = unit
        return unit

    def _groups_below(self, top: PodGroup) -> tuple[str, ...]:
        """Return the keys of the PodGroups below a CompositePodGroup."""
        return tuple(
            key
            for key, group in self.snapshot.pod_groups.groups.items()
            if group.namespace == top.namespace and top in self._upwards(group)[1:]
        )


def victim_units(snapshot: Snapshot, release: Release) -> VictimUnits:
    """Return the units that an ordinary pod preempts."""
    return VictimUnits(
        snapshot,
        grouped=release.evicts_units,
        composite=FeatureGate.COMPOSITE_POD_GROUP in release.gates,
    )


def units_for_pod_groups(snapshot: Snapshot, release: Release) -> VictimUnits:
    """Return the units that a pod group preempts."""
    return VictimUnits(
        snapshot,
        grouped=release.simulates_pod_groups,
        composite=FeatureGate.COMPOSITE_POD_GROUP in release.gates,
    )
