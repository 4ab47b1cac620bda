"""The API server as pure functions and values."""

from __future__ import annotations

from fakeapi.apiserver.endpoints.request_router import Api
from fakeapi.apiserver.objects.metadata import IdAndTimeSources
from fakeapi.apiserver.watch.watch_cursor import Watch
from fakeapi.apiserver.wire.errors import StatusError
from fakeapi.apiserver.wire.http_messages import Request, Response, parse_query

__all__ = ["Api", "IdAndTimeSources", "Request", "Response", "StatusError", "Watch", "parse_query"]
