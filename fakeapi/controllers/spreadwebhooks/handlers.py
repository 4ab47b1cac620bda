"""The webhooks by path: JSON in, JSON out, independent of the transport."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from extender.kube.clock import Clock
from fakeapi.controllers.spreading.reception import Handler, Handlers
from fakeapi.controllers.spreadwebhooks.converting import answer_conversion
from fakeapi.controllers.spreadwebhooks.figures import WebhookMetrics
from fakeapi.controllers.spreadwebhooks.names import (
    CONVERT,
    MUTATE_POD,
    VALIDATE_POD,
    VALIDATE_SPREAD,
)
from fakeapi.controllers.spreadwebhooks.pods import PodWebhooks
from fakeapi.controllers.spreadwebhooks.reviews import (
    AdmissionRequest,
    AdmissionResponse,
    decode_review,
    encode_response,
)
from fakeapi.controllers.spreadwebhooks.spreads import WorkloadSpreadWebhook

AnswerReview = Callable[[AdmissionRequest], Awaitable[AdmissionResponse]]


def webhook_handlers(
    pods: PodWebhooks, spreads: WorkloadSpreadWebhook, clock: Clock, metrics: WebhookMetrics
) -> Handlers:
    """Return the handlers by path; each raises ReviewError if the body is not a review."""
    judges: Mapping[str, AnswerReview] = {
        MUTATE_POD: pods.mutate,
        VALIDATE_POD: pods.validate,
        VALIDATE_SPREAD: spreads.validate,
    }
    reviewing = {
        path: _review_handler(path, judge, clock, metrics) for path, judge in judges.items()
    }
    return {**reviewing, CONVERT: convert}


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
        verdict = await answer_review(review.request)
        seconds.observe(clock.monotonic() - begun)
        if not verdict.allowed:
            refusals.inc()
        return encode_response(review, verdict)

    return answer
