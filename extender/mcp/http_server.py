"""The server of the tools over streamable HTTP, below ``/mcp``.

Every request needs the token. Requests for other names, or from pages of other origins, are
refused, so that a page in a browser cannot reach the server by DNS rebinding. No session is kept.
"""

from __future__ import annotations

import socket
from asyncio import Event, create_task
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from hmac import compare_digest
from typing import Final

import uvicorn
from mcp.server.lowlevel.server import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from extender.mcp.address import Address
from policies.kubernetes.input_error import InputError

_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
_FINISH_SECONDS: Final = 2
_LARGEST_REQUEST: Final = 1_048_576


class ListenError(InputError):
    """An address cannot be listened on."""


class RequireToken:
    """An ASGI application that answers requests without the token with 401."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            sent = [value for name, value in scope["headers"] if name == b"authorization"]
            if len(sent) != 1 or not compare_digest(sent[0], self._expected):
                refused = PlainTextResponse(
                    "expected the header Authorization: Bearer TOKEN\n",
                    401,
                    {"WWW-Authenticate": "Bearer"},
                )
                await refused(scope, receive, send)
                return
        await self._app(scope, receive, send)


async def serve_http(
    server: Server[dict[str, object]],
    address: Address,
    stop: Event,
    started: Callable[[str], None],
) -> None:
    """Serve clients until ``stop`` is set; call ``started`` with the URL. Raise ListenError."""
    with _listen(address.host, address.port) as listener:
        host, port = listener.getsockname()[:2]
        app = server.streamable_http_app(
            json_response=True,
            stateless_http=True,
            max_request_body_size=_LARGEST_REQUEST,
            transport_security=_allowed((*_LOOPBACK, _in_url(address.host), *address.names)),
        )
        http = _HttpServer(
            uvicorn.Config(
                RequireToken(app, address.token),
                log_config=None,
                access_log=False,
                server_header=False,
                ws="none",
                timeout_graceful_shutdown=_FINISH_SECONDS,
            )
        )
        serving = create_task(http.serve([listener]))
        started(f"http://{_in_url(host)}:{port}")
        waiting = create_task(http.exit_after(stop))
        try:
            await serving
        finally:
            waiting.cancel()


class _HttpServer(uvicorn.Server):
    """A server that leaves signals to its caller."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle no signals."""
        yield

    async def exit_after(self, stop: Event) -> None:
        """Exit once ``stop`` is set."""
        await stop.wait()
        self.should_exit = True


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ListenError(f"--host {host}, --port {port}: cannot listen: {reason}") from None


def _allowed(names: Iterable[str]) -> TransportSecuritySettings:
    hosts = [host for name in dict.fromkeys(names) for host in (name, f"{name}:*")]
    origins = [f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
