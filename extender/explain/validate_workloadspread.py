"""Validation of a WorkloadSpread as the webhook does it, against a cluster from files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

from extender.explain.workloadspread_files import WorkloadSpreadFiles, decode_spread_manifest
from extender.kube.decoders.manifests import ManifestError, read_manifests
from extender.kube.workloadspread.patch_validation import PodSpecValidation, patch_errors
from extender.kube.workloadspread.spreads import StoredWorkloadSpread
from policies.workloadspread.placement_validation import FieldValidationError
from policies.workloadspread.quirks import Quirks
from policies.workloadspread.validation import template_holder, validate


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
        {"field": each.field, "message": each.detail} for each in field_errors
    ]
    return {"valid": not errors, "errors": errors}
