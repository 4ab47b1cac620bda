"""Fields of WorkloadSpread: the subset of a pod, and the pods in flight in a status.

An annotation of a pod contains its subset, and possibly the id under which it was counted before it
had a name. The id is valid in one world only, and so are the keys of a status's ``creatingPods``
and ``deletingPods``: two such maps are compared by their lengths.

Source: openkruise/kruise pkg/util/workloadspread, apis/apps/v1beta1/workloadspread_types.go.
"""

from __future__ import annotations

from typing import Any, Final

from extender.kube.workloadspread.pods import MATCHED_WORKLOADSPREAD, read_injection
from fakeapi.replaying.objects import Document, read_field

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
    given = read_injection(subset_annotation(pod))
    status = spread.get("status") or {}
    lists = [status.get("subsetStatuses"), *(status.get("versionedSubsetStatuses") or {}).values()]
    noted = given.uid or pod["metadata"]["name"] if given else ""
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
    given = read_injection(subset_annotation(pod))
    if given is None or given.subset not in subsets[:-1]:
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
