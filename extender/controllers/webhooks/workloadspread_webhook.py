"""The webhooks of WorkloadSpreads: validation of those that are created or updated, and conversion.

Sources: openkruise/kruise pkg/webhook/workloadspread/validating and
apis/apps/v1alpha1/workloadspread_conversion.go; controller-runtime's pkg/webhook/conversion.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from extender.controllers.webhooks.admission_review import (
    ALLOWED,
    BAD_REQUEST,
    AdmissionRequest,
    AdmissionResponse,
    ReviewError,
    denied,
)
from extender.controllers.webhooks.cluster_state import CachesNotSyncedError, WebhookCaches
from extender.controllers.workloadspread.controller_finder import WorkloadReadError
from extender.controllers.workloadspread.spread_cache import WORKLOAD_SPREADS
from extender.kube.decoders.typed_decoder import ObjectError, with_field_path
from extender.kube.workloadspread.patch_validation import PodSpecValidation, patch_errors
from extender.kube.workloadspread.spreads import StoredWorkloadSpread, decode_workloadspread
from extender.kube.workloadspread.version_conversion import UnknownVersionError, convert
from policies.workloadspread.object_references import ObjectKey, WorkloadReference
from policies.workloadspread.placement_validation import FieldValidationError
from policies.workloadspread.quirks import Quirks
from policies.workloadspread.validation import template_holder, validate
from policies.workloadspread.workloads import TargetWorkload


class WorkloadSpreadWebhook:
    """Answers reviews of WorkloadSpreads; ``check_pod`` validates patched pods."""

    def __init__(self, caches: WebhookCaches, check_pod: PodSpecValidation, quirks: Quirks) -> None:
        self._caches = caches
        self._check_pod = check_pod
        self._quirks = quirks

    async def validate(self, request: AdmissionRequest) -> AdmissionResponse:
        """Answer the review of a WorkloadSpread that is created or updated."""
        if request.resource.resource != WORKLOAD_SPREADS.plural or request.sub_resource:
            return ALLOWED
        if request.operation not in ("CREATE", "UPDATE"):
            return ALLOWED
        try:
            await self._caches.wait_synced()
            written = decode_workloadspread(bytes(request.object))
            old = None
            if request.operation == "UPDATE":
                old = decode_workloadspread(bytes(request.old_object))
            errors = await self._validation_errors(written, old)
        except (CachesNotSyncedError, ObjectError, WorkloadReadError) as error:
            return denied(BAD_REQUEST, str(error))
        return denied(BAD_REQUEST, aggregate_errors(errors)) if errors else ALLOWED

    async def _validation_errors(
        self, written: StoredWorkloadSpread, old: StoredWorkloadSpread | None
    ) -> tuple[FieldValidationError, ...]:
        spread = written.spread
        others = [each.spread for each in self._caches.spreads.index.of_namespace(spread.namespace)]
        return validate(
            spread,
            others,
            self._caches.configuration.allowed_kinds,
            patch_errors(written, await self._template_holder(written), self._check_pod),
            None if old is None else old.spread,
        )

    async def _template_holder(self, written: StoredWorkloadSpread) -> TargetWorkload | None:
        """Return the object whose pod template is patched; raises WorkloadReadError."""
        target = written.spread.target
        holder = template_holder(written.spread, self._quirks)
        patched = any(subset.patched for subset in written.spread.subsets)
        if target is None or holder is None or not patched:
            return None
        reference = _reference(holder, target)
        return await self._caches.workloads.get(reference, written.spread.namespace)


def aggregate_errors(errors: Iterable[FieldValidationError]) -> str:
    """Join errors as apimachinery's ErrorList.ToAggregate does: each distinct text once."""
    texts = list(dict.fromkeys(map(str, errors)))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _reference(holder: ObjectKey, target: WorkloadReference) -> WorkloadReference:
    """Return a reference to the template's holder, which may be served under another group."""
    version = target.api_version.rpartition("/")[2]
    group = f"{holder.group}/" if holder.group else ""
    return WorkloadReference(f"{group}{version}", holder.kind, holder.name)


class _ConversionRequest(Struct, frozen=True):
    uid: str
    desired_version: str = msgspec.field(name="desiredAPIVersion")
    objects: list[dict[str, Any]] = []


class _ConversionReview(Struct, frozen=True, rename="camel"):
    request: _ConversionRequest
    api_version: str = "apiextensions.k8s.io/v1"
    kind: str = "ConversionReview"


_reviews = msgspec.json.Decoder(_ConversionReview)
_encoder = msgspec.json.Encoder()


def answer_conversion(body: bytes) -> bytes:
    """Answer a ConversionReview; an unknown version fails the whole review. Raises ReviewError."""
    try:
        review = _reviews.decode(body)
    except msgspec.ValidationError as error:
        raise ReviewError(f"ConversionReview: {with_field_path(str(error))}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ReviewError(f"ConversionReview: not JSON: {error}") from None
    request = review.request
    try:
        converted = [convert(each, request.desired_version) for each in request.objects]
        outcome = {"convertedObjects": converted, "result": {"status": "Success"}}
    except UnknownVersionError as error:
        outcome = {"convertedObjects": [], "result": {"status": "Failure", "message": str(error)}}
    response = {"uid": request.uid, **outcome}
    return _encoder.encode(
        {"apiVersion": review.api_version, "kind": review.kind, "response": response}
    )
