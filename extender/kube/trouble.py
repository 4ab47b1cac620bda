"""What trouble with a list or a watch means for whoever follows a resource.

    401 403 408 429 5xx, no answer    the same request may succeed later
    410, version ahead of the server  the version that was asked for is of no use any more
    any other error, malformed frame  the same request would fail again

A version is ahead of the server (504, "Too large resource version") when the server was restored
or lags; client-go's tools/cache/reflector.go is the source of these rules.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from extender.kube.api_error import ApiError, MalformedError
from extender.kube.transport import TransportError

MAX_RETRY_AFTER_SECONDS: Final = 300.0

_REPEATABLE: Final = frozenset({401, 403, 408, 429})

Trouble: TypeAlias = ApiError | MalformedError | TransportError


def repeatable(trouble: Trouble) -> bool:
    """Whether the same request may succeed later."""
    if isinstance(trouble, ApiError):
        later = trouble.status in _REPEATABLE or trouble.status >= 500
        return later and not version_unusable(trouble)
    return isinstance(trouble, TransportError)


def version_unusable(trouble: Trouble) -> bool:
    """Whether the server cannot go on from the version that it was asked for."""
    return isinstance(trouble, ApiError) and (trouble.expired or trouble.ahead_of_server)


def asked_to_wait(trouble: Trouble) -> float:
    """Seconds that the server asks to wait, 0 if it does not; five minutes at most."""
    seconds = trouble.retry_after if isinstance(trouble, ApiError) else None
    return min(seconds or 0.0, MAX_RETRY_AFTER_SECONDS)


def kind_of(trouble: Trouble) -> str:
    """What must change for trouble to count as different trouble."""
    if isinstance(trouble, ApiError):
        return f"{trouble.status} {trouble.reason}"
    return type(trouble).__name__
