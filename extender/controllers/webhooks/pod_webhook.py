"""``/mutate-pod`` and ``/validate-pod``: pods that are created, deleted or evicted.

A pod to which no WorkloadSpread applies is admitted at once. Otherwise a new pod is assigned to a
subset and counted in the status before it is admitted; a pod that is removed is subtracted. A
rejection never judges the pod: it means that an object could not be read or written, and the client
retries. Dry-run requests are admitted.

Source: openkruise/kruise pkg/webhook/pod/{mutating,validating}/workloadspread.go.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final
from uuid import UUID

import msgspec

from extender.controllers.context import ControllerContext
from extender.controllers.metrics import WebhookMetrics
from extender.controllers.webhooks.admission_review import (
    ALLOWED,
    BAD_REQUEST,
    INTERNAL_ERROR,
    AdmissionRequest,
    AdmissionResponse,
    create_json_patch,
    denied,
)
from extender.controllers.webhooks.cluster_state import (
    CachesNotSyncedError,
    SchedulingSimulator,
    WebhookCaches,
)
from extender.controllers.webhooks.status_batch import PodTransition
from extender.controllers.webhooks.status_writer import WorkloadSpreadStatusWriter
from extender.controllers.workloadspread.controller_finder import WorkloadReadError
from extender.kube.decoders.typed_decoder import ObjectError
from extender.kube.rest.api_errors import ApiError, MalformedError
from extender.kube.rest.resources import PODS
from extender.kube.rest.transport import TransportError
from extender.kube.workloadspread.pod_injection import (
    InjectionResult,
    SchedulingSimulation,
    inject_placed_pod,
    with_cost,
)
from extender.kube.workloadspread.spread_pods import decode_spread_pod
from extender.kube.workloadspread.spreads import StoredWorkloadSpread
from policies.workloadspread.model import SECOND, SpreadPod, WorkloadSpread
from policies.workloadspread.pod_admission import (
    ADMITTED,
    AdmissionContext,
    admit_release,
    admit_removal,
)
from policies.workloadspread.quirks import SIMULATION_MISSING
from policies.workloadspread.reconcile import SpreadRules
from policies.workloadspread.spread_lookup import (
    OwnerLookup,
    OwnerNotFoundError,
    workloadspread_of_new_pod,
)
from policies.workloadspread.workloads import TargetWorkload

Document = dict[str, Any]

_REVIEW_ERRORS: Final = (
    ApiError,
    MalformedError,
    CachesNotSyncedError,
    ObjectError,
    TransportError,
    WorkloadReadError,
)

_documents = msgspec.json.Decoder(Document)


class PodWebhooks:
    """Answers reviews of pods."""

    def __init__(
        self,
        context: ControllerContext,
        caches: WebhookCaches,
        writer: WorkloadSpreadStatusWriter,
        simulator: SchedulingSimulator,
        rules: SpreadRules,
        metrics: WebhookMetrics,
    ) -> None:
        self._client = context.client
        self._caches = caches
        self._writer = writer
        self._simulator = simulator
        self._clock = context.clock
        self._rng = context.rng
        self._rules = rules
        self._metrics = metrics

    def _new_id(self) -> str:
        """Return a random id for a pod without a name."""
        return str(UUID(int=self._rng.getrandbits(128), version=4))

    async def mutate(self, request: AdmissionRequest) -> AdmissionResponse:
        """Answer the review of a pod's creation."""
        if request.is_dry_run or not request.matches("CREATE", PODS.plural):
            return ALLOWED
        try:
            await self._caches.wait_synced()
        except CachesNotSyncedError as error:
            return denied(INTERNAL_ERROR, str(error))
        if not self._caches.spreads.index.has_any(request.namespace):
            return ALLOWED
        try:
            document = _document(request.object)
            pod = _read_pod(bytes(request.object), request)
        except ObjectError as error:
            return denied(BAD_REQUEST, str(error))
        try:
            answer = await self._create(pod, document)
        except OwnerNotFoundError as error:
            return denied(INTERNAL_ERROR, str(error))
        except _REVIEW_ERRORS as error:
            return denied(INTERNAL_ERROR, _error_message(error))
        if answer is None:
            return ALLOWED
        if answer.admission.error:
            return denied(INTERNAL_ERROR, answer.admission.error)
        if answer.admission.subset is None:
            return ALLOWED
        self._metrics.injected.inc()
        cost = answer.admission.cost
        after = answer.pod if cost is None else with_cost(answer.pod, str(cost))
        return AdmissionResponse(patch=create_json_patch(document, after))

    async def validate(self, request: AdmissionRequest) -> AdmissionResponse:
        """Answer the review of a pod's deletion or eviction."""
        if request.is_dry_run:
            return ALLOWED
        try:
            removed = await self._removed_pod(request)
            if removed is None:
                return ALLOWED
            answer = await self._remove(_read_pod(removed, request))
        except _REVIEW_ERRORS as error:
            return denied(BAD_REQUEST, _error_message(error))
        if answer is not None and answer.admission.error:
            return denied(BAD_REQUEST, answer.admission.error)
        return ALLOWED

    async def _create(self, pod: SpreadPod, document: Document) -> InjectionResult | None:
        """Assign a pod to a subset; return None if no WorkloadSpread applies.

        Raises OwnerNotFoundError, WorkloadReadError, and the errors of StatusWriter.
        """
        caches, allowed_kinds = self._caches, self._caches.configuration.allowed_kinds
        chain = await caches.workloads.owner_chain(pod.controller, pod.namespace, allowed_kinds)
        targeting = caches.spreads.index.targeting(pod.namespace, chain)
        written = {each.spread.name: each for each in targeting}
        values = [each.spread for each in written.values()]
        spread = workloadspread_of_new_pod(pod, values, chain.owners, self._rules.quirks)
        if spread is None:
            return None
        target = await self._target(spread)
        simulation = await self._simulation(spread)

        def decide(newest: StoredWorkloadSpread) -> InjectionResult:
            context = self._admission_context(chain.owners, target)
            return inject_placed_pod(pod, document, newest, context, self._new_id, simulation)

        return await self._writer.decide_and_write(written[spread.name], decide)

    async def _remove(self, pod: SpreadPod) -> InjectionResult | None:
        """Subtract a pod from its subset; raises the errors of :meth:`_create`."""
        injection = pod.injection
        if injection is None:
            return None
        await self._caches.wait_synced()
        written = self._caches.spreads.index.get(pod.namespace, injection.spread)
        if written is None:
            return None
        owners = OwnerLookup(allowed_kinds=self._caches.configuration.allowed_kinds)
        target = await self._target(written.spread)
        context = self._admission_context(owners, target)
        if admit_removal(pod, [written.spread], context) == ADMITTED:
            return None

        def decide(newest: StoredWorkloadSpread) -> InjectionResult:
            return InjectionResult(
                admit_release(pod, newest.spread, self._admission_context(owners, target)), {}
            )

        return await self._writer.decide_and_write(written, decide, PodTransition.REMOVAL)

    async def _removed_pod(self, request: AdmissionRequest) -> bytes | None:
        """Return the pod that a request removes; None if it removes none."""
        if request.matches("DELETE", PODS.plural):
            return bytes(request.old_object)
        if not request.matches("CREATE", PODS.plural, "eviction"):
            return None
        options = _document(request.object).get("deleteOptions") or {}
        if options.get("dryRun"):
            return None
        # The API server returns a 404 itself.
        return await self._client.find(PODS.object(request.name, request.namespace), bytes)

    async def _target(self, spread: WorkloadSpread) -> TargetWorkload | None:
        """Return the target of a WorkloadSpread, if a maxReplicas is a percentage; else None."""
        shares = any(str(subset.max_replicas).endswith("%") for subset in spread.subsets)
        if spread.target is None or not shares:
            return None
        return await self._caches.workloads.get(spread.target, spread.namespace)

    async def _simulation(self, spread: WorkloadSpread) -> SchedulingSimulation | None:
        """Return a scheduling simulation, if the WorkloadSpread's strategy uses one."""
        if not spread.strategy.simulates or SIMULATION_MISSING in self._rules.quirks:
            return None
        return await self._simulator.simulation()

    def _admission_context(
        self, owners: OwnerLookup, target: TargetWorkload | None
    ) -> AdmissionContext:
        """Return the context of an admission review; its time is in whole seconds."""
        now_ns = self._clock.now_ns()
        return AdmissionContext(
            owners, lambda _spread: target, now_ns - now_ns % SECOND, self._rules
        )


def _document(raw: msgspec.Raw) -> Document:
    """Decode an object of a review. Raises ObjectError."""
    try:
        return _documents.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ObjectError("Pod: expected an object") from None


def _read_pod(raw: bytes, request: AdmissionRequest) -> SpreadPod:
    """Decode a pod, whose namespace may be unset. Raises ObjectError."""
    return replace(decode_spread_pod(raw), namespace=request.namespace)


def _error_message(error: Exception) -> str:
    """Return the message of the server's Status, or the text of a client-side error."""
    return error.message if isinstance(error, ApiError) else str(error)
