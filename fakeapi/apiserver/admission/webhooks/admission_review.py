"""AdmissionReviews: the request that a webhook receives, and its response.

A webhook that cannot be called, or whose response is invalid, is a :class:`CallError`; its failure
policy decides whether the request then fails. A webhook that denies a request rejects it with the
code, reason and details of its response.

Sources: k8s.io/apiserver/pkg/admission/plugin/webhook (request/admissionreview.go,
errors/statuserror.go).
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from fakeapi.apiserver.admission.webhooks.attributes import AdmissionAttributes, VersionedObjects
from fakeapi.apiserver.admission.webhooks.configured_webhooks import Role
from fakeapi.apiserver.admission.webhooks.rule_matcher import WebhookInvocation
from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import StatusError
from fakeapi.apiserver.wire.http_messages import User

_GROUP: Final = "admission.k8s.io"
_VERSIONS: Final = ("v1", "v1beta1")
_KIND: Final = "AdmissionReview"
_LOWEST_ERROR_CODE: Final = 400
_GREATEST_CODE: Final = 599


class CallError(Exception):
    """A webhook could not be called, or its response is invalid."""


@dataclass(frozen=True, slots=True)
class ReviewResponse:
    """The response of a webhook; ``patch`` is empty if it changes nothing.

    ``result`` is the Status of the response, or empty.
    """

    allowed: bool
    result: Mapping[str, Any]
    warnings: tuple[str, ...]
    patch: bytes
    patch_type: str


def admission_review(
    invocation: WebhookInvocation,
    attributes: AdmissionAttributes,
    versioned_objects: VersionedObjects,
) -> Document:
    """Return the AdmissionReview for a webhook, without its uid.

    Raise CallError if the webhook accepts no known version of AdmissionReview.
    """
    versions = [version for version in invocation.webhook.versions if version in _VERSIONS]
    if not versions:
        accepted = f"({', '.join(_VERSIONS)})"
        raise CallError(
            "could not create admission objects: webhook does not accept known AdmissionReview "
            f"versions {accepted}"
        )
    request = admission_request(invocation.resource, attributes, versioned_objects)
    return {"kind": _KIND, "apiVersion": f"{_GROUP}/{versions[0]}", "request": request}


def admission_request(
    resource: ResourceInfo, attributes: AdmissionAttributes, versioned_objects: VersionedObjects
) -> Document:
    """Return the AdmissionRequest in the version of the matched resource, without its uid."""
    operation = attributes.requested
    kind = object_kind(resource, attributes)
    names = {
        "subResource": operation.subresource,
        "requestSubResource": operation.subresource,
        "name": attributes.name,
        "namespace": attributes.namespace,
    }
    optional = {name: value for name, value in names.items() if value}
    own = attributes.kind if has_other_kind(attributes) else operation.resource
    return {
        "uid": "",
        "kind": _kind(kind),
        "resource": _resource(resource),
        "requestKind": _kind(own),
        "requestResource": _resource(operation.resource),
        **optional,
        "operation": attributes.operation,
        "userInfo": user_info(operation.user),
        "object": versioned_objects.to_version(kind, attributes.kind, attributes.object),
        "oldObject": versioned_objects.to_version(kind, attributes.kind, attributes.old),
        "dryRun": attributes.dry_run,
        "options": attributes.options,
    }


def object_kind(resource: ResourceInfo, attributes: AdmissionAttributes) -> ResourceInfo:
    """Return the kind of the objects in the version of the matched resource."""
    return attributes.kind if has_other_kind(attributes) else resource


def has_other_kind(attributes: AdmissionAttributes) -> bool:
    """Return whether the objects have another kind than the resource (Scale, Eviction, ...)."""
    return attributes.kind.kind != attributes.requested.resource.kind


def _kind(kind: ResourceInfo) -> Document:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _resource(kind: ResourceInfo) -> Document:
    return {"group": kind.group, "version": kind.version, "resource": kind.plural}


def user_info(user: User) -> Document:
    """Return the UserInfo of a user, without empty fields."""
    info = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {name: value for name, value in info.items() if value}


def decode_response(review: Document, body: bytes, role: Role) -> ReviewResponse:
    """Return the decoded response of a webhook. Raise CallError."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _call_error(f"couldn't get version/kind; json parse error: {error}") from None
    if not isinstance(answer, dict):
        found_type = _json_type(answer)
        raise _call_error(
            f"couldn't get version/kind; json parse error: json: cannot unmarshal {found_type} "
            "into Go value of type struct"
        )
    response = answer.get("response")
    if response is None:
        raise _invalid_response("webhook response was absent")
    _check_types(response)
    strict = review["apiVersion"] == f"{_GROUP}/v1"
    if strict:
        _check_header(review, answer, response)
    patch, patch_type = _patch(response)
    if strict:
        _check_patch(patch, response.get("patchType"), role)
    else:  # v1beta1 does not check the patch type
        patch_type = "JSONPatch"
    warnings = tuple(response.get("warnings") or ())
    result = response.get("status") or {}
    return ReviewResponse(bool(response.get("allowed")), result, warnings, patch, patch_type)


