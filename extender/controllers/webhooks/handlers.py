"""The webhooks as a component: their caches, handlers by path, and registration.

A handler takes and returns JSON, independent of the transport.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from extender.controllers.context import ControllerContext
from extender.controllers.metrics import WebhookMetrics
from extender.controllers.webhooks.admission_review import (
    AdmissionRequest,
    AdmissionResponse,
    decode_review,
    encode_response,
)
from extender.controllers.webhooks.cluster_state import SchedulingSimulator, WebhookCaches
from extender.controllers.webhooks.pod_webhook import PodWebhooks
from extender.controllers.webhooks.registration import (
    CONVERT,
    MUTATE_POD,
    VALIDATE_POD,
    VALIDATE_SPREAD,
    WebhookRegistration,
)
from extender.controllers.webhooks.status_writer import WorkloadSpreadStatusWriter
from extender.controllers.webhooks.webhook_endpoint import Handler, Handlers, WebhookEndpoint
from extender.controllers.webhooks.workloadspread_webhook import (
    WorkloadSpreadWebhook,
    answer_conversion,
)
from extender.controllers.workloadspread.assumed_statuses import AssumedStatuses
from extender.controllers.workloadspread.controller_finder import (
    ControllerFinder,
    KruiseConfiguration,
)
from extender.controllers.workloadspread.spread_cache import WorkloadSpreadCache
from extender.kube.rest.clock import Clock
from extender.kube.rest.rate_limited_log import OnceLog
from policies.workloadspread.reconcile import DEFAULT_SPREAD_RULES, SpreadRules

AnswerReview = Callable[[AdmissionRequest], Awaitable[AdmissionResponse]]


def webhook_handlers(
    pods: PodWebhooks, spreads: WorkloadSpreadWebhook, clock: Clock, metrics: WebhookMetrics
) -> Handlers:
    """Return the handlers by path; each raises ReviewError if the body is not a review."""
    reviews: Mapping[str, AnswerReview] = {
        MUTATE_POD: pods.mutate,
        VALIDATE_POD: pods.validate,
        VALIDATE_SPREAD: spreads.validate,
    }
    handlers = {
        path: _review_handler(path, review, clock, metrics) for path, review in reviews.items()
    }
    return {**handlers, CONVERT: convert}


async def convert(body: bytes) -> bytes:
    """Answer a ConversionReview, without any cluster state. Raises ReviewError."""
    return answer_conversion(body)


def _review_handler(
    path: str, answer_review: AnswerReview, clock: Clock, metrics: WebhookMetrics
) -> Handler:
    seconds, refusals = metrics.seconds.labels(path), metrics.refused.labels(path)

    async def answer(body: bytes) -> bytes:
        begun = clock.monotonic()
        review = decode_review(body)
        response = await answer_review(review.request)
        seconds.observe(clock.monotonic() - begun)
        if not response.allowed:
            refusals.inc()
        return encode_response(review, response)

    return answer


class WorkloadSpreadWebhooks:
    """The component ``spreadwebhooks``: assigns new pods to subsets, and counts pods.

    ``assumed_statuses`` is shared with the controller of the same process.
    """

    def __init__(
        self,
        context: ControllerContext,
        assumed_statuses: AssumedStatuses,
        webhook_endpoint: WebhookEndpoint,
        *,
        rules: SpreadRules = DEFAULT_SPREAD_RULES,
    ) -> None:
        client, informers, clock = context.client, context.informers, context.clock
        log = OnceLog(controller="spreadwebhooks")
        self.metrics = WebhookMetrics(context.registry)
        cache = WorkloadSpreadCache(informers, assumed_statuses, log)
        workloads = ControllerFinder(client, informers)
        caches = WebhookCaches(cache, KruiseConfiguration(informers, log), workloads, clock)
        self._webhook_endpoint = webhook_endpoint
        self._simulator = SchedulingSimulator(client, clock, context.rng)
        writer = WorkloadSpreadStatusWriter(
            client, cache, assumed_statuses, clock, context.rng, self.metrics
        )
        pods = PodWebhooks(context, caches, writer, self._simulator, rules, self.metrics)
        spreads = WorkloadSpreadWebhook(caches, webhook_endpoint.check_pod, rules.quirks)
        self.handlers = webhook_handlers(pods, spreads, clock, self.metrics)
        self._registration = WebhookRegistration(
            client, informers, clock, cache, webhook_endpoint.client_config, log
        )
        self.controller = self._registration.controller

    async def run(self) -> None:
        """Serve the webhooks and keep them registered in the API server until cancelled."""
        detach = self._webhook_endpoint.serve(self.handlers)
        try:
            await self._registration.run()
            await asyncio.Event().wait()  # draining: serve the other components
        finally:
            detach()
            await self._simulator.stop()
