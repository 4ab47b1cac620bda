"""``/validate-apps-kruise-io-workloadspread``: WorkloadSpreads that are created or updated.

Source: openkruise/kruise pkg/webhook/workloadspread/validating.
"""

from __future__ import annotations

from collections.abc import Iterable

from extender.kube.decoding import ObjectError
from extender.kube.workloadspread.spreads import StoredWorkloadSpread, decode_workloadspread
from extender.validate_spread import PodSpecValidation, patch_errors
from fakeapi.controllers.spreading.copies import WORKLOAD_SPREADS
from fakeapi.controllers.spreading.workloads import WorkloadReadError
from fakeapi.controllers.spreadwebhooks.known import CachesNotSyncedError, WebhookCaches
from fakeapi.controllers.spreadwebhooks.reviews import (
    ALLOWED,
    BAD_REQUEST,
    AdmissionRequest,
    AdmissionResponse,
    denied,
)
from policies.spreading.placement_rules import FieldValidationError
from policies.spreading.quirks import Quirks
from policies.spreading.references import ObjectKey, WorkloadReference
from policies.spreading.validation import template_holder, validate
from policies.spreading.workloads import TargetWorkload


class WorkloadSpreadWebhook:
    """Answers reviews of WorkloadSpreads; ``check_pod`` validates patched pods."""

    def __init__(self, caches: WebhookCaches, check_pod: PodSpecValidation, quirks: Quirks) -> None:
        self._known = caches
        self._check_pod = check_pod
        self._quirks = quirks

    async def validate(self, request: AdmissionRequest) -> AdmissionResponse:
        """Answer the review of a WorkloadSpread that is created or updated."""
        if request.resource.resource != WORKLOAD_SPREADS.plural or request.sub_resource:
            return ALLOWED
        if request.operation not in ("CREATE", "UPDATE"):
            return ALLOWED
        try:
            await self._known.wait_synced()
            written = decode_workloadspread(bytes(request.object))
            old = (
                decode_workloadspread(bytes(request.old_object))
                if request.operation == "UPDATE"
                else None
            )
            faults = await self._validation_errors(written, old)
        except (CachesNotSyncedError, ObjectError, WorkloadReadError) as error:
            return denied(BAD_REQUEST, str(error))
        return denied(BAD_REQUEST, aggregate_errors(faults)) if faults else ALLOWED

    async def _validation_errors(
        self, written: StoredWorkloadSpread, old: StoredWorkloadSpread | None
    ) -> tuple[FieldValidationError, ...]:
        spread = written.spread
        others = [each.spread for each in self._known.spreads.index.of_namespace(spread.namespace)]
        return validate(
            spread,
            others,
            self._known.configuration.allowed_kinds,
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
        return await self._known.workloads.get(reference, written.spread.namespace)


def aggregate_errors(errors: Iterable[FieldValidationError]) -> str:
    """Join errors as apimachinery's ErrorList.ToAggregate does: each distinct text once."""
    told = list(dict.fromkeys(map(str, errors)))
    return told[0] if len(told) == 1 else f"[{', '.join(told)}]"


def _reference(holder: ObjectKey, target: WorkloadReference) -> WorkloadReference:
    """Return a reference to the template's holder, which may be served under another group."""
    version = target.api_version.rpartition("/")[2]
    group = f"{holder.group}/" if holder.group else ""
    return WorkloadReference(f"{group}{version}", holder.kind, holder.name)
