"""Reset fields: fields that a write cannot change, and whose ownership it does not take.

A write to the object itself resets the status; a write to the status resets the spec.

Source: ``GetResetFields`` in pkg/registry/GROUP/RESOURCE/strategy.go, v1.37.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from fakeapi.api.managedfields.fieldsets import EMPTY, FieldSet, Path, set_of
from fakeapi.kinds import ResourceInfo

_METADATA: Final[Path] = ("f:metadata",)
_SPEC: Final[Path] = ("f:spec",)
_STATUS: Final[Path] = ("f:status",)

_OF_STATUS: Final[Mapping[str, tuple[Path, ...]]] = {
    "deployments": (_SPEC, ("f:metadata", "f:labels")),
    "pods": (_SPEC, ("f:metadata", "f:deletionTimestamp"), ("f:metadata", "f:ownerReferences")),
    "certificatesigningrequests": (_SPEC, ("f:status", "f:conditions")),
    "podcertificaterequests": (_METADATA, _SPEC),
    "flowschemas": (_METADATA, _SPEC),
    "prioritylevelconfigurations": (_METADATA, _SPEC),
    "validatingadmissionpolicies": (_METADATA, _SPEC),
    "servicecidrs": (_METADATA, _SPEC),
    "volumeattachments": (_METADATA, _SPEC),
    "csinodes": (_METADATA, _SPEC),
    "devicetaintrules": (_METADATA, _SPEC),
    "resourceclaims": (_METADATA, _SPEC),
    "storageversionmigrations": (_METADATA, _SPEC),
}
"""The fields that a write to the status resets, for resources where it is not only the spec."""

_OTHERS: Final[Mapping[tuple[str, str], tuple[Path, ...]]] = {
    ("certificatesigningrequests", ""): (_SPEC, _STATUS),
    ("certificatesigningrequests", "approval"): (_SPEC, ("f:status", "f:certificate")),
    ("customresourcedefinitions", ""): (_STATUS,),
    ("namespaces", "finalize"): (_STATUS,),
}


@lru_cache(maxsize=512)
def reset_fields(kind: ResourceInfo, subresource: str) -> FieldSet:
    """Return the fields that a write to the object, or to its subresource, resets."""
    found = _OTHERS.get((kind.plural, subresource))
    if found is not None:
        return set_of(*found)
    if kind.custom is not None and subresource == "status":
        return set_of(_METADATA, _SPEC)
    if subresource == "status":
        return set_of(*_OF_STATUS.get(kind.plural, (_SPEC,)))
    return set_of(_STATUS) if not subresource and "status" in kind.subresources else EMPTY
