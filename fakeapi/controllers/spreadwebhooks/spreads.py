"""``/validate-apps-kruise-io-workloadspread``: WorkloadSpreads that are created or updated.

Source: openkruise/kruise pkg/webhook/workloadspread/validating.
"""

from __future__ import annotations

from collections.abc import Iterable

from extender.kube.decoding import ObjectError
from extender.kube.workloadspread.spreads import WrittenSpread, decode_spread
from extender.validate_spread import PodCheck, patch_faults
from fakeapi.controllers.spreading.copies import SPREADS
from fakeapi.controllers.spreading.workloads import UnreadError
from fakeapi.controllers.spreadwebhooks.known import Known, NotKnownError
from fakeapi.controllers.spreadwebhooks.reviews import (
    ALLOWED,
    BAD_REQUEST,
    Request,
    Verdict,
    refused,
)
from policies.spreading.placement_rules import Fault
from policies.spreading.quirks import Quirks
from policies.spreading.references import Identity, Reference
from policies.spreading.validation import template_holder, validate
from policies.spreading.workloads import Workload


class SpreadWebhook:
    """Answers reviews of WorkloadSpreads; ``check_pod`` validates patched pods."""

    def __init__(self, known: Known, check_pod: PodCheck, quirks: Quirks) -> None:
        self._known = known
        self._check_pod = check_pod
        self._quirks = quirks

    async def validate(self, request: Request) -> Verdict:
        """Answer the review of a WorkloadSpread that is created or updated."""
        if request.resource.resource != SPREADS.plural or request.sub_resource:
            return ALLOWED
        if request.operation not in ("CREATE", "UPDATE"):
            return ALLOWED
        try:
            await self._known.wait_synced()
            written = decode_spread(bytes(request.object))
            old = (
                decode_spread(bytes(request.old_object)) if request.operation == "UPDATE" else None
            )
            faults = await self._faults(written, old)
        except (NotKnownError, ObjectError, UnreadError) as error:
            return refused(BAD_REQUEST, str(error))
        return refused(BAD_REQUEST, aggregate(faults)) if faults else ALLOWED

    async def _faults(self, written: WrittenSpread, old: WrittenSpread | None) -> tuple[Fault, ...]:
        spread = written.spread
        others = [each.spread for each in self._known.spreads.index.of_namespace(spread.namespace)]
        return validate(
            spread,
            others,
            self._known.configuration.whitelist,
            patch_faults(written, await self._holder(written), self._check_pod),
            None if old is None else old.spread,
        )

    async def _holder(self, written: WrittenSpread) -> Workload | None:
        """Return the object whose pod template is patched; raises WorkloadReadError."""
        target = written.spread.target
        holder = template_holder(written.spread, self._quirks)
        patched = any(subset.patched for subset in written.spread.subsets)
        if target is None or holder is None or not patched:
            return None
        reference = _reference(holder, target)
        return await self._known.workloads.get(reference, written.spread.namespace)


def aggregate(faults: Iterable[Fault]) -> str:
    """Join errors as apimachinery's ErrorList.ToAggregate does: each distinct text once."""
    told = list(dict.fromkeys(map(str, faults)))
    return told[0] if len(told) == 1 else f"[{', '.join(told)}]"


def _reference(holder: Identity, target: Reference) -> Reference:
    """Return a reference to the template's holder, which may be served under another group."""
    version = target.api_version.rpartition("/")[2]
    group = f"{holder.group}/" if holder.group else ""
    return Reference(f"{group}{version}", holder.kind, holder.name)
