"""API errors: the ``Status`` documents that clients of a real API server expect.

Clients compare reasons, codes and sometimes the whole text, so wording and key order are
upstream's: kind, apiVersion, metadata, status, message, reason, details (name, group, kind, causes,
retryAfterSeconds), code; compact JSON and a newline. The field errors of a 422 have one function
for each type.

Sources: k8s.io/apimachinery/pkg/api/errors/errors.go, apis/meta/v1/types.go,
util/validation/field/errors.go.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.wire.go_format import quote
from fakeapi.apiserver.wire.http_messages import Response

OBJECT_MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause of a Status: type, message and field of an error.

    ``detail`` is the end of the message: the rule, without the type of the error and the value.
    """

    reason: str
    message: str
    field: str = ""
    detail: str = ""

    def document(self) -> dict[str, str]:
        """Return the cause as JSON, without empty members."""
        members = {"reason": self.reason, "message": self.message, "field": self.field}
        return {name: value for name, value in members.items() if value}


class StatusError(Exception):
    """A request that is answered with a Status of failure.

    ``continue_token`` is added to the metadata of the Status (an expired list returns one).
    ``warnings`` become headers of the response.
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
        """Return the response to send."""
        document = self.document()
        try:
            body = orjson.dumps(document)
        except orjson.JSONEncodeError:  # a lone surrogate, from a path that is no UTF-8
            body = json.dumps(document).encode()
        return Response(self.code, body + b"\n", warnings=self.warnings)


def _details(kind: ResourceInfo, name: str) -> dict[str, Any]:
    return {"name": name, "group": kind.group, "kind": kind.plural}


def not_found(kind: ResourceInfo, name: str) -> StatusError:
    """Return a 404 NotFound: the object does not exist."""
    message = f'{kind.resource} "{name}" not found'
    return StatusError(404, "NotFound", message, _details(kind, name))


def unknown_resource() -> StatusError:
    """Return a 404 NotFound: the group and version exist, the resource does not."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed() -> StatusError:
    """Return a 405 MethodNotAllowed: the resource does not support the verb."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, {})


def not_served(kind: ResourceInfo, subresource: str) -> StatusError:
    """Return a 501 for a subresource of a kubelet or of a running pod; neither exists here."""
    message = f"{kind.plural}/{subresource} is not served: there is nothing behind this object"
    return StatusError(501, "NotImplemented", message, {})


def already_exists(kind: ResourceInfo, name: str) -> StatusError:
    """Return a 409 AlreadyExists: the name of a create is taken."""
    message = f'{kind.resource} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, _details(kind, name))


def conflict(kind: ResourceInfo, name: str, detail: str = OBJECT_MODIFIED) -> StatusError:
    """Return a 409 Conflict: the write is based on an older version or another object."""
    message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {detail}'
    return StatusError(409, "Conflict", message, _details(kind, name))


def generated_name_conflict(kind: ResourceInfo, name: str) -> StatusError:
    """Return a 409 AlreadyExists: no generated name is free; ``name`` is the last one tried."""
    detail = "already exists, the server was not able to generate a unique name for the object"
    details = _details(kind, name) | {"retryAfterSeconds": 1}
    return StatusError(409, "AlreadyExists", f'{kind.resource} "{name}" {detail}', details)


def storage_conflict(kind: ResourceInfo, namespace: str, name: str, detail: str) -> StatusError:
    """Return a 409 Conflict: the storage rejects the write; ``detail`` is the reason."""
    key = "/".join(filter(None, (kind.plural, namespace, name)))
    head = f"StorageError: invalid object, Code: 4, Key: /registry/{key}, ResourceVersion: 0"
    return conflict(kind, name, f"{head}, AdditionalErrorMsg: {detail}")


def too_many_requests(detail: str, causes: Sequence[Cause], seconds: int = 0) -> StatusError:
    """Return a 429 TooManyRequests: retry after ``seconds`` (0: the time is unknown)."""
    details = {"causes": [cause.document() for cause in causes], "retryAfterSeconds": seconds}
    return StatusError(429, "TooManyRequests", detail, details)


def unauthorized() -> StatusError:
    """Return a 401 Unauthorized: the credentials are missing or unknown."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def forbidden(
    kind: ResourceInfo, name: str, detail: str, causes: Sequence[Cause] = ()
) -> StatusError:
    """Return a 403 Forbidden: admission rejects the write."""
    details = _details(kind, name) | {"causes": [cause.document() for cause in causes]}
    message = f'{kind.resource} "{name}" is forbidden: {detail}'
    return StatusError(403, "Forbidden", message, details)


def invalid(qualified_kind: str, name: str, causes: Sequence[Cause]) -> StatusError:
    """Return a 422 Invalid: the object or the options are invalid.

    ``qualified_kind`` is kind.group.
    """
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
    """Return a 400 BadRequest: the request cannot be understood."""
    return StatusError(400, "BadRequest", message)


def expired(message: str, continue_token: str = "") -> StatusError:
    """Return a 410 Expired: the requested version is older than the history."""
    return StatusError(410, "Expired", message, continue_token=continue_token)


