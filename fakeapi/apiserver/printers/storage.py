"""Printers of storage kinds: volumes, claims, classes, attachments and CSI drivers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fakeapi.apiserver.printers.human_readable import (
    UNSET,
    Cell,
    RowPrinter,
    age,
    at,
    deleted,
    flag,
    join_or_none,
    mapping,
    name,
    objects,
    parse_time,
    text,
    texts,
)

Document = Mapping[str, Any]

_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_ACCESS_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"


def _access_modes(document: Document, *path: str) -> str:
    modes = texts(document, *path)
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in modes)


def _class(document: Document) -> str:
    annotations = mapping(document, "metadata", "annotations")
    if _OLD_CLASS in annotations:
        return text(annotations, _OLD_CLASS)
    return text(document, "spec", "storageClassName")


def _phase(document: Document) -> str:
    return "Terminating" if deleted(document) else text(document, "status", "phase")


def _volume(document: Document, now: int) -> list[Cell]:
    claim = at(document, "spec", "claimRef")
    return [
        name(document),
        text(document, "spec", "capacity", "storage", absent="0"),
        _access_modes(document, "spec", "accessModes"),
        text(document, "spec", "persistentVolumeReclaimPolicy"),
        _phase(document),
        "" if claim is None else f"{text(claim, 'namespace')}/{text(claim, 'name')}",
        _class(document),
        text(document, "spec", "volumeAttributesClassName", absent=UNSET),
        text(document, "status", "reason"),
        age(document, now),
        text(document, "spec", "volumeMode", absent=UNSET),
    ]


def _claim(document: Document, now: int) -> list[Cell]:
    volume = text(document, "spec", "volumeName")
    return [
        name(document),
        _phase(document),
        volume,
        text(document, "status", "capacity", "storage", absent="0") if volume else "",
        _access_modes(document, "status", "accessModes") if volume else "",
        _class(document),
        text(document, "spec", "volumeAttributesClassName", absent=UNSET),
        age(document, now),
        text(document, "spec", "volumeMode", absent=UNSET),
    ]


def _storage_class(document: Document, now: int) -> list[Cell]:
    return [
        name(document),
        text(document, "provisioner"),
        text(document, "reclaimPolicy", absent="Delete"),
        text(document, "volumeBindingMode", absent="Immediate"),
        flag(document, "allowVolumeExpansion"),
        age(document, now),
    ]


def mark_default(documents: Sequence[Document], rows: Sequence[list[Cell]]) -> None:
    """Mark the default StorageClass of a list: the youngest that is annotated as default."""
    defaults = [index for index, each in enumerate(documents) if _is_default(each)]
    if not defaults:
        return
    by_name = sorted(defaults, key=lambda index: name(documents[index]))
    youngest = max(by_name, key=lambda index: _created(documents[index]))
    rows[youngest][0] = f"{rows[youngest][0]} (default)"


def _is_default(document: Document) -> bool:
    annotations = mapping(document, "metadata", "annotations")
    return any(text(annotations, each) == "true" for each in _DEFAULT_CLASS)


def _created(document: Document) -> int:
    return parse_time(at(document, "metadata", "creationTimestamp")) or 0


def _attributes_class(document: Document, now: int) -> list[Cell]:
    return [name(document), text(document, "driverName"), age(document, now)]


def _attachment(document: Document, now: int) -> list[Cell]:
    return [
        name(document),
        text(document, "spec", "attacher"),
        text(document, "spec", "source", "persistentVolumeName"),
        text(document, "spec", "nodeName"),
        flag(document, "status", "attached"),
        age(document, now),
    ]


def _csi_node(document: Document, now: int) -> list[Cell]:
    return [name(document), len(objects(document, "spec", "drivers")), age(document, now)]


def _csi_driver(document: Document, now: int) -> list[Cell]:
    requests = at(document, "spec", "tokenRequests")
    audiences = [text(each, "audience") for each in objects(document, "spec", "tokenRequests")]
    return [
        name(document),
        at(document, "spec", "attachRequired") is not False,
        flag(document, "spec", "podInfoOnMount"),
        flag(document, "spec", "storageCapacity"),
        UNSET if requests is None else ",".join(audiences),
        flag(document, "spec", "requiresRepublish"),
        join_or_none(texts(document, "spec", "volumeLifecycleModes")),
        age(document, now),
    ]


PRINTERS: Mapping[str, RowPrinter] = {
    "PersistentVolume": _volume,
    "PersistentVolumeClaim": _claim,
    "StorageClass.storage.k8s.io": _storage_class,
    "VolumeAttributesClass.storage.k8s.io": _attributes_class,
    "VolumeAttachment.storage.k8s.io": _attachment,
    "CSINode.storage.k8s.io": _csi_node,
    "CSIDriver.storage.k8s.io": _csi_driver,
}
