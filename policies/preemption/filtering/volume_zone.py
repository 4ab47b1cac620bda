"""VolumeZone: a volume with zone or region labels can be used only there.

A node without any such label takes every volume. The beta labels on a volume also match the GA ones
on a node.
"""

from __future__ import annotations

from dataclasses import dataclass

from policies.kubernetes.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE
from policies.kubernetes.releases import Release
from policies.kubernetes.selectors import Labels
from policies.kubernetes.snapshot import NodeState, Pod, Snapshot
from policies.kubernetes.storage import NO_POD_STORAGE, PersistentVolume, Storage
from policies.preemption.filtering.framework import NOTHING_TO_CHECK, NodeFilter, PreFilter
from policies.preemption.filtering.status import Code, Rejection, unresolvable

_NEWER = {BETA_ZONE: ZONE, BETA_REGION: REGION}
_LABELS = frozenset({BETA_ZONE, BETA_REGION, ZONE, REGION})


@dataclass(frozen=True, slots=True)
class VolumeZone:
    """Source: pkg/scheduler/framework/plugins/volumezone/volume_zone.go."""

    name: str = "VolumeZone"

    def pre_filter(self, pod: Pod, snapshot: Snapshot, release: Release) -> PreFilter:
        """Find the zones of the volumes of the pod's claims, except those created for it alone."""
        if pod.storage is None or cannot_evaluate(pod, snapshot, release):
            return NOTHING_TO_CHECK
        topology: list[tuple[Rejection, str, frozenset[str]]] = []
        for claim in pod.storage.non_ephemeral_claims:
            volume = _volume(f"{pod.namespace}/{claim}", claim, snapshot.storage)
            if isinstance(volume, Rejection):
                return PreFilter(conflict=volume)
            if volume is not None:
                detail = f"claim {pod.namespace}/{claim}, volume {volume.name}"
                refusal = unresolvable(Code.VOLUME_ZONE, detail)
                topology += [(refusal, key, values) for key, values in volume.topology]
        if not topology:
            return NOTHING_TO_CHECK

        def rule(state: NodeState) -> Rejection | None:
            labels = state.node.labels
            if _LABELS.isdisjoint(labels):
                return None
            refusals = (why for why, key, values in topology if _value(labels, key) not in values)
            return next(refusals, None)

        return PreFilter(NodeFilter(rule, _LABELS))


def cannot_evaluate(pod: Pod, snapshot: Snapshot, _: Release) -> bool:
    """Return whether a claim, or the object that it refers to, is unknown."""
    return not all(
        snapshot.storage.knows_claim(f"{pod.namespace}/{name}")
        for name in (pod.storage or NO_POD_STORAGE).non_ephemeral_claims
    )


def _volume(key: str, name: str, storage: Storage) -> PersistentVolume | Rejection | None:
    """Return the volume of a claim; None if the claim waits for its first consumer."""
    claim = storage.claims.get(key)
    if claim is None:
        return unresolvable(Code.NO_CLAIM, name)
    if claim.volume:
        volume = storage.volumes.get(claim.volume)
        return unresolvable(Code.NO_VOLUME, claim.volume) if volume is None else volume
    if not claim.storage_class:
        return unresolvable(Code.CLAIM_WITHOUT_CLASS)
    found = storage.classes.get(claim.storage_class)
    if found is None:
        return unresolvable(Code.NO_CLASS, claim.storage_class)
    return None if found.waits_for_first_consumer else unresolvable(Code.NO_VOLUME_NAME)


def _value(labels: Labels, key: str) -> str | None:
    return labels[key] if key in labels else labels.get(_NEWER.get(key, key))
