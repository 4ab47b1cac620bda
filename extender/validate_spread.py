"""Validation of a WorkloadSpread as the webhook does it, against a cluster from files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypedDict

from extender.kube.manifests import ManifestError, read_manifests
from extender.kube.strategic import PatchError
from extender.kube.workloadspread.podpatch import strategic_merge_pod
from extender.kube.workloadspread.spreads import StoredWorkloadSpread
from extender.spreadfiles import WorkloadSpreadFiles, decode_spread_manifest
from policies.spreading.placement_rules import INVALID, FieldValidationError
from policies.spreading.quirks import Quirks
from policies.spreading.validation import PatchValidation, template_holder, validate
from policies.spreading.workloads import TargetWorkload

Document = Mapping[str, Any]

PodSpecValidation = Callable[[Document], Iterable[tuple[str, str, str]]]
"""Validates the spec of a pod; yields the field without ``spec.``, error type, and detail."""


class FieldErrorDocument(TypedDict):
    """A validation error, in upstream's wording."""

    field: str
    message: str


class ValidationDocument(TypedDict):
    """The output of ``validate workloadspread -o json``."""

    valid: bool
    errors: list[FieldErrorDocument]


def load_spread(path: str) -> StoredWorkloadSpread:
    """Return the only WorkloadSpread of a file. Raise ManifestError, SpreadFileError."""
    found = [each for each in read_manifests(path) if each.kind == "WorkloadSpread"]
    if len(found) != 1:
        raise ManifestError(f"{path}: holds {len(found)} WorkloadSpreads; expected exactly one")
    return decode_spread_manifest(found[0])


def spread_errors(
    written: StoredWorkloadSpread,
    files: WorkloadSpreadFiles,
    quirks: Quirks,
    validate_pod: PodSpecValidation,
) -> tuple[FieldValidationError, ...]:
    """Return the validation errors of a WorkloadSpread.

    It is validated as an update if the cluster has a WorkloadSpread of its name.
    """
    spread = written.spread
    others = [each.spread for each in files.spreads_of(spread.namespace)]
    old = next((each for each in others if each.name == spread.name), None)
    holder = template_holder(spread, quirks)
    workload = None if holder is None else files.workload(holder, spread.namespace)
    patches = patch_errors(written, workload, validate_pod)
    return validate(spread, others, files.whitelist, patches, old)


def validation_document(field_errors: Iterable[FieldValidationError]) -> ValidationDocument:
    """Return the JSON document of a validation."""
    errors: list[FieldErrorDocument] = [
        {"field": fault.field, "message": fault.detail} for fault in field_errors
    ]
    return {"valid": not errors, "errors": errors}


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
