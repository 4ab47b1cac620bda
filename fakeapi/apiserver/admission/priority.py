"""Priority admission: sets the priority of a pod or pod group from its PriorityClass on create.

The two system classes always exist. A pod or group without a class gets the global default class,
or, if there is none, priority 0.

Source: kubernetes/plugin/pkg/admission/priority/admission.go, pkg/apis/scheduling/{helpers.go,
validation}.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.builtin import PRIORITY_CLASSES
from fakeapi.apiserver.store.dry_run import ObjectReader
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import Cause, forbidden, invalid, required

HIGHEST_USER_PRIORITY: Final = 1_000_000_000
_PREEMPT_LOWER_PRIORITY: Final = "PreemptLowerPriority"
_GROUP_NOUNS: Final = {"podgroups": "pod group", "compositepodgroups": "composite pod group"}
_NO_CLASS: Final[Mapping[str, Any]] = {"value": 0, "preemptionPolicy": _PREEMPT_LOWER_PRIORITY}

_SYSTEM: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_SYSTEM_PURPOSE: Final = {
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, but can be moved to another "
        "node if necessary."
    ),
    "system-node-critical": (
        "Used for system critical pods that must not be moved from their current node."
    ),
}


def system_priority_classes() -> list[Document]:
    """Return the PriorityClasses of every cluster."""
    return [
        {
            "metadata": {"name": name},
            "value": value,
            "description": _SYSTEM_PURPOSE[name],
            "preemptionPolicy": _PREEMPT_LOWER_PRIORITY,
        }
        for name, value in _SYSTEM.items()
    ]


def admit_pod(objects: ObjectReader, kind: ResourceInfo, document: Document) -> None:
    """Set class, priority and preemption policy of a new pod; raise StatusError (403)."""
    spec = document.setdefault("spec", {})
    found = _class_of(objects, kind, document)
    if name := (found.get("metadata") or {}).get("name"):
        spec["priorityClassName"] = name
    _set_or_reject(kind, document, "priority", "integer value of priority", found.get("value", 0))
    policy = found.get("preemptionPolicy")
    if policy is not None:
        _set_or_reject(
            kind, document, "preemptionPolicy", "string value of PreemptionPolicy", policy
        )


def admit_pod_group(objects: ObjectReader, kind: ResourceInfo, document: Document) -> None:
    """Set class and priority of a new group of pods; raise StatusError (403, 422)."""
    spec = document.setdefault("spec", {})
    found = _class_of(objects, kind, document)
    priority, noun = found.get("value", 0), _GROUP_NOUNS[kind.plural]
    if spec.get("priority") not in (None, priority):
        raise forbidden(
            kind,
            _object_name(document),
            f"priority set in the {noun} ({spec['priority']}) must match the priority computed "
            f"({priority}) based on the priority class set in the spec",
        )
    if name := (found.get("metadata") or {}).get("name"):
        spec["priorityClassName"] = name
    spec["priority"] = priority
    if kind.plural == "podgroups" and spec.get("parentCompositePodGroupName"):
        _check_workload_of_child(kind, document)


def _check_workload_of_child(kind: ResourceInfo, document: Document) -> None:
    if document["spec"].get("workloadRef") is None:
        cause = required("spec.workloadRef", "must be set when parentCompositePodGroupName is set")
        raise invalid(kind.qualified_kind, _object_name(document), [cause])


def keep_pod_priority(
    _objects: ObjectReader, _kind: ResourceInfo, document: Document, old: Mapping[str, Any]
) -> None:
    """Keep the fields that admission has set, if an update omits them."""
    before = old.get("spec") or {}
    for name in ("priority", "preemptionPolicy"):
        spec = document.setdefault("spec", {})
        if spec.get(name) is None and before.get(name) is not None:
            spec[name] = before[name]


def admit_priority_class(objects: ObjectReader, kind: ResourceInfo, document: Document) -> None:
    """Raise StatusError (403) for a second global default."""
    _admit_default(objects, kind, document, "")


def check_priority_class(_objects: ObjectReader, kind: ResourceInfo, document: Document) -> None:
    """Raise StatusError (422) for values and names that are reserved for the system."""
    name, value = document["metadata"].get("name", ""), document.get("value", 0)
    causes = []
    if name.startswith("system-"):
        if _SYSTEM.get(name) != value:
            detail = (
                "priority class names with 'system-' prefix are reserved for system use only. "
                f"error: {name} is not a known system priority class"
            )
            causes.append(Cause("FieldValueForbidden", f"Forbidden: {detail}", "metadata.name"))
    elif isinstance(value, int) and value > HIGHEST_USER_PRIORITY:
        detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        causes.append(Cause("FieldValueForbidden", f"Forbidden: {detail}", "value"))
    if causes:
        raise invalid(kind.qualified_kind, name, causes)


def check_priority_class_update(
    objects: ObjectReader, kind: ResourceInfo, document: Document, old: Mapping[str, Any]
) -> None:
    """Raise StatusError for a new value or policy (422), or a second global default (403)."""
    name = old["metadata"]["name"]
    _admit_default(objects, kind, document, name)
    causes = []
    if document.get("value", 0) != old.get("value", 0):
        detail = "Forbidden: may not be changed in an update."
        causes.append(Cause("FieldValueForbidden", detail, "value"))
    policy = document.get("preemptionPolicy", _PREEMPT_LOWER_PRIORITY)
    if policy != old.get("preemptionPolicy", _PREEMPT_LOWER_PRIORITY):
        message = f'Invalid value: "{policy}": field is immutable'
        causes.append(Cause("FieldValueInvalid", message, "preemptionPolicy"))
    if causes:
        raise invalid(kind.qualified_kind, name, causes)


def _class_of(objects: ObjectReader, kind: ResourceInfo, document: Document) -> Mapping[str, Any]:
    name = document["spec"].get("priorityClassName")
    if not name:
        return _default_class(objects) or _NO_CLASS
    entry = objects.get(PRIORITY_CLASSES, str(name))
    if entry is None:
        raise forbidden(
            kind, _object_name(document), f"no PriorityClass with name {name} was found"
        )
    return entry.document()


def _default_class(objects: ObjectReader) -> Document | None:
    """Return the global default; of several (by loading) the one with the lowest value."""
    marked = [e for e in objects.entries(PRIORITY_CLASSES) if b'"globalDefault":true' in e.raw]
    defaults = [d for entry in marked if (d := entry.document()).get("globalDefault") is True]
    return min(defaults, key=lambda document: int(document.get("value", 0)), default=None)


def _set_or_reject(
    kind: ResourceInfo, document: Document, name: str, called: str, value: Any
) -> None:
    spec = document["spec"]
    present = spec.get(name)
    if present is not None and present != value:
        raise forbidden(
            kind,
            _object_name(document),
            f"the {called} ({present}) must not be provided in pod spec; priority admission "
            f"controller computed {value} from the given PriorityClass name",
        )
    spec[name] = value


def _admit_default(
    objects: ObjectReader, kind: ResourceInfo, document: Document, itself: str
) -> None:
    if document.get("globalDefault") is not True:
        return
    present = _default_class(objects)
    name = present["metadata"]["name"] if present else itself
    if name != itself:
        detail = f"PriorityClass {name} is already marked as default. Only one default can exist"
        raise forbidden(kind, _object_name(document), detail)


def _object_name(document: Mapping[str, Any]) -> str:
    metadata = document["metadata"]
    return str(metadata.get("name") or metadata.get("generateName", ""))
