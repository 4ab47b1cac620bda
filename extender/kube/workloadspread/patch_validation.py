"""Validation of the patches of a WorkloadSpread's subsets against the pod template of its workload.

``explain`` and the webhook use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from extender.kube.patches.strategic_merge_patch import PatchError
from extender.kube.workloadspread.pod_injection import strategic_merge_pod
from extender.kube.workloadspread.spreads import StoredWorkloadSpread
from policies.workloadspread.placement_validation import INVALID, FieldValidationError
from policies.workloadspread.validation import PatchValidation
from policies.workloadspread.workloads import TargetWorkload

Document = Mapping[str, Any]

PodSpecValidation = Callable[[Document], Iterable[tuple[str, str, str]]]
"""Validates the spec of a pod; yields the field without ``spec.``, error type, and detail."""


def patch_errors(
    written: StoredWorkloadSpread, workload: TargetWorkload | None, validate_pod: PodSpecValidation
) -> PatchValidation | None:
    """Return the validation of patches on the pod template of ``workload``; None without it.

    The workload is that of :func:`~policies.workloadspread.validation.template_holder`.
    """
    if workload is None:
        return None
    template = pod_template(workload.document)

    def check(index: int, path: str) -> Iterator[FieldValidationError]:
        try:
            pod = strategic_merge_pod(template, written.document["spec"]["subsets"][index]["patch"])
        except PatchError as error:
            yield FieldValidationError(path, INVALID, f"failed to merge patch: {error}")
            return
        for field, sort, rule in validate_pod(pod):
            yield FieldValidationError(f"{path}.{field}" if field else path, sort, rule)

    return check


def pod_template(workload: Document) -> Document:
    """Return the pod template, with a volume for each entry of volumeClaimTemplates."""
    spec = workload.get("spec") or {}
    template = spec.get("template") or {}
    claims = [each.get("metadata") or {} for each in spec.get("volumeClaimTemplates") or ()]
    names = [claim.get("name") for claim in claims]
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    pod = template.get("spec") or {}
    if not volumes:
        return {**template, "spec": pod}
    return {**template, "spec": {**pod, "volumes": [*(pod.get("volumes") or ()), *volumes]}}
