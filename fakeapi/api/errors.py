"""Refusals: the ``Status`` documents that clients of a real API server know.

Clients compare reasons, codes and sometimes the whole text, so words and key order are upstream's:
kind, apiVersion, metadata, status, message, reason, details (name, group, kind, causes,
retryAfterSeconds), code; compact JSON and a newline.

Source: k8s.io/apimachinery/pkg/api/errors/errors.go and apis/meta/v1/types.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from fakeapi.api.messages import Response
from fakeapi.kinds import Kind

MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause inside a Status: what kind of fault, in words, in which field.

    ``detail`` is the end of the message: the rule without the sort of fault and the value.
    """

    reason: str
    message: str
    field: str = ""
    detail: str = ""

    def document(self) -> dict[str, str]:
        """Return the cause as JSON, empty members left out."""
        members = {"reason": self.reason, "message": self.message, "field": self.field}
        return {name: value for name, value in members.items() if value}


class StatusError(Exception):
    """A request that is answered with a Status instead of what it asked for.

    ``continue_token`` is put into the Status' metadata (an expired list offers one). ``warnings``
    become headers of the answer.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        *,
        continue_token: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.continue_token = continue_token
        self.warnings: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the Status as JSON."""
        metadata = {"continue": self.continue_token} if self.continue_token else {}
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = {k: v for k, v in self.details.items() if v}
        return {**status, "code": self.code}

    def response(self) -> Response:
        """Return the answer to send."""
        body = orjson.dumps(self.document()) + b"\n"
        return Response(self.code, body, warnings=self.warnings)


def _object(kind: Kind, name: str) -> dict[str, Any]:
    return {"name": name, "group": kind.group, "kind": kind.plural}


def not_found(kind: Kind, name: str) -> StatusError:
    """404: there is no such object."""
    message = f'{kind.resource} "{name}" not found'
    return StatusError(404, "NotFound", message, _object(kind, name))


def unknown_resource() -> StatusError:
    """404: the group and version exist, but not the resource below them."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed() -> StatusError:
    """405: the resource exists, but not this verb on it."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, {})


def not_served(kind: Kind, subresource: str) -> StatusError:
    """501: a subresource that leads to a node's kubelet or into a pod, and there are none here."""
    message = f"{kind.plural}/{subresource} is not served: there is nothing behind this object"
    return StatusError(501, "NotImplemented", message, {})


def already_exists(kind: Kind, name: str) -> StatusError:
    """409: a create found the name taken."""
    message = f'{kind.resource} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, _object(kind, name))


def conflict(kind: Kind, name: str, why: str = MODIFIED) -> StatusError:
    """409: the write was based on an older version or another object."""
    message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
    return StatusError(409, "Conflict", message, _object(kind, name))


def generated_name_taken(kind: Kind, name: str) -> StatusError:
    """409: no name could be generated that is free; ``name`` is the last one tried."""
    why = "already exists, the server was not able to generate a unique name for the object"
    details = _object(kind, name) | {"retryAfterSeconds": 1}
    return StatusError(409, "AlreadyExists", f'{kind.resource} "{name}" {why}', details)


def storage_conflict(kind: Kind, namespace: str, name: str, why: str) -> StatusError:
    """409: the storage refuses the write; ``why`` says what it found."""
    key = "/".join(filter(None, (kind.plural, namespace, name)))
    head = f"StorageError: invalid object, Code: 4, Key: /registry/{key}, ResourceVersion: 0"
    return conflict(kind, name, f"{head}, AdditionalErrorMsg: {why}")


def too_many_requests(why: str, causes: Sequence[Cause], seconds: int = 0) -> StatusError:
    """429: not now; after ``seconds`` (0: nobody knows when) the client may ask again."""
    details = {"causes": [cause.document() for cause in causes], "retryAfterSeconds": seconds}
    return StatusError(429, "TooManyRequests", why, details)


def unauthorized() -> StatusError:
    """401: the credentials are missing or nobody's."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def forbidden(kind: Kind, name: str, why: str, causes: Sequence[Cause] = ()) -> StatusError:
    """403: admission does not let the write pass."""
    details = _object(kind, name) | {"causes": [cause.document() for cause in causes]}
    message = f'{kind.resource} "{name}" is forbidden: {why}'
    return StatusError(403, "Forbidden", message, details)


def invalid(qualified_kind: str, name: str, causes: Sequence[Cause]) -> StatusError:
    """422: the object or the options break a rule; ``qualified_kind`` is kind.group."""
    kind, _, group = qualified_kind.partition(".")
    faults = [f"{cause.field}: {cause.message}" for cause in causes]
    listed = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
    details = {"name": name, "group": group, "kind": kind}
    return StatusError(
        422,
        "Invalid",
        f'{qualified_kind} "{name}" is invalid: {listed}',
        details | {"causes": [cause.document() for cause in causes]},
    )


def bad_request(message: str) -> StatusError:
    """400: the request cannot be understood."""
    return StatusError(400, "BadRequest", message)


def expired(message: str, continue_token: str = "") -> StatusError:
    """410: the version asked for is older than the history."""
    return StatusError(410, "Expired", message, continue_token=continue_token)


def too_large_version(asked: int, current: int) -> StatusError:
    """504: the version asked for has not been reached yet; the client may retry."""
    cause = Cause("ResourceVersionTooLarge", "Too large resource version")
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    details = {"causes": [cause.document()], "retryAfterSeconds": 1}
    return StatusError(504, "Timeout", message, details)


def too_large_body(limit: int) -> StatusError:
    """413: the body has more than ``limit`` bytes."""
    message = f"Request entity too large: limit is {limit}"
    return StatusError(413, "RequestEntityTooLarge", message)


def request_timeout() -> StatusError:
    """504: the request took too long to arrive."""
    message = (
        "Timeout: request did not complete within the allotted timeout: the body did not arrive"
    )
    return StatusError(504, "Timeout", message, {})


def unsupported_media_type(accepted: Sequence[str]) -> StatusError:
    """415: the body is in none of the ``accepted`` formats."""
    message = (
        "the body of the request was in an unknown format - "
        f"accepted media types include: {', '.join(accepted)}"
    )
    return StatusError(415, "UnsupportedMediaType", message, {})


def not_acceptable(offered: Sequence[str]) -> StatusError:
    """406: the client accepts none of the ``offered`` formats."""
    message = f"only the following media types are accepted: {', '.join(offered)}"
    return StatusError(406, "NotAcceptable", message, {})


def unprocessable_patch() -> StatusError:
    """422: the patch is well-formed but does not apply to the object."""
    message = "the server rejected our request due to an error in our request"
    return StatusError(422, "Invalid", message, {})


def internal_error(why: str) -> StatusError:
    """500: a fault of this server."""
    cause = Cause("", why)
    message = f"Internal error occurred: {why}"
    return StatusError(500, "InternalError", message, {"causes": [cause.document()]})
