"""The API server as pure functions and values."""

from __future__ import annotations

from fakeapi.api.dispatch import Api
from fakeapi.api.errors import StatusError
from fakeapi.api.messages import Request, Response, parse_query
from fakeapi.api.metadata import IdAndTimeSources
from fakeapi.api.watching import Watch

__all__ = ["Api", "IdAndTimeSources", "Request", "Response", "StatusError", "Watch", "parse_query"]
