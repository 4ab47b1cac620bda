"""The HTTP handlers of the extender: all verbs, one error table, probes and metrics.

kube-scheduler treats any status but 200 as an error of the extender, and skips the extender if its
configuration has ``ignorable: true``. So a call that cannot be answered safely gets an error status
and one line of text.

Every answer to a verb has an ``X-Request-Id`` header: the caller's ID, or a generated one. The log
lines of the call and its record in ``/decisions`` have the same ID.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping
from itertools import count
from typing import Final

import structlog
from aiohttp import web
from aiohttp.typedefs import Middleware

from extender.kube.decoders.typed_decoder import ObjectError
from extender.observability.metrics import CONTENT_TYPE, UNKNOWN
from extender.observability.request_trace import (
    PARENT_HEADERS,
    RequestResult,
    RequestTrace,
    TraceStep,
)
from extender.protocol.extender_v1 import ExtenderDecodeError
from extender.protocol.verbs import VERBS
from extender.secure_serving.connection_limits import OVERLOADED, ConnectionProtocol
from extender.secure_serving.listener import ClientCertAuthorizer
from extender.server.fallback_policy import DegradedError
from extender.server.openapi import openapi_document
from extender.server.service import NotReadyError, Service, UnknownVerbError, VerbCall
from extender.terminal.log_limits import shortened
from policies.kubernetes.input_error import similar_name
from policies.kubernetes.integers import INT32_MAX, parse_integer

REQUEST_ID: Final = "X-Request-Id"
_REQUEST_ID_PATTERN: Final = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_RETRY_AFTER: Final = {503: {"Retry-After": "1"}}
"""Headers of an error response that the client may retry soon; seconds."""

_STATUSES: Mapping[type[Exception], int] = {
    ExtenderDecodeError: 400,
    ObjectError: 400,
    UnknownVerbError: 404,
    NotReadyError: 503,
    DegradedError: 503,
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def build_app(
    service: Service,
    path_prefixes: Iterable[str] = (),
    body_limit: int = 64 * 2**20,
    client_authorizer: ClientCertAuthorizer | None = None,
    id_prefix: str = "call",
    forwarding: Iterable[Middleware] = (),
) -> web.Application:
    """Return the application that serves ``service`` at the root and below each prefix.

    ``body_limit`` is in bytes. A request without an ID gets ``id_prefix`` and a number.
    ``forwarding`` passes authorized requests on to another process.
    """
    guard = [] if client_authorizer is None else [_client_authorization(client_authorizer, service)]
    app = web.Application(client_max_size=body_limit, middlewares=[*guard, *forwarding])
    app.on_response_prepare.append(_on_response_prepare)
    verb = _verb_handler(service, body_limit, id_prefix)
    prefixes = tuple(path_prefixes)
    for prefix in ("", *prefixes):
        app.router.add_post(f"/{prefix.strip('/')}/{{verb}}".replace("//", "/"), verb)
    pages: Mapping[str, Handler] = {
        "/": _links_handler,
        "/livez": _health_handler,
        "/healthz": _health_handler,
        "/readyz": _ready_handler(service),
        "/metrics": _metrics_handler(service),
        "/decisions": decisions_handler(service),
        "/openapi.json": _openapi_handler(openapi_document(prefixes)),
    }
    for path, handler in pages.items():
        app.router.add_get(path, handler)
    app.router.add_route("*", "/{path:.*}", _unknown_path_handler(service, prefixes, pages))
    return app


def _client_authorization(client_authorizer: ClientCertAuthorizer, service: Service) -> Middleware:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        transport = request.transport
        certificate = None if transport is None else transport.get_extra_info("peercert")
        problem = client_authorizer.denial_reason(request.path, certificate)
        if problem:
            structlog.get_logger().warning("turned_away", path=request.path, problem=problem)
            if verb := request.match_info.get("verb", ""):
                service.metrics.requests.labels(_known(verb), "403").inc()
            return web.Response(status=403, text=f"reprieve: {problem}\n")
        return await handler(request)

    return guard


async def _on_response_prepare(request: web.Request, response: web.StreamResponse) -> None:
    if isinstance(response, web.HTTPException):  # raised by the router: 404 or 405
        response.body = f"reprieve: {response.status}: {response.reason}\n".encode()
        response.headers["Content-Length"] = str(len(response.body))
    if isinstance(request.protocol, ConnectionProtocol):
        request.protocol.response_started()


def _verb_handler(service: Service, body_limit: int, id_prefix: str) -> Handler:
    numbers = count(1)

    async def handle(request: web.Request) -> web.Response:
        verb = request.match_info["verb"]
        request_id = _received_request_id(request) or f"{id_prefix}-{next(numbers)}"
        trace = RequestTrace(_parent_trace_headers(service, request))
        # Each request is handled in a task, which has a context of its own.
        structlog.contextvars.bind_contextvars(request_id=request_id)
        body = await _read_call(service, request, verb, trace, body_limit)
        if isinstance(body, bytes):
            call = VerbCall(verb, body, trace.arrived, request_id, trace)
            response = await handle_verb(service, call)
        else:
            response = body
        response.headers[REQUEST_ID] = request_id
        known = _known(verb)
        service.metrics.requests.labels(known, str(response.status)).inc()
        _export_trace(service, known, request_id, trace, response)
        return response

    return handle


def _known(verb: str) -> str:
    """Return the verb as a label: clients cannot add labels."""
    return verb if verb in VERBS else UNKNOWN


def _unknown_path_handler(
    service: Service, prefixes: Iterable[str], pages: Container[str]
) -> Handler:
    """Return the handler of all other paths, which are often those of a missing prefix."""
    bases = ("", *(f"/{prefix.strip('/')}" for prefix in prefixes))
    calls = frozenset(f"{base}/{verb}" for base in bases for verb in VERBS)
    expected = f"expected {', '.join(sorted(calls))}; pathPrefixes adds others"

    async def refuse(request: web.Request) -> web.Response:
        if request.path in calls:
            raise web.HTTPMethodNotAllowed(request.method, ["POST"])
        if request.path in pages:
            raise web.HTTPMethodNotAllowed(request.method, ["GET"])
        if request.method != "POST":
            raise web.HTTPNotFound
        response = _error_response(service, UNKNOWN, 404, f"no path {request.path!r}; {expected}")
        service.metrics.requests.labels(UNKNOWN, "404").inc()
        return response

    return refuse


def _parent_trace_headers(service: Service, request: web.Request) -> Mapping[str, str]:
    if service.tracer is None:
        return {}
    return {name: request.headers[name] for name in PARENT_HEADERS if name in request.headers}


def _export_trace(
    service: Service, verb: str, request_id: str, trace: RequestTrace, response: web.Response
) -> None:
    if service.tracer is None:
        return
    ended = service.clock.monotonic()
    problem = "" if response.status == 200 else (response.text or "").strip()
    outcome = RequestResult(verb, request_id, response.status, problem, ended)
    # Scheduled after the recording of the answer; neither delays the response.
    asyncio.get_running_loop().call_soon(service.tracer.record, trace, outcome)


def _received_request_id(request: web.Request) -> str:
    received = request.headers.get(REQUEST_ID, "")
    return received if _REQUEST_ID_PATTERN.fullmatch(received) else ""


async def _read_call(
    service: Service, request: web.Request, verb: str, trace: RequestTrace, body_limit: int
) -> bytes | web.Response:
    """Return the body of a call, or the response to one whose body is not read."""
    try:
        trace.arrived = service.clock.monotonic()
        if isinstance(request.protocol, ConnectionProtocol) and request.protocol.exceeds_call_limit:
            problem = "overloaded: there are too many connections"
            response = _error_response(service, verb, 503, problem)
            response.force_close()
            return response
        if encoding := request.headers.get("Content-Encoding", ""):
            problem = f"Content-Encoding: {encoding!r}; expected a body that is not encoded"
            return _error_response(service, verb, 415, problem)
        body = await _read_body(request, body_limit)
        trace.step_ends[TraceStep.READING] = service.clock.monotonic()
    except web.HTTPRequestEntityTooLarge:
        problem = f"the body is larger than the limit of {body_limit} bytes"
        return _error_response(service, verb, 413, problem)
    except web.RequestPayloadError as error:
        return _error_response(service, verb, 400, f"the body cannot be read: {error}")
    except ConnectionError:
        if isinstance(request.protocol, ConnectionProtocol) and request.protocol.is_refused:
            return _error_response(service, verb, 503, OVERLOADED)
        return _error_response(service, verb, 408, "the connection ended before the body did")
    except Exception as error:  # noqa: BLE001 - as in handle_verb
        return _internal_error(service, verb, error)
    return body


async def handle_verb(service: Service, call: VerbCall) -> web.Response:
    """Return the response to a call whose body has been read."""
    try:
        answered = await service.call(call)
        # The answer is recorded after it is sent: kube-scheduler waits for the answer only.
        asyncio.get_running_loop().call_soon(answered.record)
        return web.Response(body=answered.body, content_type="application/json")
    except tuple(_STATUSES) as error:
        return _error_response(service, call.verb, _STATUSES[type(error)], str(error))
    except Exception as error:  # noqa: BLE001
        # The outermost handler: kube-scheduler must get a response, and the service must go on.
        return _internal_error(service, call.verb, error)


def _internal_error(service: Service, verb: str, error: Exception) -> web.Response:
    structlog.get_logger().error("internal_error", verb=verb, exc_info=error)
    return _error_response(service, verb, 500, f"internal error: {type(error).__name__}")


async def _read_body(request: web.Request, limit: int) -> bytes:
    length = request.content_length or 0
    if length > limit:  # the body need not be read
        raise web.HTTPRequestEntityTooLarge(limit, length)
    connection = request.protocol
    if not isinstance(connection, ConnectionProtocol):
        return await _join_chunks(request, limit)
    connection.header_read()
    body = await _join_chunks(request, limit)
    connection.body_read()
    return body


async def _join_chunks(request: web.Request, limit: int) -> bytes:
    body = bytearray()
    try:
        while chunk := await request.content.readany():
            body += chunk
            if len(body) > limit:
                raise web.HTTPRequestEntityTooLarge(limit, len(body))
        return bytes(body)
    finally:
        # An error keeps its frames, and so the body, until the next garbage collection.
        body.clear()


def _error_response(service: Service, verb: str, status: int, problem: str) -> web.Response:
    # Names come from the caller: they may be long, and contain line breaks.
    line = shortened(" ".join(problem.split()))
    service.decision_log.log_refusal(verb, status, line)
    headers = _RETRY_AFTER.get(status)
    return web.Response(status=status, text=f"reprieve: {line}\n", headers=headers)


_LINKS: Final = ("/readyz?verbose", "/livez", "/metrics", "/decisions", "/openapi.json")


async def _links_handler(_: web.Request) -> web.Response:
    """Return a page with links, for browsers; kube-scheduler calls the verbs by POST."""
    verbs = ", ".join(f"POST /{verb}" for verb in VERBS)
    links = "".join(f'<li><a href="{link}">{link}</a></li>' for link in _LINKS)
    page = f"<!DOCTYPE html><title>Reprieve</title><h1>Reprieve</h1><p>{verbs}</p><ul>{links}</ul>"
    return web.Response(text=f"{page}\n", content_type="text/html")


async def _health_handler(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


def _ready_handler(service: Service) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        problem = service.readiness.problem()
        lines = [*service.readiness.verbose_lines()] if "verbose" in request.query else []
        lines.append(f"not ready: {problem}" if problem else "ok")
        status = 503 if problem else 200
        headers = _RETRY_AFTER.get(status)
        return web.Response(status=status, text="\n".join(lines) + "\n", headers=headers)

    return handle


def _metrics_handler(service: Service) -> Handler:
    async def handle(_: web.Request) -> web.Response:
        body = service.scrape()
        if service.others is not None:
            body = await service.others.sum_metrics(body)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})

    return handle


_DECISION_PARAMETERS: Final = ("limit", "pod", "verb")


def decisions_handler(service: Service) -> Handler:
    """Return the handler of ``/decisions``."""

    async def handle(request: web.Request) -> web.Response:
        query = request.query
        if problem := _query_problem(query):
            return web.Response(status=400, text=f"reprieve: {shortened(problem)}\n")
        size = parse_integer(query.get("limit", ""), INT32_MAX)
        body = service.decision_history.document(size, query.get("pod"), query.get("verb"))
        if service.others is not None:
            body = await service.others.merge_decisions(body, query)
        return web.Response(body=body, content_type="application/json")

    return handle


def _query_problem(query: Mapping[str, str]) -> str:
    """Return why a query of ``/decisions`` is invalid, "" if it is valid."""
    for name in query:
        if name not in _DECISION_PARAMETERS:
            similar = similar_name(name, _DECISION_PARAMETERS)
            hint = f"; did you mean {similar}?" if similar else ""
            known = ", ".join(_DECISION_PARAMETERS)
            return f"unknown parameter {name!r}; expected some of {known}{hint}"
    limit, verb = query.get("limit", ""), query.get("verb")
    size = parse_integer(limit, INT32_MAX)
    if limit and (size is None or size < 0):
        return f"limit: {limit!r} is not a valid number of decisions"
    if verb is not None and verb not in VERBS:
        return f"verb: {verb!r}; expected one of {', '.join(VERBS)}"
    return ""


def _openapi_handler(body: bytes) -> Handler:
    async def handle(_: web.Request) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    return handle