def _check_types(response: Any) -> None:
    if not isinstance(response, dict):
        raise _mismatch(response, "AdmissionReview.response", "v1.AdmissionResponse")
    for name, (expected, go_type) in _TYPES.items():
        value = response.get(name)
        if value is not None and not isinstance(value, expected):
            raise _mismatch(value, f"AdmissionResponse.response.{name}", go_type)
    for warning in response.get("warnings") or ():
        if not isinstance(warning, str):
            raise _mismatch(warning, "AdmissionResponse.response.warnings", "string")
    status = response.get("status") or {}
    for name, (expected, go_type) in _STATUS_TYPES.items():
        value = status.get(name)
        if value is not None and (not isinstance(value, expected) or isinstance(value, bool)):
            raise _mismatch(value, f"Status.response.status.{name}", go_type)


_TYPES: Final[Mapping[str, tuple[type, str]]] = {
    "uid": (str, "types.UID"),
    "allowed": (bool, "bool"),
    "status": (dict, "v1.Status"),
    "patch": (str, "[]uint8"),
    "patchType": (str, "v1.PatchType"),
    "auditAnnotations": (dict, "map[string]string"),
    "warnings": (list, "[]string"),
}
_STATUS_TYPES: Final[Mapping[str, tuple[type, str]]] = {
    "status": (str, "string"),
    "message": (str, "string"),
    "reason": (str, "v1.StatusReason"),
    "details": (dict, "v1.StatusDetails"),
    "code": (int, "int32"),
}


def _check_header(review: Document, answer: Document, response: Document) -> None:
    uid, got = review["request"]["uid"], response.get("uid") or ""
    if got != uid:
        raise _invalid_response(f'expected response.uid="{uid}", got "{got}"')
    found = f"{answer.get('apiVersion') or '/'}, Kind={answer.get('kind') or ''}"
    expected = f"{_GROUP}/v1, Kind={_KIND}"
    if found != expected:
        raise _invalid_response(f"expected webhook response of {expected}, got {found}")


def _patch(response: Document) -> tuple[bytes, str]:
    try:
        patch = b64decode(response.get("patch") or "", validate=True)
    except ValueError as error:
        raise _call_error(f"illegal base64 data: {error}") from None
    return patch, response.get("patchType") or ""


def _check_patch(patch: bytes, patch_type: str | None, role: Role) -> None:
    if role == "validating":
        if patch:
            raise _invalid_response("validating webhook may not return response.patch")
        if patch_type is not None:
            raise _invalid_response("validating webhook may not return response.patchType")
    elif patch and patch_type is None:
        raise _invalid_response("webhook returned response.patch but not response.patchType")
    elif not patch and patch_type is not None:
        raise _invalid_response("webhook returned response.patchType but not response.patch")
    elif patch_type == "":
        raise _invalid_response('webhook returned invalid response.patchType of ""')


def denial(name: str, result: Mapping[str, Any]) -> StatusError:
    """Return the error of a request that a webhook denies."""
    found = result.get("message") or result.get("reason")
    denied = f'admission webhook "{name}" denied the request'
    message = f"{denied}: {found}" if found else f"{denied} without explanation"
    code = result.get("code") or 0
    if not _LOWEST_ERROR_CODE <= code <= _GREATEST_CODE:
        code = _LOWEST_ERROR_CODE
    return StatusError(code, result.get("reason") or "", message, result.get("details"))


def _call_error(detail: str) -> CallError:
    return CallError(f"failed to call webhook: {detail}")


def _invalid_response(detail: str) -> CallError:
    return CallError(f"received invalid webhook response: {detail}")


def _mismatch(value: Any, where: str, go_type: str) -> CallError:
    return _call_error(
        f"json: cannot unmarshal {_json_type(value)} into Go struct field {where} of type {go_type}"
    )


def _json_type(value: Any) -> str:
    names = {bool: "bool", int: "number", float: "number", str: "string", list: "array"}
    return names.get(type(value), "object")
