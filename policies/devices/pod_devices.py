"""The devices that one pod needs: by its claims, and by extended resources that classes back.

For extended resources, kube-scheduler creates a claim when it binds the pod. Here that claim is
planned before it exists. Source: pkg/scheduler/framework/plugins/dynamicresources
(dynamicresources.go, extendeddynamicresources.go).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from policies.devices.inventory import DeviceSearch, backing_classes, device_search
from policies.devices.planning import PlannedClaim, plan_claim
from policies.kubernetes.devices import DeviceRequest
from policies.kubernetes.feature_gates import FeatureGate
from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import Pod
from policies.kubernetes.storage import ResourceClaim, Storage, StorageKind

_EXTENDED: Final = "extended resources"


@dataclass(frozen=True, slots=True)
class PodDevices:
    """The claims of a pod, and its extended resources that devices may back."""

    pod: Pod
    claims: tuple[ResourceClaim, ...]
    delegated: frozenset[str]
    storage: Storage
    release: Release

    def search(self, extended: frozenset[str]) -> DeviceSearch | str:
        """Prepare the search for the claims and for ``extended`` resources.

        Return a text that names what is unknown if there can be no search.
        """
        storage, unallocated = self.storage, [each for each in self.claims if not each.allocated]
        if not storage.knows_all(StorageKind.SLICES):
            return StorageKind.SLICES.value
        # Any class may back an extended resource.
        classes = StorageKind.DEVICE_CLASSES
        if classes in storage.unknown or (extended and not storage.knows_all(classes)):
            return classes.value
        for name in sorted(_classes_of(unallocated) - storage.device_classes.keys()):
            return f"{classes.value}/{name}"
        planned = [
            plan_claim(
                claim.requests, claim.constraints, storage.device_classes, f"claim {claim.key}"
            )
            for claim in unallocated
        ]
        if extended:
            planned.append(self._extended_claim(extended))
        return device_search(planned, storage, self.release.gates)

    def unknown_use(self) -> str:
        """Return the name of a kind without which a device may be taken wrongly, or ""."""
        kinds = [StorageKind.DEVICES]
        if FeatureGate.DRA_DEVICE_TAINT_RULES in self.release.gates:
            kinds.append(StorageKind.TAINT_RULES)
        return next((str(kind.value) for kind in kinds if not self.storage.knows_all(kind)), "")

    def left_over(self) -> str:
        """Return the key of a claim for the extended resources that is left from an attempt."""
        claims = self.storage.devices.values() if self.delegated else ()
        left = (
            claim.key
            for claim in claims
            if claim.extended
            and claim.owner == self.pod.uid
            and claim.namespace == self.pod.namespace
        )
        return next(left, "")

    def _extended_claim(self, resources: frozenset[str]) -> PlannedClaim:
        classes = backing_classes(self.storage)
        requests = [
            DeviceRequest(each.name, classes[each.resource].name, count=each.count)
            for each in self.pod.extended_requests
            if each.resource in resources
        ]
        return plan_claim(requests, (), self.storage.device_classes, _EXTENDED)


def _classes_of(claims: Iterable[ResourceClaim]) -> set[str]:
    requests = (request for claim in claims for request in claim.requests)
    return {each.device_class for request in requests for each in request.alternatives()}
