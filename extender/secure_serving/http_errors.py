"""Refusal of bytes that are no valid HTTP request: one line for the client and for the log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final

import structlog
from aiohttp import web
from aiohttp.http_exceptions import InvalidURLError

RequestHandler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
"""Answers one request."""

_CONTINUE: Final = "100-continue"


class StrictRequestHandler(web.RequestHandler):
    """The protocol of a connection, which answers and logs invalid HTTP with one line.

    The received data is not repeated, since it may contain a secret.
    """

    __slots__ = ()

    def __init__(self, server: web.Server, **options: Any) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), **options)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return an error response of one line for invalid HTTP; log it and close the connection.

        Raise ConnectionError if the client is gone, or a response has begun already.
        """
        if isinstance(exc, ConnectionError):  # the client is gone
            raise exc
        problem = _problem(exc, message or HTTPStatus(status).phrase)
        cause = exc if message is None else None  # without a message it is an internal error
        structlog.get_logger().warning("refused", status=status, problem=problem, exc_info=cause)
        if request.writer.output_size > 0:
            raise ConnectionError("the response has already begun")
        response = web.Response(status=status, text=f"reprieve: {problem}\n")
        response.force_close()
        return response


class StrictServer(web.Server):
    """A server whose connections have this protocol; ``options`` are those of the protocol."""

    def __init__(
        self,
        handler: RequestHandler,
        *,
        handler_cancellation: bool,
        **options: Any,
    ) -> None:
        super().__init__(handler, handler_cancellation=handler_cancellation)
        self._options = options

    def __call__(self) -> StrictRequestHandler:
        """Return the protocol of a new connection."""
        return StrictRequestHandler(self, **self._options)


def refuse_unknown_expectations(serve: RequestHandler) -> RequestHandler:
    """Return a handler that answers 417 to a header Expect that is not ``100-continue``.

    aiohttp's own answer repeats the header.
    """

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        if request.headers.get("Expect", _CONTINUE).lower() == _CONTINUE:
            return await serve(request)
        problem = f"the header Expect is not known; expected {_CONTINUE}"
        structlog.get_logger().warning("refused", status=417, problem=problem)
        response = web.Response(status=417, text=f"reprieve: {problem}\n")
        response.force_close()
        return response

    return handle


def _problem(error: BaseException | None, message: str) -> str:
    """Return the parser's message without the received bytes."""
    if isinstance(error, InvalidURLError):  # its message is the URL
        return "the request target is not valid; expected a path or a URL"
    return message.partition("\n")[0].partition(": ")[0].rstrip(": ")
