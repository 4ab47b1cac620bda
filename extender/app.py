"""The extender over HTTP: one handler for all verbs, one error table, probes and metrics.

kube-scheduler takes any status but 200 for an error of the extender, and does without it where the
configuration says ``ignorable``. So a call that cannot be answered safely gets a status and one
line of text, never a guess.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping

import structlog
from aiohttp import web

from extender.kube.decoding import ObjectError
from extender.metrics import CONTENT_TYPE
from extender.service import Feed, NotReadyError, Service, UnknownVerbError
from extender.verbs import VERBS
from extender.wire import WireError

_STATUSES: Mapping[type[Exception], int] = {
    WireError: 400,
    ObjectError: 400,
    UnknownVerbError: 404,
    NotReadyError: 503,
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def build_app(
    service: Service, path_prefixes: Iterable[str] = (), body_limit: int = 64 * 2**20
) -> web.Application:
    """Serve ``service`` at the root and below each prefix; ``body_limit`` is in bytes."""
    app = web.Application(client_max_size=body_limit)
    verb = _verb_handler(service, body_limit)
    for prefix in ("", *path_prefixes):
        app.router.add_post(f"/{prefix.strip('/')}/{{verb}}".replace("//", "/"), verb)
    app.router.add_get("/livez", _healthy)
    app.router.add_get("/healthz", _healthy)
    app.router.add_get("/readyz", _ready_handler(service))
    app.router.add_get("/metrics", _metrics_handler(service))
    return app


def _verb_handler(service: Service, body_limit: int) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        verb = request.match_info["verb"]
        response = await _answer(service, verb, request, body_limit)
        service.metrics.requests.labels(
            verb if verb in VERBS else "unknown", str(response.status)
        ).inc()
        return response

    return handle


async def _answer(
    service: Service, verb: str, request: web.Request, body_limit: int
) -> web.Response:
    try:
        body = await request.read()
        answered = service.answer(verb, body)
        # kube-scheduler waits for the answer, nobody for what is written down of it.
        asyncio.get_running_loop().call_soon(answered.tell)
        return web.Response(body=answered.body, content_type="application/json")
    except web.HTTPRequestEntityTooLarge:
        problem = f"the body is larger than the limit of {body_limit} bytes"
        return _refusal(service, verb, 413, problem)
    except web.RequestPayloadError as error:
        return _refusal(service, verb, 400, f"the body cannot be read: {error}")
    except tuple(_STATUSES) as error:
        return _refusal(service, verb, _STATUSES[type(error)], str(error))
    except Exception as error:  # noqa: BLE001
        # The outermost loop: kube-scheduler must get an answer, and the service must go on.
        structlog.get_logger().exception("internal_error", verb=verb)
        return _refusal(service, verb, 500, f"internal error: {type(error).__name__}")


def _refusal(service: Service, verb: str, status: int, problem: str) -> web.Response:
    line = " ".join(problem.split())  # names in a problem are the caller's, line ends and all
    service.journal.refused(verb, status, line)
    return web.Response(status=status, text=f"reprieve: {line}\n")


async def _healthy(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


def _ready_handler(service: Service) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        missing = service.waiting_for()
        lines = [
            f"[{'+' if feed.settled else '-'}] {kind} {_condition(feed)}"
            for kind, feed in service.feeds.items()
        ]
        verdict = f"not ready: waiting for {', '.join(missing)}" if missing else "ok"
        shown = [*lines, verdict] if "verbose" in request.query else [verdict]
        return web.Response(status=503 if missing else 200, text="\n".join(shown) + "\n")

    return handle


def _condition(feed: Feed) -> str:
    if feed.synced:
        return "synced"
    return (
        "refused by the server: pods that need it are not judged" if feed.settled else "not synced"
    )


def _metrics_handler(service: Service) -> Handler:
    async def handle(_: web.Request) -> web.Response:
        return web.Response(body=service.scrape(), headers={"Content-Type": CONTENT_TYPE})

    return handle
