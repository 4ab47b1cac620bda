"""The application that serves the page of the ledger below ``/ui/``.

Each page answers with HTML, or with the same content as JSON for ``?format=json`` or
``Accept: application/json``. All but the static files and the login need the token.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final
from urllib.parse import parse_qsl

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from extender.kube.rest.clock import Clock
from extender.ledger.storage.database import LedgerError
from extender.ledger.storage.queries import Ledger
from extender.ledger_page.access import (
    COOKIE,
    RETRY_SECONDS,
    SESSION_SECONDS,
    FailedAttempts,
    Sessions,
    bearer_token,
    is_allowed_host,
    local_path,
)
from extender.ledger_page.nodes_view import NodeSource
from extender.ledger_page.page_query import QueryError
from extender.ledger_page.pages import Counterfactuals, NotFoundError, Pages
from extender.ledger_page.rendering import HEADERS, Renderer, wants_json
from extender.ledger_page.view import Link, View
from extender.secure_serving.connection_limits import ConnectionProtocol
from extender.terminal.log_limits import shortened

LOGIN: Final = "/ui/login"
_STATIC: Final = "/ui/static/"
_BODY_LIMIT: Final = 8192

Page = Callable[[web.Request], Awaitable[View]]


@dataclass(frozen=True, slots=True)
class PageOptions:
    """What the page needs and offers.

    ``token`` is never empty. ``hosts`` are the names, beside the loopback ones, by which browsers
    reach the page. ``counterfactuals`` computes what would have spared a victim, ``nodes`` returns
    the nodes of the map; without them, the page does not offer these.
    """

    token: str
    hosts: frozenset[str] = field(default_factory=frozenset)
    counterfactuals: Counterfactuals | None = None
    nodes: NodeSource | None = None


def build_ui_app(ledger: Ledger, options: PageOptions, clock: Clock) -> web.Application:
    """Return the application. Raise ValueError if there is no token."""
    menu = [Link(label="Timeline", url="/ui/"), Link(label="Pressure", url="/ui/pressure")]
    if options.nodes is not None:
        menu.append(Link(label="Nodes", url="/ui/nodes"))
    renderer = Renderer(ledger.location, menu)
    sessions, attempts = Sessions(options.token, clock), FailedAttempts(clock)
    app = web.Application(
        client_max_size=_BODY_LIMIT,
        middlewares=[
            _errors(renderer),
            _host_check(renderer, options.hosts),
            _authentication(renderer, sessions, attempts),
        ],
    )
    app.on_response_prepare.append(_on_response_prepare)
    pages = Pages(ledger, clock, options.counterfactuals, options.nodes)
    served: dict[str, tuple[str, Page]] = {
        "/ui/": ("timeline.html", pages.timeline),
        "/ui/decisions/{id}": ("decision.html", pages.decision),
        "/ui/pods/{namespace}/{name}": ("pod.html", pages.pod),
        "/ui/pressure": ("pressure.html", pages.pressure),
    }
    if options.nodes is not None:
        served["/ui/nodes"] = ("nodes.html", pages.nodes)
    for path, (template, page) in served.items():
        app.router.add_get(path, _page_handler(renderer, template, page))
    app.router.add_get("/", _redirect_home)
    app.router.add_get("/ui", _redirect_home)
    app.router.add_get("/ui/pods", pages.find_pod)
    app.router.add_get(f"{_STATIC}{{name}}", partial(_static, renderer))
    app.router.add_get(LOGIN, _redirect_home)
    app.router.add_post(LOGIN, partial(_login, renderer, sessions, attempts))
    return app


def _page_handler(renderer: Renderer, template: str, page: Page) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        return renderer.response(request, template, await page(request))

    return handle


async def _redirect_home(_: web.Request) -> web.StreamResponse:
    raise web.HTTPSeeOther("/ui/")


async def _static(renderer: Renderer, request: web.Request) -> web.StreamResponse:
    found = renderer.static(request.match_info["name"])
    if found is None:
        raise web.HTTPNotFound
    return found


async def _login(
    renderer: Renderer, sessions: Sessions, attempts: FailedAttempts, request: web.Request
) -> web.StreamResponse:
    form = dict(parse_qsl((await request.read()).decode(errors="replace")))
    path = local_path(form.get("next", ""))
    if not sessions.is_token(form.get("token", "").strip()):
        attempts.record(_client(request))
        problem = "This is not the token. Expected the one that the server was started with."
        return renderer.html(401, "login.html", problem=problem, back=path)
    response = web.Response(status=303, headers={"Location": path})
    response.set_cookie(
        COOKIE,
        sessions.issue(),
        path="/ui",
        max_age=SESSION_SECONDS,
        httponly=True,
        samesite="Strict",
        secure=request.secure,
    )
    return response


def _authentication(renderer: Renderer, sessions: Sessions, attempts: FailedAttempts) -> Middleware:
    @web.middleware
    async def authenticate(request: web.Request, handler: Handler) -> web.StreamResponse:
        is_login = request.path == LOGIN and request.method == "POST"
        if request.path.startswith(_STATIC) or sessions.is_session(request.cookies.get(COOKIE, "")):
            return await handler(request)
        given, client = bearer_token(request.headers.get("Authorization", "")), _client(request)
        if (given or is_login) and attempts.are_too_many(client):
            problem = f"too many failed attempts; try again in {RETRY_SECONDS} s"
            response = renderer.error(request, 429, problem)
            response.headers["Retry-After"] = str(RETRY_SECONDS)
            return response
        if is_login or (given and sessions.is_token(given)):
            return await handler(request)
        if given:
            attempts.record(client)
        return _unauthorized(renderer, request)

    return authenticate


def _unauthorized(renderer: Renderer, request: web.Request) -> web.StreamResponse:
    if wants_json(request):
        problem = "the token is missing or wrong; expected Authorization: Bearer TOKEN"
        response = renderer.error(request, 401, problem)
    else:
        response = renderer.html(401, "login.html", problem="", back=request.path_qs)
    response.headers["WWW-Authenticate"] = 'Bearer realm="reprieve ledger"'
    return response


def _host_check(renderer: Renderer, hosts: frozenset[str]) -> Middleware:
    allowed = frozenset(host.lower() for host in hosts)

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        host = request.headers.get("Host", "")
        if is_allowed_host(host, allowed):
            return await handler(request)
        problem = f"Host: {shortened(host, 100)!r} is not allowed"
        expected = "expected localhost, or a host that the configuration names"
        return renderer.error(request, 421, f"{problem}; {expected}")

    return check


def _errors(renderer: Renderer) -> Middleware:
    @web.middleware
    async def answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
        if isinstance(
            request.protocol, ConnectionProtocol
        ):  # the request has no body, or a small one
            request.protocol.header_read()
            request.protocol.body_read()
        try:
            return await handler(request)
        except QueryError as error:
            return renderer.error(request, 400, _line(error))
        except NotFoundError as error:
            return renderer.error(request, 404, _line(error))
        except LedgerError as error:
            return renderer.error(request, 503, f"the ledger cannot be read: {_line(error)}")
        except web.HTTPNotFound:
            problem = f"there is no page {shortened(request.path, 300)!r}"
            return renderer.error(request, 404, problem)
        except web.HTTPMethodNotAllowed as error:
            problem = f"the method {error.method} is not allowed; expected GET or HEAD"
            response = renderer.error(request, 405, problem)
            response.headers["Allow"] = "GET, HEAD"
            return response
        except web.HTTPRequestEntityTooLarge:
            return renderer.error(request, 413, f"the body is larger than {_BODY_LIMIT} bytes")

    return answer_errors


def _line(error: Exception) -> str:
    return shortened(" ".join(str(error).split()))


def _client(request: web.Request) -> str:
    return request.remote or ""


async def _on_response_prepare(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)
    if isinstance(request.protocol, ConnectionProtocol):
        request.protocol.response_started()
