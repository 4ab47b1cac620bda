"""DefaultStorageClass admission: a new claim that names no class gets the default class.

A StorageClass is a default by its annotation. Of several, the newest is used, and of those of the
same second the first by name. A claim with an empty class name keeps it. Claims that exist when a
class becomes the default are left to the persistent volume controller.

Source: kubernetes/plugin/pkg/admission/storage/storageclass/setdefault/admission.go,
pkg/volume/util/storageclass.go, v1.37.
"""

from __future__ import annotations

from typing import Final

from extender.kube.decoders.object_meta import parse_time
from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.builtin import STORAGE_CLASSES
from fakeapi.apiserver.store.dry_run import ObjectReader
from fakeapi.apiserver.store.object_store import Document

_IS_DEFAULT: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_CLASS: Final = "volume.beta.kubernetes.io/storage-class"


def set_default_storage_class(objects: ObjectReader, _kind: ResourceInfo, claim: Document) -> None:
    """Set the storage class of a new claim that names none, if there is a default class."""
    spec = claim.setdefault("spec", {})
    if spec.get("storageClassName") is not None or _CLASS in _annotations(claim):
        return
    defaults = [
        (-parse_time(metadata.get("creationTimestamp")), metadata["name"])
        for entry in objects.entries(STORAGE_CLASSES)
        if b"is-default-class" in entry.raw  # avoids decoding the other classes
        for document in (entry.document(),)
        for metadata in (document["metadata"],)
        if any(_annotations(document).get(name) == "true" for name in _IS_DEFAULT)
    ]
    if defaults:
        spec["storageClassName"] = min(defaults)[1]


def _annotations(document: Document) -> dict[str, str]:
    return document["metadata"].get("annotations") or {}
