"""What WorkloadSpreads leave in objects: the subset of a pod, and how many are on their way.

A pod says by an annotation into which subset it was put, and perhaps as what it was written down
before it had a name; that id is of one world only. So are the keys of a status's ``creatingPods``
and ``deletingPods``: two such maps are alike if they are as long.

Source: openkruise/kruise pkg/util/workloadspread, apis/apps/v1beta1/workloadspread_types.go.
"""

from __future__ import annotations

from typing import Any, Final

from extender.kube.workloadspread.pods import MATCHED, read_injection
from fakeapi.replaying.objects import Document, read_field

SPREADING: Final = "workloadspread"
"""The part that spreads, and the hand by which pods go that could not be scheduled."""
SPREADS: Final = "workloadspreads.apps.kruise.io"
DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"

_IN_FLIGHT: Final = ("creatingPods", "deletingPods")


def annotation_of(pod: Document) -> str:
    """Return what a pod says of its subset, as it is written; "" if it says nothing."""
    return str((pod["metadata"].get("annotations") or {}).get(MATCHED) or "")


def subset_of(pod: Document) -> str:
    """Return ``workloadspread/subset``, "" if a pod is in none."""
    found = read_injection(annotation_of(pod))
    return "" if found is None else f"{found.spread}/{found.subset}"


def spread_of(pod: Document) -> str:
    """Return ``namespace/name`` of the WorkloadSpread that a pod is in a subset of, or ""."""
    found = read_injection(annotation_of(pod))
    return "" if found is None else f"{pod['metadata'].get('namespace')}/{found.spread}"


def is_expected(spread: Document, pod: Document) -> bool:
    """Return whether a WorkloadSpread has a pod noted as one that is on its way."""
    given = read_injection(annotation_of(pod))
    status = spread.get("status") or {}
    lists = [status.get("subsetStatuses"), *(status.get("versionedSubsetStatuses") or {}).values()]
    noted = given.uid or pod["metadata"]["name"] if given else ""
    return any(noted in (e.get("creatingPods") or ()) for entries in lists for e in entries or ())


def with_subset(pod: Document, annotation: str) -> Document:
    """Return a pod that says so of its subset; "": that says nothing."""
    metadata = pod["metadata"]
    left = {k: v for k, v in (metadata.get("annotations") or {}).items() if k != MATCHED}
    written = {**left, **({MATCHED: annotation} if annotation else {})}
    bare = {key: value for key, value in metadata.items() if key != "annotations"}
    return {**pod, "metadata": {**bare, **({"annotations": written} if written else {})}}


def critical_seconds(spread: Document, pod: Document) -> int | None:
    """Return how long a pod may wait to be scheduled; None if for good, as in the last subset."""
    if read_field(spread, ("spec", "scheduleStrategy", "type")) != "Adaptive":
        return None
    subsets = [each.get("name") for each in read_field(spread, ("spec", "subsets")) or ()]
    given = read_injection(annotation_of(pod))
    if given is None or given.subset not in subsets[:-1]:
        return None
    path = ("spec", "scheduleStrategy", "adaptive", "rescheduleCriticalSeconds")
    found = read_field(spread, path)
    return found if isinstance(found, int) and found > 0 else None


def comparable(document: Document) -> Document:
    """Return an object without what is of one world only."""
    if document.get("kind") == "Pod" and annotation_of(document):
        return with_subset(document, subset_of(document))
    status = document.get("status")
    if document.get("kind") == "WorkloadSpread" and isinstance(status, dict):
        return {**document, "status": _counted(status)}
    return document


def _counted(value: Any) -> Any:
    """Return a status with numbers in place of those on their way."""
    if isinstance(value, list):
        return [_counted(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: len(each) if key in _IN_FLIGHT and isinstance(each, dict) else _counted(each)
        for key, each in value.items()
        if each or key not in _IN_FLIGHT
    }
