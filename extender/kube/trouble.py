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

_REPEATABLE: Final = frozenset({401, 403, 408, 429})

Trouble: TypeAlias = ApiError | MalformedError | TransportError


def repeatable(trouble: Trouble) -> bool:
    """Return whether the same request may succeed later."""
    if isinstance(trouble, ApiError):
        later = trouble.status in _REPEATABLE or trouble.status >= 500
        return later and not version_unusable(trouble)
    return isinstance(trouble, TransportError)


def version_unusable(trouble: Trouble) -> bool:
    """Return whether the server cannot serve the requested resourceVersion."""
    return isinstance(trouble, ApiError) and (trouble.expired or trouble.ahead_of_server)


def asked_to_wait(trouble: Trouble) -> float:
    """Return the delay that the server asks for, in seconds, at most 300; 0 without one."""
    seconds = trouble.retry_after if isinstance(trouble, ApiError) else None
    return min(seconds or 0.0, MAX_RETRY_AFTER_SECONDS)


def kind_of(trouble: Trouble) -> str:
    """Return the kind of an error; errors of one kind count as the same error."""
    if isinstance(trouble, ApiError):
        return f"{trouble.status} {trouble.reason}"
    return type(trouble).__name__
