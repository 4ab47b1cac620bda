"""The webhooks by path: JSON in, JSON out, independent of the transport."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from extender.kube.clock import Clock
from fakeapi.controllers.spreading.reception import Handler, Handlers
from fakeapi.controllers.spreadwebhooks.converting import answer_conversion
from fakeapi.controllers.spreadwebhooks.figures import Figures
from fakeapi.controllers.spreadwebhooks.names import (
    CONVERT,
    MUTATE_POD,
    VALIDATE_POD,
    VALIDATE_SPREAD,
)
from fakeapi.controllers.spreadwebhooks.pods import PodWebhooks
from fakeapi.controllers.spreadwebhooks.reviews import Request, Verdict, read_review, write_review
from fakeapi.controllers.spreadwebhooks.spreads import SpreadWebhook

Judge = Callable[[Request], Awaitable[Verdict]]


def handlers(pods: PodWebhooks, spreads: SpreadWebhook, clock: Clock, figures: Figures) -> Handlers:
    """Return the handlers by path; each raises ReviewError if the body is not a review."""
    judges: Mapping[str, Judge] = {
        MUTATE_POD: pods.mutate,
        VALIDATE_POD: pods.validate,
        VALIDATE_SPREAD: spreads.validate,
    }
    reviewing = {path: _reviewing(path, judge, clock, figures) for path, judge in judges.items()}
    return {**reviewing, CONVERT: convert}


async def convert(body: bytes) -> bytes:
    """Answer a ConversionReview, without any cluster state. Raises ReviewError."""
    return answer_conversion(body)


def _reviewing(path: str, judge: Judge, clock: Clock, figures: Figures) -> Handler:
    seconds, refusals = figures.seconds.labels(path), figures.refused.labels(path)

    async def answer(body: bytes) -> bytes:
        begun = clock.monotonic()
        review = read_review(body)
        verdict = await judge(review.request)
        seconds.observe(clock.monotonic() - begun)
        if not verdict.allowed:
            refusals.inc()
        return write_review(review, verdict)

    return answer
