"""Classification of list and watch errors, for reflectors.

    401 403 408 429 5xx, no response  the same request may succeed later
    410, version ahead of the server  the requested version can no longer be used
    any other error, malformed frame  the same request would fail again

A version is ahead of the server (504, "Too large resource version") when the server was restored
or lags. Source: client-go's tools/cache/reflector.go.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from extender.kube.api_error import ApiError, MalformedError
from extender.kube.transport import TransportError

MAX_RETRY_AFTER_SECONDS: Final = 300.0

_RETRIABLE: Final = frozenset({401, 403, 408, 429})

RequestError: TypeAlias = ApiError | MalformedError | TransportError


def is_retriable(error: RequestError) -> bool:
    """Return whether the same request may succeed later."""
    if isinstance(error, ApiError):
        later = error.status in _RETRIABLE or error.status >= 500
        return later and not is_version_unusable(error)
    return isinstance(error, TransportError)


def is_version_unusable(error: RequestError) -> bool:
    """Return whether the server cannot serve the requested resourceVersion."""
    return isinstance(error, ApiError) and (error.expired or error.ahead_of_server)


def requested_delay(error: RequestError) -> float:
    """Return the delay that the server asks for, in seconds, at most 300; 0 without one."""
    seconds = error.retry_after if isinstance(error, ApiError) else None
    return min(seconds or 0.0, MAX_RETRY_AFTER_SECONDS)


def error_kind(error: RequestError) -> str:
    """Return the kind of an error; errors of one kind count as the same error."""
    if isinstance(error, ApiError):
        return f"{error.status} {error.reason}"
    return type(error).__name__