def too_large_version(requested: int, current: int) -> StatusError:
    """Return a 504 Timeout: the requested version is not reached yet; the client may retry."""
    cause = Cause("ResourceVersionTooLarge", "Too large resource version")
    message = f"Timeout: Too large resource version: {requested}, current: {current}"
    details = {"causes": [cause.document()], "retryAfterSeconds": 1}
    return StatusError(504, "Timeout", message, details)


def too_large_body(limit: int) -> StatusError:
    """Return a 413 RequestEntityTooLarge: the body has more than ``limit`` bytes."""
    message = f"Request entity too large: limit is {limit}"
    return StatusError(413, "RequestEntityTooLarge", message)


def request_timeout() -> StatusError:
    """Return a 504 Timeout: the request took too long to arrive."""
    message = (
        "Timeout: request did not complete within the allotted timeout: the body did not arrive"
    )
    return StatusError(504, "Timeout", message, {})


def unsupported_media_type(accepted: Sequence[str]) -> StatusError:
    """Return a 415 UnsupportedMediaType: the body has none of the ``accepted`` formats."""
    message = (
        "the body of the request was in an unknown format - "
        f"accepted media types include: {', '.join(accepted)}"
    )
    return StatusError(415, "UnsupportedMediaType", message)


def unrouted_media_type() -> StatusError:
    """Return a 415 UnsupportedMediaType: no route of a built-in resource takes the format."""
    return StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def not_acceptable(offered: Sequence[str]) -> StatusError:
    """Return a 406 NotAcceptable: the client accepts none of the ``offered`` formats."""
    message = f"only the following media types are accepted: {', '.join(offered)}"
    return StatusError(406, "NotAcceptable", message)


def unprocessable_patch() -> StatusError:
    """Return a 422 Invalid: the patch is well-formed but does not apply to the object."""
    message = "the server rejected our request due to an error in our request"
    return StatusError(422, "Invalid", message, {})


def internal_error(detail: str) -> StatusError:
    """Return a 500 InternalError: an error of this server."""
    cause = Cause("", detail)
    message = f"Internal error occurred: {detail}"
    return StatusError(500, "InternalError", message, {"causes": [cause.document()]})


class GoFormattedValue(str):
    """A value that is already formatted for messages (Go prints structs in its own order)."""

    __slots__ = ()


def go_formatted(value: Any) -> GoFormattedValue:
    """Return a struct as Go encodes it in JSON: fields in their order, markup escaped."""
    return GoFormattedValue(orjson.dumps(value).decode().translate(_MARKUP))


_MARKUP = str.maketrans({mark: f"\\u{ord(mark):04x}" for mark in "<>&"})


def required(path: str, detail: str = "") -> Cause:
    """Return the error of a field that must be set."""
    return Cause("FieldValueRequired", _with_detail("Required value", detail), path, detail)


def invalid_value(path: str, value: Any, detail: str) -> Cause:
    """Return the error of a value that breaks a rule."""
    return Cause(
        "FieldValueInvalid", f"Invalid value: {format_value(value)}: {detail}", path, detail
    )


def unsupported_value(path: str, value: Any, supported: Sequence[str]) -> Cause:
    """Return the error of a value that is none of the supported ones."""
    listed = ", ".join(f'"{name}"' for name in supported)
    detail = f"supported values: {listed}"
    message = f"Unsupported value: {format_value(value)}: {detail}"
    return Cause("FieldValueNotSupported", message, path, detail)


def forbidden_field(path: str, detail: str) -> Cause:
    """Return the error of a field that may not be set or changed."""
    return Cause("FieldValueForbidden", _with_detail("Forbidden", detail), path, detail)


def too_many(path: str, count: int, most: int) -> Cause:
    """Return the error of a list of ``count`` elements that may have at most ``most``."""
    detail = f"must have at most {most} {'item' if most == 1 else 'items'}"
    return Cause("FieldValueTooMany", f"Too many: {count}: {detail}", path, detail)


def too_long(path: str, most: int) -> Cause:
    """Return the error of a value that may have at most ``most`` bytes."""
    detail = f"may not be more than {most} {'byte' if most == 1 else 'bytes'}"
    return Cause("FieldValueTooLong", f"Too long: {detail}", path, detail)


def duplicate(path: str, value: Any) -> Cause:
    """Return the error of a value that must be unique and occurs twice."""
    return Cause("FieldValueDuplicate", f"Duplicate value: {format_value(value)}", path)


def value_not_found(path: str, value: Any) -> Cause:
    """Return the error of a value that refers to something that does not exist."""
    return Cause("FieldValueNotFound", f"Not found: {format_value(value)}", path)


def _with_detail(message: str, detail: str) -> str:
    return f"{message}: {detail}" if detail else message


def format_value(value: Any) -> str:
    """Return a value as messages show it."""
    if isinstance(value, GoFormattedValue):
        return str(value)
    if isinstance(value, str):
        return quote(value)
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
