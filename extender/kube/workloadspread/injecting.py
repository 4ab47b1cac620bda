"""Subset injection into pods: all of it into new pods, only metadata into existing ones.

A pod may have any fields, so these functions work on JSON. They do not modify their arguments;
unchanged values may be shared with the result.

Sources: openkruise/kruise pkg/util/workloadspread/workloadspread.go (injectWorkloadSpreadIntoPod),
and pkg/controller/workloadspread (patchFavoriteSubsetMetadataToPod, podPreferredScore).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from extender.kube.strategic import PatchError
from extender.kube.workloadspread.podpatch import strategic_merge_pod
from extender.kube.workloadspread.pods import MATCHED_WORKLOADSPREAD, write_injection
from extender.kube.workloadspread.reading import without_empty
from extender.kube.workloadspread.spreads import StoredWorkloadSpread
from policies.scaledown import DELETION_COST
from policies.spreading.model import SubsetInjection

Document = Mapping[str, Any]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def inject(
    pod: Document, spread: StoredWorkloadSpread, subset: str, uid: str = ""
) -> dict[str, Any]:
    """Return a new pod as a member of a subset: tolerations, affinity, patch and annotation.

    ``uid`` is the key under which a pod without a name is recorded. Raise PatchError.
    """
    written = spread.subset(subset)
    injected = {**pod, "spec": _placed(pod.get("spec") or {}, written)}
    if written.get("patch") is not None:
        injected = _patched(injected, written["patch"])
    annotation = write_injection(SubsetInjection(spread.spread.name, subset, uid))
    return _annotated(injected, {MATCHED_WORKLOADSPREAD: annotation})


def adoption_patch(spread: StoredWorkloadSpread, subset: str) -> dict[str, Any]:
    """Return the strategic merge patch for an existing pod that is assigned to a subset.

    It has the annotation and, unless the WorkloadSpread disables it, the metadata of the subset's
    patch.
    """
    patch = spread.subset(subset).get("patch")
    metadata: Document = {}
    if isinstance(patch, Mapping) and not spread.spread.ignores_patch_metadata:
        found = patch.get("metadata")
        metadata = found if isinstance(found, Mapping) else {}
    annotation = write_injection(SubsetInjection(spread.spread.name, subset))
    return _annotated({"metadata": metadata}, {MATCHED_WORKLOADSPREAD: annotation})


def cost_patch(cost: str) -> dict[str, Any]:
    """Return the strategic merge patch that sets a pod's deletion cost."""
    return with_cost({}, cost)


def with_cost(pod: Document, cost: str) -> dict[str, Any]:
    """Return a pod with a deletion cost."""
    return _annotated(pod, {DELETION_COST: cost})


def is_as_patched(pod: Document, subset: Document) -> bool:
    """Return whether a subset's patch would change nothing in a pod except annotations."""
    try:
        patched = strategic_merge_pod(pod, subset.get("patch"))
    except PatchError:
        return False
    return _without_annotations(patched) == _without_annotations(pod)


def _placed(spec: Document, subset: Document) -> dict[str, Any]:
    """Return a pod's spec with a subset's tolerations and affinity."""
    placed = dict(spec)
    tolerations = subset.get("tolerations") or []
    if tolerations:
        placed["tolerations"] = [*(spec.get("tolerations") or ()), *tolerations]
    affinity = spec.get("affinity") or {}
    of_nodes = dict(affinity.get("nodeAffinity") or {})
    preferred = subset.get("preferredNodeSelector") or []
    if preferred:
        of_nodes[_PREFERRED] = [*(of_nodes.get(_PREFERRED) or ()), *preferred]
    required = subset.get("requiredNodeSelector")
    if required is not None:
        of_nodes[_REQUIRED] = _narrowed(of_nodes.get(_REQUIRED) or {}, required)
    return {**placed, "affinity": {**affinity, "nodeAffinity": of_nodes}}


def _narrowed(selector: Document, required: Document) -> dict[str, Any]:
    """Return a node selector whose terms require ``required`` in addition."""
    terms = selector.get("nodeSelectorTerms") or []
    narrowed = [_both(term, required) for term in terms] or [dict(required)]
    return {**selector, "nodeSelectorTerms": narrowed}


def _both(term: Document, required: Document) -> dict[str, Any]:
    both = dict(term)
    for name in ("matchExpressions", "matchFields"):
        asked = [*(term.get(name) or ()), *(required.get(name) or ())]
        if asked:
            both[name] = asked
    return both


def _patched(pod: Document, patch: object) -> dict[str, Any]:
    """Return a pod with a subset's patch; its priority is removed if the priority class changes.

    The API server set the priority before, and sets it again for a pod without one.
    """
    patched = strategic_merge_pod(pod, patch)
    spec = patched.get("spec") or {}
    if (spec.get("priorityClassName") or "") != (pod["spec"].get("priorityClassName") or ""):
        spec = {name: value for name, value in spec.items() if name != "priority"}
        return {**patched, "spec": spec}
    return patched


def _annotated(document: Document, annotations: Mapping[str, str]) -> dict[str, Any]:
    metadata = document.get("metadata") or {}
    present = metadata.get("annotations") or {}
    return {**document, "metadata": {**metadata, "annotations": {**present, **annotations}}}


def _without_annotations(pod: Document) -> object:
    metadata = {**(pod.get("metadata") or {}), "annotations": None}
    return without_empty({**pod, "metadata": metadata})
