"""``/mutate-pod`` and ``/validate-pod``: pods that are created, deleted or evicted.

A pod to which no WorkloadSpread applies is admitted at once. Otherwise a new pod is assigned to a
subset and counted in the status before it is admitted; a pod that is removed is subtracted. A
rejection never judges the pod: it means that an object could not be read or written, and the client
retries. Dry-run requests are admitted.

Source: openkruise/kruise pkg/webhook/pod/{mutating,validating}/workloadspread.go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import msgspec

from extender.kube.api_error import ApiError, MalformedError
from extender.kube.client import Client
from extender.kube.clock import Clock
from extender.kube.decoding import ObjectError
from extender.kube.resources import PODS
from extender.kube.transport import TransportError
from extender.kube.workloadspread.injecting import with_cost
from extender.kube.workloadspread.pods import decode_spread_pod
from extender.kube.workloadspread.spreads import WrittenSpread
from extender.spreadanswers import Answer, Trial, answer_placement
from fakeapi.controllers.spreading.workloads import UnreadError
from fakeapi.controllers.spreadwebhooks.figures import Figures
from fakeapi.controllers.spreadwebhooks.known import Known, NotKnownError
from fakeapi.controllers.spreadwebhooks.patches import difference
from fakeapi.controllers.spreadwebhooks.reviews import (
    ALLOWED,
    BAD_REQUEST,
    FAILED,
    Request,
    Verdict,
    refused,
)
from fakeapi.controllers.spreadwebhooks.statuses import StatusWriter
from fakeapi.controllers.spreadwebhooks.together import Way
from fakeapi.controllers.spreadwebhooks.trying import TryingGround
from policies.spreading.admitting import LET_THROUGH, Asking, admit_removal, release
from policies.spreading.model import SECOND, Spread, SpreadPod
from policies.spreading.owners import OwnerNotFoundError, Owners, spread_of
from policies.spreading.quirks import SIMULATION_MISSING
from policies.spreading.reconciling import SpreadRules
from policies.spreading.workloads import Workload

Document = dict[str, Any]

_NOT_FOUND: Final = 404
_TROUBLES: Final = (
    ApiError,
    MalformedError,
    NotKnownError,
    ObjectError,
    TransportError,
    UnreadError,
)

_documents = msgspec.json.Decoder(Document)


class PodWebhooks:
    """Answers reviews of pods; ``new_id`` returns ids for pods without a name."""

    def __init__(
        self,
        client: Client,
        known: Known,
        writer: StatusWriter,
        ground: TryingGround,
        clock: Clock,
        new_id: Callable[[], str],
        rules: SpreadRules,
        figures: Figures,
    ) -> None:
        self._client = client
        self._known = known
        self._writer = writer
        self._ground = ground
        self._clock = clock
        self._new_id = new_id
        self._rules = rules
        self._figures = figures

    async def mutate(self, request: Request) -> Verdict:
        """Answer the review of a pod's creation."""
        if request.is_dry or not request.concerns("CREATE", PODS.plural):
            return ALLOWED
        try:
            await self._known.wait_synced()
        except NotKnownError as error:
            return refused(FAILED, str(error))
        if not self._known.spreads.index.any_in(request.namespace):
            return ALLOWED
        try:
            document = _document(request.object)
            pod = _read_pod(bytes(request.object), request)
        except ObjectError as error:
            return refused(BAD_REQUEST, str(error))
        try:
            answer = await self._create(pod, document)
        except OwnerNotFoundError as error:
            return refused(FAILED, str(error))
        except _TROUBLES as error:
            return refused(FAILED, _words(error))
        if answer is None:
            return ALLOWED
        if answer.admission.refusal:
            return refused(FAILED, answer.admission.refusal)
        if answer.admission.subset is None:
            return ALLOWED
        self._figures.injected.inc()
        cost = answer.admission.cost
        after = answer.pod if cost is None else with_cost(answer.pod, str(cost))
        return Verdict(patch=difference(document, after))

    async def validate(self, request: Request) -> Verdict:
        """Answer the review of a pod's deletion or eviction."""
        if request.is_dry:
            return ALLOWED
        try:
            leaving = await self._leaving(request)
            if leaving is None:
                return ALLOWED
            pod = _read_pod(leaving, request)
            answer = await self._remove(pod)
        except _TROUBLES as error:
            return refused(BAD_REQUEST, _words(error))
        if answer is not None and answer.admission.refusal:
            return refused(BAD_REQUEST, answer.admission.refusal)
        return ALLOWED

    async def _create(self, pod: SpreadPod, document: Document) -> Answer | None:
        """Assign a pod to a subset; return None if no WorkloadSpread applies.

        Raises OwnerNotFoundError, WorkloadReadError, and the errors of StatusWriter.
        """
        known, whitelist = self._known, self._known.configuration.whitelist
        chain = await known.workloads.chain(pod.controller, pod.namespace, whitelist)
        concerned = known.spreads.index.concerned(pod.namespace, chain)
        written = {each.spread.name: each for each in concerned}
        values = [each.spread for each in written.values()]
        spread = spread_of(pod, values, chain.owners, self._rules.quirks)
        if spread is None:
            return None
        target = await self._target(spread)
        trial = await self._trial(spread)

        def decide(newest: WrittenSpread) -> Answer:
            asking = self._asking(chain.owners, target)
            return answer_placement(pod, document, newest, asking, self._new_id, trial)

        return await self._writer.settle(written[spread.name], decide)

    async def _remove(self, pod: SpreadPod) -> Answer | None:
        """Subtract a pod from its subset; raises the errors of :meth:`_create`."""
        given = pod.injection
        if given is None:
            return None
        await self._known.wait_synced()
        written = self._known.spreads.index.get(pod.namespace, given.spread)
        if written is None:
            return None
        owners = Owners(whitelist=self._known.configuration.whitelist)
        target = await self._target(written.spread)
        if admit_removal(pod, [written.spread], self._asking(owners, target)) == LET_THROUGH:
            return None

        def decide(newest: WrittenSpread) -> Answer:
            return Answer(release(pod, newest.spread, self._asking(owners, target)), {})

        return await self._writer.settle(written, decide, Way.OUT)

    async def _leaving(self, request: Request) -> bytes | None:
        """Return the pod that a request removes; None if it removes none."""
        if request.concerns("DELETE", PODS.plural):
            return bytes(request.old_object)
        if not request.concerns("CREATE", PODS.plural, "eviction"):
            return None
        options = _document(request.object).get("deleteOptions") or {}
        if options.get("dryRun"):
            return None
        try:
            path = PODS.object(request.name, request.namespace)
            return await self._client.get(path, bytes)
        except ApiError as error:
            if error.status == _NOT_FOUND:
                return None  # the API server returns the 404 itself
            raise

    async def _target(self, spread: Spread) -> Workload | None:
        """Return the target of a WorkloadSpread, if a maxReplicas is a percentage; else None."""
        shares = any(str(subset.max_replicas).endswith("%") for subset in spread.subsets)
        if spread.target is None or not shares:
            return None
        return await self._known.workloads.get(spread.target, spread.namespace)

    async def _trial(self, spread: Spread) -> Trial | None:
        """Return a scheduling simulation, if the WorkloadSpread's strategy uses one."""
        if not spread.strategy.simulates or SIMULATION_MISSING in self._rules.quirks:
            return None
        return await self._ground.trial()

    def _asking(self, owners: Owners, target: Workload | None) -> Asking:
        """Return the context of an admission review; its time is in whole seconds."""
        now_ns = self._clock.now_ns()
        return Asking(owners, lambda _spread: target, now_ns - now_ns % SECOND, self._rules)


def _document(raw: msgspec.Raw) -> Document:
    """Decode an object of a review. Raises ObjectError."""
    try:
        return _documents.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ObjectError("Pod: expected an object") from None


def _read_pod(raw: bytes, request: Request) -> SpreadPod:
    """Decode a pod, whose namespace may be unset. Raises ObjectError."""
    return replace(decode_spread_pod(raw), namespace=request.namespace)


def _words(trouble: Exception) -> str:
    """Return the message of the server's Status, or the text of a client-side error."""
    return trouble.message if isinstance(trouble, ApiError) else str(trouble)
