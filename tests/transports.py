"""Transports of tests: a wrapper around another one, and answers without a server."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import orjson

from extender.kube.rest.transport import Request, Response, Stream, Transport
from tests.builders import Document, encoded


class TransportWrapper:
    """A transport that passes everything on to another one; subclasses change some of it."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def request(self, request: Request) -> Response:
        return await self._transport.request(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        return self._transport.stream(request)

    async def close(self) -> None:
        await self._transport.close()


class AnsweringTransport:
    """A transport that answers each request by a function, and records the requests."""

    def __init__(self, answer: Callable[[Request], Response]) -> None:
        self._answer = answer
        self.requests: list[Request] = []

    async def request(self, request: Request) -> Response:
        self.requests.append(request)
        return self._answer(request)

    def stream(self, request: Request) -> Any:
        raise AssertionError(f"a watch was not expected: {request}")

    async def close(self) -> None:
        """Nothing to close."""

    def bodies(self, method: str) -> list[Document]:
        """Return the bodies of the requests of a method."""
        return [
            orjson.loads(each.body or b"null") for each in self.requests if each.method == method
        ]


def refusal(status: int, reason: str = "Refused") -> Response:
    """Build the response to a refused request."""
    body = {"kind": "Status", "code": status, "reason": reason, "message": f"{status} {reason}"}
    return Response(status, encoded(body))


def success(document: Document) -> Response:
    """Build a response with an object."""
    return Response(200, encoded(document))
