"""Access to the fields of an object of any kind, and to those of WorkloadSpread.

An annotation of a pod contains its subset, and possibly the id under which it was counted before it
had a name. The id is valid in one world only, and so are the keys of a status's ``creatingPods``
and ``deletingPods``: two such maps are compared by their lengths.

Source: openkruise/kruise pkg/util/workloadspread, apis/apps/v1beta1/workloadspread_types.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from extender.kube.workloadspread.spread_pods import MATCHED_WORKLOADSPREAD, read_injection

Document: TypeAlias = dict[str, Any]
"""One API object as parsed JSON."""
ObjectLocation: TypeAlias = tuple[str, str]
"""A resource's name, and ``namespace/name`` or the name alone."""
FieldPath: TypeAlias = tuple[str, ...]
"""Keys; ``key=value`` is the list element with this value, as in ``type=Ready``."""

_FINISHED = ("Succeeded", "Failed")


def key_of(document: Document) -> str:
    """Return ``namespace/name``, or the name alone."""
    metadata = document["metadata"]
    return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))


def uid_of(document: Document) -> str:
    """Return the UID, "" if there is none."""
    return str(document["metadata"].get("uid", ""))


def is_deleting(document: Document) -> bool:
    """Return whether an object has a deletion timestamp."""
    return bool(document["metadata"].get("deletionTimestamp"))


def is_active(document: Document) -> bool:
    """Return whether a pod counts for its controller: neither being deleted nor finished."""
    phase = read_field(document, ("status", "phase"))
    return not is_deleting(document) and phase not in _FINISHED


def owners_of(document: Document) -> Sequence[Document]:
    """Return the references to owners."""
    return document["metadata"].get("ownerReferences") or ()


def controller_of(document: Document) -> Document | None:
    """Return the reference to the controlling owner."""
    return next((owner for owner in owners_of(document) if owner.get("controller")), None)


def read_field(document: Document, path: FieldPath) -> Any:
    """Return the value at a path, or None."""
    value: Any = document
    for step in path:
        if isinstance(value, list):
            value = _element(value, step)
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def copy_field(path: FieldPath, origin: Document, into: Document) -> None:
    """Copy a field from one object to another; an absent field is removed."""
    *way, last = path
    value = read_field(origin, path)
    parent: Any = into
    for step in way:
        if not isinstance(parent.get(step), dict | list):
            if value is None:
                return
            parent[step] = [] if "=" in last and step == way[-1] else {}
        parent = parent[step]
    if isinstance(parent, list):
        _put(parent, last, value)
    elif value is None:
        parent.pop(last, None)
    else:
        parent[last] = value


def drop_empty_metadata_maps(document: Document) -> None:
    """Remove empty labels and annotations from an object."""
    metadata = document["metadata"]
    for name in ("labels", "annotations"):
        if name in metadata and not metadata[name]:
            del metadata[name]


def with_changes(there: Document, before: Document, after: Document) -> Document:
    """Return ``there`` with the changes from ``before`` to ``after``; lists are replaced."""
    changed = dict(there)
    for key in dict.fromkeys((*before, *after)):
        was, now, here = before.get(key), after.get(key), there.get(key)
        if was == now:
            continue
        if isinstance(now, dict) and isinstance(here, dict):
            changed[key] = with_changes(here, was if isinstance(was, dict) else {}, now)
        elif key in after:
            changed[key] = now
        else:
            changed.pop(key, None)
    return changed


def _element(elements: list[Any], step: str) -> Any:
    key, _, expected = step.partition("=")
    objects = (each for each in elements if isinstance(each, dict))
    return next((each for each in objects if each.get(key) == expected), None)


def _put(elements: list[Any], step: str, value: Any) -> None:
    """Replace the element of a step or of the same type, or append it; None removes it."""
    there = _element(elements, step)
    if there is None and isinstance(value, dict):
        there = _element(elements, f"type={value.get('type')}")
    if there is None:
        elements += [] if value is None else [value]
    elif value is None:
        elements.remove(there)
    else:
        elements[elements.index(there)] = value


SPREADING: Final = "workloadspread"
"""The component's name, and the cause of the deletion of pods that could not be scheduled."""
SPREADS: Final = "workloadspreads.apps.kruise.io"
DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"

_IN_FLIGHT: Final = ("creatingPods", "deletingPods")


def subset_annotation(pod: Document) -> str:
    """Return a pod's subset annotation; "" if it has none."""
    return str((pod["metadata"].get("annotations") or {}).get(MATCHED_WORKLOADSPREAD) or "")


def subset_of(pod: Document) -> str:
    """Return ``workloadspread/subset`` of a pod; "" if it is in none."""
    found = read_injection(subset_annotation(pod))
    return "" if found is None else f"{found.spread}/{found.subset}"


def spread_of(pod: Document) -> str:
    """Return ``namespace/name`` of the WorkloadSpread of a pod's subset, or ""."""
    found = read_injection(subset_annotation(pod))
    return "" if found is None else f"{pod['metadata'].get('namespace')}/{found.spread}"


def is_expected(spread: Document, pod: Document) -> bool:
    """Return whether a WorkloadSpread's ``creatingPods`` contain a pod."""
    injection = read_injection(subset_annotation(pod))
    status = spread.get("status") or {}
    lists = [status.get("subsetStatuses"), *(status.get("versionedSubsetStatuses") or {}).values()]
    noted = injection.uid or pod["metadata"]["name"] if injection else ""
    return any(noted in (e.get("creatingPods") or ()) for entries in lists for e in entries or ())


def with_subset(pod: Document, annotation: str) -> Document:
    """Return a pod with this subset annotation; "" removes the annotation."""
    metadata = pod["metadata"]
    left = {
        k: v for k, v in (metadata.get("annotations") or {}).items() if k != MATCHED_WORKLOADSPREAD
    }
    written = {**left, **({MATCHED_WORKLOADSPREAD: annotation} if annotation else {})}
    bare = {key: value for key, value in metadata.items() if key != "annotations"}
    return {**pod, "metadata": {**bare, **({"annotations": written} if written else {})}}


def unschedulable_limit_seconds(spread: Document, pod: Document) -> int | None:
    """Return for how many seconds a pod may be unschedulable; None: no limit (last subset)."""
    if read_field(spread, ("spec", "scheduleStrategy", "type")) != "Adaptive":
        return None
    subsets = [each.get("name") for each in read_field(spread, ("spec", "subsets")) or ()]
    injection = read_injection(subset_annotation(pod))
    if injection is None or injection.subset not in subsets[:-1]:
        return None
    path = ("spec", "scheduleStrategy", "adaptive", "rescheduleCriticalSeconds")
    found = read_field(spread, path)
    return found if isinstance(found, int) and found > 0 else None


def comparable(document: Document) -> Document:
    """Return an object without the values that are valid in one world only."""
    if document.get("kind") == "Pod" and subset_annotation(document):
        return with_subset(document, subset_of(document))
    status = document.get("status")
    if document.get("kind") == "WorkloadSpread" and isinstance(status, dict):
        return {**document, "status": _counted(status)}
    return document


def _counted(value: Any) -> Any:
    """Return a status with the numbers of pods in flight in place of the pods."""
    if isinstance(value, list):
        return [_counted(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: len(each) if key in _IN_FLIGHT and isinstance(each, dict) else _counted(each)
        for key, each in value.items()
        if each or key not in _IN_FLIGHT
    }
