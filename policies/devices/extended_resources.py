"""Extended resources that devices back, since 1.36: which filter judges them on which node.

NodeResourcesFit leaves out a resource that a node does not have, if a DeviceClass backs it;
DynamicResources then looks for devices of the class. On a node that has some of the resource, it is
counted as before. If the classes are not known, any of them might back the resource.

Source: shouldDelegateResourceToDRA in pkg/scheduler/framework/plugins/noderesources/fit.go.
"""

from __future__ import annotations

from policies.devices.inventory import backing_classes
from policies.kubernetes.feature_gates import FeatureGate
from policies.kubernetes.pod_requests import is_backed_by_devices
from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import Node, Pod, Snapshot
from policies.kubernetes.storage import StorageKind


def delegated_resources(pod: Pod, snapshot: Snapshot, release: Release) -> frozenset[str]:
    """Return the requested resources that devices may back where a node does not have them."""
    names = [name for name, n in pod.requests.scalars.items() if n and is_backed_by_devices(name)]
    if not names or FeatureGate.DRA_EXTENDED_RESOURCE not in release.gates:
        return frozenset()
    if not snapshot.storage.knows_all(StorageKind.DEVICE_CLASSES):
        return frozenset(names)
    return frozenset(backing_classes(snapshot.storage).keys() & names)


def is_delegated(name: str, node: Node) -> bool:
    """Return whether devices, not the node's allocatable amounts, decide about a resource."""
    return node.allocatable.scalars.get(name, 0) == 0
