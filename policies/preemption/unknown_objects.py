"""The objects without which the volume and device filters cannot evaluate a pod, by name.

A filter does not evaluate a pod, or a node for it, if such an object is missing, cannot be decoded,
or is of a kind that the server does not serve or permit. The decision names these objects, so that
they can be found.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.kubernetes.snapshot import Pod
from policies.kubernetes.storage import NO_POD_STORAGE, Storage, StorageKind

_DEVICE_KINDS: Final = frozenset(
    {
        StorageKind.DEVICES,
        StorageKind.SLICES,
        StorageKind.DEVICE_CLASSES,
        StorageKind.TAINT_RULES,
    }
)
_VOLUME_KINDS: Final = frozenset(StorageKind) - _DEVICE_KINDS


def unknown_objects(pod: Pod, storage: Storage) -> tuple[str, ...]:
    """Return what the filters on the pod's volumes and devices may read and do not know.

    These are objects that the pod refers to and that are missing, as ``plural/key``, other objects
    that cannot be decoded, and kinds that could not be read, as their plural.
    """
    behind = pod.storage or NO_POD_STORAGE
    kinds = _VOLUME_KINDS if behind.volumes else frozenset[StorageKind]()
    if behind.devices or pod.extended_requests:
        kinds |= _DEVICE_KINDS
    unreadable = (f"{it.kind.value}/{it.key}" for it in storage.unreadable if it.kind in kinds)
    unknown = (each.value for each in storage.unknown & kinds)
    return tuple(sorted({*_missing_references(pod, storage), *unreadable, *unknown}))


def _missing_references(pod: Pod, storage: Storage) -> Iterator[str]:
    behind = pod.storage or NO_POD_STORAGE
    for volume in behind.claims:
        yield from _missing_of_claim(f"{pod.namespace}/{volume.claim}", storage)
    for reference in behind.devices:
        key = f"{pod.namespace}/{reference.claim or reference.reference}"
        claim = storage.devices.get(key)
        if claim is None:
            yield f"{StorageKind.DEVICES.value}/{key}"
        requests = () if claim is None else claim.requests
        classes = {each.device_class for one in requests for each in one.alternatives()}
        for name in classes - storage.device_classes.keys():
            yield f"{StorageKind.DEVICE_CLASSES.value}/{name}"


def _missing_of_claim(key: str, storage: Storage) -> Iterator[str]:
    claim = storage.claims.get(key)
    if claim is None:
        yield f"{StorageKind.CLAIMS.value}/{key}"
    elif claim.volume:
        if claim.volume not in storage.volumes:
            yield f"{StorageKind.VOLUMES.value}/{claim.volume}"
    elif claim.storage_class and claim.storage_class not in storage.classes:
        yield f"{StorageKind.CLASSES.value}/{claim.storage_class}"
