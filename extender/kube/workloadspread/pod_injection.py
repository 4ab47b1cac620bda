"""Subset injection: the admission of a pod to a WorkloadSpread, and the mutated pod.

A new pod is injected with all of a subset, an existing one with metadata only. The pod webhook does
this between decoding a request and encoding the response, and ``explain spread --pod`` shows the
result. Scheduling is simulated with the pod as it would be in the subset, by the filters that
kube-scheduler runs.

A pod may have any fields, so these functions work on JSON. They do not modify their arguments;
unchanged values may be shared with the result. A subset's patch is a strategic merge patch.

Sources: openkruise/kruise pkg/util/workloadspread/workloadspread.go (mutatingPod,
injectWorkloadSpreadIntoPod), and pkg/controller/workloadspread (patchFavoriteSubsetMetadataToPod,
podPreferredScore).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from extender.kube.decoders.pods import decode_undefaulted_pod
from extender.kube.decoders.typed_decoder import ObjectError
from extender.kube.patches.strategic_merge_patch import PatchError, strategic_merge
from extender.kube.workloadspread.spread_pods import MATCHED_WORKLOADSPREAD, write_injection
from extender.kube.workloadspread.spreads import StoredWorkloadSpread
from extender.kube.workloadspread.types import without_empty
from policies import decide_filter
from policies.kubernetes.snapshot import Snapshot
from policies.preemption.fit_error import fit_error
from policies.preemption.policy import SchedulerRules
from policies.replicaset import DELETION_COST
from policies.workloadspread.model import SpreadPod, Subset, SubsetInjection, WorkloadSpread
from policies.workloadspread.pod_admission import (
    AdmissionContext,
    IdGenerator,
    PodAdmission,
    admit_creation,
    admit_placement,
)
from policies.workloadspread.subset_selection import Simulate

_CONTAINER: Final = {
    "": "name",
    ".env": "name",
    ".ports": "containerPort",
    ".volumeDevices": "devicePath",
    ".volumeMounts": "mountPath",
}
_CONTAINERS: Final = ("containers", "ephemeralContainers", "initContainers")
_CLAIM: Final = ".spec.volumes.ephemeral.volumeClaimTemplate"

MERGE_KEYS: Final[Mapping[str, str]] = {
    **{f"{part}.metadata.finalizers": "" for part in ("", _CLAIM)},
    **{f"{part}.metadata.ownerReferences": "uid" for part in ("", _CLAIM)},
    **{f".spec.{each}{part}": key for each in _CONTAINERS for part, key in _CONTAINER.items()},
    ".spec.evictionResponders": "name",
    ".spec.hostAliases": "ip",
    ".spec.imagePullSecrets": "name",
    ".spec.resourceClaims": "name",
    ".spec.schedulingGates": "name",
    ".spec.topologySpreadConstraints": "topologyKey",
    ".spec.volumes": "name",
}
"""The merge key of each list of a pod, by path; "" for lists of scalars.

Source: the ``patchStrategy`` and ``patchMergeKey`` tags of k8s.io/api/core/v1/types.go and
apimachinery's meta/v1/types.go, v1.37. A patch of a pod's status has no effect anyway.
"""

Document = Mapping[str, Any]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class _PodPatchSchema:
    """A patch schema whose nodes are paths."""

    def child(self, shape: str, key: str) -> str:
        return f"{shape}.{key}"

    def element(self, shape: str) -> str:
        return shape

    def merge_key(self, shape: str) -> str | None:
        return MERGE_KEYS.get(shape)

    def replaces(self, shape: str, key: str) -> bool:  # noqa: ARG002 - no map of a pod is replaced
        return False


_POD_PATCH_SCHEMA: Final = _PodPatchSchema()


def strategic_merge_pod(pod: Mapping[str, Any], patch: object) -> dict[str, Any]:
    """Return a pod, or a pod template, with a patch merged in. Raise PatchError."""
    if not isinstance(patch, Mapping):
        raise PatchError("invalid JSON document")
    return strategic_merge(_POD_PATCH_SCHEMA, "", pod, patch)


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
        requirements = [*(term.get(name) or ()), *(required.get(name) or ())]
        if requirements:
            both[name] = requirements
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


@dataclass(frozen=True, slots=True)
class InjectionResult:
    """The admission of a pod, and the pod, which is changed only if a subset is injected.

    A pod into which its subset cannot be injected is refused, but its admission is still written.
    """

    admission: PodAdmission
    pod: Document


@dataclass(frozen=True, slots=True)
class SchedulingSimulation:
    """The cluster on which the scheduling of pods is simulated, and the rules of it."""

    snapshot: Snapshot
    rules: SchedulerRules


def inject_new_pod(
    pod: SpreadPod,
    document: Document,
    spreads: Iterable[StoredWorkloadSpread],
    context: AdmissionContext,
    new_id: IdGenerator,
    simulation: SchedulingSimulation | None,
) -> InjectionResult:
    """Return the result for a new pod; ``spreads`` are those of its namespace.

    Without ``simulation``, scheduling is not simulated.
    """
    by_name = {each.spread.name: each for each in spreads}
    simulate = _subset_simulator(document, by_name, simulation)
    values = [each.spread for each in by_name.values()]
    admission = admit_creation(pod, values, context, new_id, simulate)
    if admission.spread is None:
        return InjectionResult(admission, document)
    return _inject_subset(admission, document, by_name[admission.spread])


def inject_placed_pod(
    pod: SpreadPod,
    document: Document,
    written: StoredWorkloadSpread,
    context: AdmissionContext,
    new_id: IdGenerator,
    simulation: SchedulingSimulation | None,
) -> InjectionResult:
    """Return the result for a new pod of a known WorkloadSpread; repeated with newer versions."""
    simulate = _subset_simulator(document, {written.spread.name: written}, simulation)
    admission = admit_placement(pod, written.spread, context, new_id, simulate)
    return _inject_subset(admission, document, written)


def simulated_fit_error(document: Document, simulation: SchedulingSimulation) -> str:
    """Return the fit error of a pod, "" if it fits some node.

    The result is also "" if no node is known, or if the pod cannot be decoded.
    """
    metadata = {**(document.get("metadata") or {}), "name": "trial"}
    try:
        pod = decode_undefaulted_pod(
            msgspec.json.encode({**document, "metadata": metadata}), simulation.rules.release
        )
    except ObjectError:
        return ""
    decision = decide_filter(pod, simulation.snapshot, simulation.rules)
    if decision.feasible or not simulation.snapshot.nodes:
        return ""
    rejected, release = decision.rejected, simulation.rules.release
    reasons = Counter(each for status in rejected.values() for each in status.reasons)
    message = fit_error(len(rejected), decision.conflict, reasons, release)
    return f"The pod fits no node: {message}"


def _inject_subset(
    admission: PodAdmission, document: Document, written: StoredWorkloadSpread
) -> InjectionResult:
    if admission.subset is None:
        return InjectionResult(admission, document)
    try:
        injected = inject(document, written, admission.subset, admission.uid)
    except PatchError as error:
        return InjectionResult(replace(admission, error=str(error)), document)
    return InjectionResult(admission, injected)


def _subset_simulator(
    document: Document,
    spreads: Mapping[str, StoredWorkloadSpread],
    simulation: SchedulingSimulation | None,
) -> Simulate | None:
    if simulation is None:
        return None

    def simulate(spread: WorkloadSpread, subset: Subset) -> str:
        try:
            injected = inject(document, spreads[spread.name], subset.name)
        except PatchError:
            return ""  # reported when the subset is injected
        return simulated_fit_error(injected, simulation)

    return simulate
