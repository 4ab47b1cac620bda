"""What an API server says when it says no.

A refusal comes as a `Status` object, in a response's body or as the object of a watch's ERROR
frame. Proxies in between answer in whatever they like, so the body may also be any text. The
error keeps the machine's words (status, reason, causes) for decisions and renders one line for
people: what was asked, what came back, and whose move it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

import msgspec

from extender.kube.transport import Request

_TOO_LARGE = "ResourceVersionTooLarge"
_SHOWN_CHARS = 300
_WHOSE_MOVE = {
    400: "the request is wrong",
    401: "the server does not accept our credentials; renew them",
    403: "our account may not do this; grant it by RBAC",
    404: "the server does not have it",
    409: "someone else changed it first; read it again",
    410: "the server no longer keeps that version; list again",
    415: "the server does not read this content type",
    422: "the object is not valid",
    429: "the server is busy or forbids it for now; try again later",
}


class MalformedError(Exception):
    """An answer that is not Kubernetes JSON. The peer's fault; what it meant is unknown."""


class NestedTooDeeplyError(MalformedError):
    """An answer with an object that is nested more deeply than is read."""

    def __init__(self, asked: Request) -> None:
        super().__init__(f"{asked}: an object is nested too deeply")


class ApiError(Exception):
    """A refusal by the API server.

    `status` is the HTTP code, `reason` the machine-readable word (`Conflict`, `Expired`, ...),
    `retry_after` the seconds the server asks to wait (None if it does not), `causes` the
    reasons of the Status's causes.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        retry_after: float | None = None,
        causes: tuple[str, ...] = (),
        asked: str = "",
    ) -> None:
        super().__init__(status, reason, message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        self.causes = causes
        self.asked = asked

    def __str__(self) -> str:
        said = f"{self.status} {self.reason}: {self.message}"
        line = f"{self.asked}: {said}" if self.asked else said
        return f"{line} ({self.whose_move})"

    @property
    def whose_move(self) -> str:
        """Whose fault it is and what to do, in a few words."""
        fallback = "the server failed; try again" if self.status >= 500 else "unexpected"
        return _WHOSE_MOVE.get(self.status, fallback)

    @property
    def expired(self) -> bool:
        """The resourceVersion or continue token is older than the server remembers."""
        return self.status == 410 or self.reason in ("Expired", "Gone")

    @property
    def ahead_of_server(self) -> bool:
        """The resourceVersion is newer than the server knows (it was restored, or lags)."""
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
    """The refusal in a response, whoever wrote it. `headers` have lower-case names."""
    said = _said(body)
    said.code = status
    return _error(request, said, _seconds(headers.get("retry-after", "")))


def error_from_status(request: Request, status: bytes) -> ApiError:
    """The refusal in a watch's ERROR frame. Raises msgspec.DecodeError if it is no Status."""
    return _error(request, _statuses.decode(status), None)


def _said(body: bytes) -> _Status:
    try:
        said = _statuses.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        said = _Status()
    text = " ".join(body.decode(errors="replace").split())[:_SHOWN_CHARS]
    return said if said.kind == "Status" else _Status(message=text or "empty answer")


def _error(request: Request, said: _Status, header_seconds: float | None) -> ApiError:
    details = said.details or _Details()
    return ApiError(
        status=said.code,
        reason=said.reason or _phrase(said.code),
        message=said.message,
        retry_after=float(details.retry_after_seconds) or header_seconds,
        causes=tuple(cause.reason for cause in details.causes or ()),
        asked=str(request),
    )


def _seconds(header: str) -> float | None:
    """Retry-After in seconds; its other form, a date, is not used by Kubernetes."""
    return float(header) if header.isascii() and header.isdigit() else None


def _phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return "Unknown"
