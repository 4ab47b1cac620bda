"""Errors of API requests, as in apimachinery's api/errors.

The API server reports an error as a `Status` object: in the body of a response, or as the object
of a watch's ERROR frame. A proxy in between may answer with any other text. An `ApiError` keeps
the machine-readable fields (status, reason, causes) for decisions. Its text is one line: the
request, the server's message, and a remedy. Reflectors distinguish three classes of errors:

    401 403 408 429 5xx, no response  the same request may succeed later
    410, version ahead of the server  the requested version can no longer be used
    any other error, malformed frame  the same request would fail again

A version is ahead of the server (504, "Too large resource version") when the server was restored
or lags. Source: client-go's tools/cache/reflector.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, TypeAlias

import msgspec

from extender.kube.rest.transport import Request, TransportError
from policies.kubernetes.input_error import InputError

MAX_RETRY_AFTER_SECONDS: Final = 300.0

_TOO_LARGE = "ResourceVersionTooLarge"
_SHOWN_CHARS = 300
_RETRIABLE: Final = frozenset({401, 403, 408, 429})
_REMEDIES = {
    400: "the request is invalid",
    401: "the server does not accept our credentials; renew them",
    403: "the account has no permission; grant it with RBAC",
    404: "the resource does not exist",
    409: "the object has been modified; read it again",
    410: "the resource version has expired; list again",
    415: "the server does not support this content type",
    422: "the object is invalid",
    429: "the server is busy or does not allow it now; try again later",
}


class ConnectionConfigError(InputError):
    """The client configuration is incomplete; the text names problem, source and remedy."""


class MalformedError(Exception):
    """A response that is not Kubernetes JSON. The peer sent it; its meaning is unknown."""


class NestedTooDeeplyError(MalformedError):
    """A response with an object that is nested too deeply to be decoded."""

    def __init__(self, request: Request) -> None:
        super().__init__(f"{request}: an object is nested too deeply")


class ApiError(Exception):
    """An error response of the API server.

    `status` is the HTTP code, `reason` the machine-readable reason (`Conflict`, `Expired`, ...),
    `retry_after` the delay in seconds that the server asks for (None without one), `causes` the
    reasons of the Status's causes.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        retry_after: float | None = None,
        causes: tuple[str, ...] = (),
        request: str = "",
    ) -> None:
        super().__init__(status, reason, message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        self.causes = causes
        self.request = request

    def __str__(self) -> str:
        prefix = f"{self.request}: " if self.request else ""
        return f"{prefix}{self.status} {self.reason}: {self.message} ({self.remedy})"

    @property
    def remedy(self) -> str:
        """The remedy, or the cause of the error, in a few words."""
        fallback = "the server failed; try again" if self.status >= 500 else "unexpected"
        return _REMEDIES.get(self.status, fallback)

    @property
    def expired(self) -> bool:
        """Whether the resourceVersion or continue token is older than the server's history."""
        return self.status == 410 or self.reason in ("Expired", "Gone")

    @property
    def ahead_of_server(self) -> bool:
        """Whether the resourceVersion is newer than the server's (it was restored, or lags)."""
        return _TOO_LARGE in self.causes or "Too large resource version" in self.message


class _Cause(msgspec.Struct):
    reason: str = ""


class _Details(msgspec.Struct, rename="camel"):
    causes: list[_Cause] | None = None
    retry_after_seconds: int = 0


class _Status(msgspec.Struct):
    kind: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None


_statuses = msgspec.json.Decoder(_Status)


def error_from_body(
    request: Request, status: int, headers: Mapping[str, str], body: bytes
) -> ApiError:
    """Return the error of a response, sent by the API server or a proxy.

    `headers` have lower-case names.
    """
    decoded = _decode_status(body)
    decoded.code = status
    return _api_error(request, decoded, _parse_retry_after(headers.get("retry-after", "")))


def error_from_status(request: Request, status: bytes) -> ApiError:
    """Return the error of a watch's ERROR frame. Raise msgspec.DecodeError if it is no Status."""
    return _api_error(request, _statuses.decode(status), None)


def _decode_status(body: bytes) -> _Status:
    try:
        status = _statuses.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        status = _Status()
    text = " ".join(body.decode(errors="replace").split())[:_SHOWN_CHARS]
    return status if status.kind == "Status" else _Status(message=text or "empty answer")


def _api_error(request: Request, status: _Status, header_seconds: float | None) -> ApiError:
    details = status.details or _Details()
    return ApiError(
        status=status.code,
        reason=status.reason or _phrase(status.code),
        message=status.message,
        retry_after=float(details.retry_after_seconds) or header_seconds,
        causes=tuple(cause.reason for cause in details.causes or ()),
        request=str(request),
    )


def _parse_retry_after(header: str) -> float | None:
    """Parse Retry-After as seconds; Kubernetes does not use its other format, a date."""
    return float(header) if header.isascii() and header.isdigit() else None


def _phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return "Unknown"


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
