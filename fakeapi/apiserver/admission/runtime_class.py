"""RuntimeClass admission: a new pod gets the overhead and the placement of its RuntimeClass.

A pod whose class does not exist is rejected, as is one whose overhead or node selector contradicts
its class, or that has an overhead without a class that defines one.

Source: kubernetes/plugin/pkg/admission/runtimeclass/admission.go, pkg/util/tolerations, v1.37.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.builtin import PODS, RUNTIME_CLASSES
from fakeapi.apiserver.store.dry_run import ObjectReader
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import StatusError, forbidden
from policies.kubernetes.quantity import parse_quantity

Toleration = Mapping[str, Any]

_MISMATCH: Final = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_UNDEFINED: Final = (
    "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
)


def set_runtime_class_fields(objects: ObjectReader, _kind: ResourceInfo, pod: Document) -> None:
    """Complete a new pod from its RuntimeClass; raise StatusError (403)."""
    spec = pod.get("spec") or {}
    name = spec.get("runtimeClassName")
    if name is None and "overhead" not in spec:
        return
    found: Document = {}
    if name is not None:
        entry = objects.get(RUNTIME_CLASSES, name)
        if entry is None:
            raise _rejected(pod, f'pod rejected: RuntimeClass "{name}" not found')
        found = entry.document()
    _set_overhead(pod, (found.get("overhead") or {}).get("podFixed"))
    if scheduling := found.get("scheduling"):
        _set_node_selector(pod, scheduling.get("nodeSelector") or {})
        tolerations = (*(spec.get("tolerations") or ()), *(scheduling.get("tolerations") or ()))
        if tolerations:
            spec["tolerations"] = merge_tolerations(tolerations)


def _set_overhead(pod: Document, defined: Mapping[str, Any] | None) -> None:
    spec = pod["spec"]
    if defined is None:
        if spec.get("overhead") is not None:
            raise _rejected(pod, _UNDEFINED)
        return
    if spec.get("overhead") and _amounts(spec["overhead"]) != _amounts(defined):
        raise _rejected(pod, _MISMATCH)
    spec["overhead"] = dict(defined)


def _amounts(resources: Mapping[str, Any]) -> dict[str, int]:
    return {name: parse_quantity(str(amount)) for name, amount in resources.items()}


def _set_node_selector(pod: Document, required: Mapping[str, str]) -> None:
    chosen: dict[str, str] = pod["spec"].get("nodeSelector") or {}
    for key, value in required.items():
        if chosen.get(key, value) != value:
            raise _rejected(
                pod,
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {chosen[key]}",
            )
    if required:
        pod["spec"]["nodeSelector"] = {**chosen, **required}


def merge_tolerations(tolerations: tuple[Toleration, ...]) -> list[Toleration]:
    """Return the tolerations that no other one includes; of equal ones, the first."""
    merged: list[Toleration] = []
    for index, each in enumerate(tolerations):
        later = (other for other in tolerations[index + 1 :] if other != each)
        if not any(_includes(other, each) for other in (*merged, *later)):
            merged.append(each)
    return merged


def _includes(wide: Toleration, narrow: Toleration) -> bool:
    if wide == narrow:
        return True
    exists = wide.get("operator") == "Exists"
    if narrow.get("key", "") != wide.get("key", "") and (wide.get("key") or not exists):
        return False
    if wide.get("effect") and narrow.get("effect") != wide["effect"]:
        return False
    longest = wide.get("tolerationSeconds")
    if wide.get("effect") == "NoExecute" and longest is not None:
        seconds = narrow.get("tolerationSeconds")
        if seconds is None or seconds > longest:
            return False
    if exists:
        return True
    return narrow.get("operator") == "Equal" and narrow.get("value") == wide.get("value")


def _rejected(pod: Document, detail: str) -> StatusError:
    metadata = pod["metadata"]
    return forbidden(PODS, metadata.get("name") or metadata.get("generateName", ""), detail)
