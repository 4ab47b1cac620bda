"""AdmissionReview requests and responses: JSON in, JSON out.

A response that rejects has a code and a message; the client of the API server receives the message.
One that allows may have a JSON patch. For it, object members are compared one by one, and any other
value is replaced as a whole. Webhooks add members and append to lists, so replacing a list is good
enough. (The library that applies patches can also create them, with the fewest operations, but
takes thirty times as long: as long as the create itself.)

Sources: k8s.io/api/admission/v1/types.go, controller-runtime's pkg/webhook/admission/response.go.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from extender.kube.decoders.typed_decoder import with_field_path

BAD_REQUEST: Final = 400
INTERNAL_ERROR: Final = 500

_NOTHING: Final = Raw(b"null")

Operation = Mapping[str, Any]
"""An operation of a JSON patch."""


class ReviewError(ValueError):
    """The body is not a review; the text has the field and what was expected."""


class GroupVersionResource(Struct, frozen=True):
    """metav1.GroupVersionResource."""

    group: str = ""
    version: str = ""
    resource: str = ""


class AdmissionRequest(Struct, frozen=True, rename="camel"):
    """admission/v1.AdmissionRequest, as far as it is read; objects are raw JSON."""

    uid: str
    operation: str = ""
    resource: GroupVersionResource = GroupVersionResource()
    sub_resource: str = ""
    namespace: str = ""
    name: str = ""
    dry_run: bool | None = None
    object: Raw = _NOTHING
    old_object: Raw = _NOTHING

    @property
    def is_dry_run(self) -> bool:
        """Whether it is a dry run."""
        return self.dry_run is True

    def matches(self, operation: str, plural: str, sub_resource: str = "") -> bool:
        """Return whether the request is this operation on this resource and subresource."""
        own = self.operation, self.resource.resource, self.sub_resource
        return own == (operation, plural, sub_resource)


class AdmissionReview(Struct, frozen=True, rename="camel"):
    """admission/v1.AdmissionReview."""

    request: AdmissionRequest
    api_version: str = "admission.k8s.io/v1"
    kind: str = "AdmissionReview"


@dataclass(frozen=True, slots=True)
class AdmissionResponse:
    """A response: allowed, with a patch, or rejected, with ``code`` and ``message``."""

    allowed: bool = True
    code: int = 0
    message: str = ""
    patch: Sequence[Operation] = field(default=())


ALLOWED: Final = AdmissionResponse()

_reviews = msgspec.json.Decoder(AdmissionReview)
_encoder = msgspec.json.Encoder()


def denied(code: int, message: str) -> AdmissionResponse:
    """Return a response that rejects."""
    return AdmissionResponse(allowed=False, code=code, message=message)


def decode_review(body: bytes) -> AdmissionReview:
    """Decode an AdmissionReview. Raises ReviewError."""
    try:
        return _reviews.decode(body)
    except msgspec.ValidationError as error:
        raise ReviewError(f"AdmissionReview: {with_field_path(str(error))}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ReviewError(f"AdmissionReview: not JSON: {error}") from None


def encode_response(review: AdmissionReview, response: AdmissionResponse) -> bytes:
    """Encode the response to an AdmissionReview."""
    document: dict[str, Any] = {"uid": review.request.uid, "allowed": response.allowed}
    if not response.allowed:
        document["status"] = {"code": response.code, "message": response.message}
    if response.patch:
        document["patchType"] = "JSONPatch"
        document["patch"] = b64encode(_encoder.encode(response.patch)).decode()
    return _encoder.encode(
        {"apiVersion": review.api_version, "kind": review.kind, "response": document}
    )


def create_json_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Operation]:
    """Return the operations that turn ``before`` into ``after``."""
    return list(_changes(before, after, ""))


def _changes(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> Iterator[Operation]:
    for key, old in before.items():
        place = f"{path}/{_escaped(key)}"
        if key not in after:
            yield {"op": "remove", "path": place}
        elif isinstance(old, dict) and isinstance(after[key], dict) and old is not after[key]:
            yield from _changes(old, after[key], place)
        elif not _is_equal(old, after[key]):
            yield {"op": "replace", "path": place, "value": after[key]}
    for key, new in after.items():
        if key not in before:
            yield {"op": "add", "path": f"{path}/{_escaped(key)}", "value": new}


def _is_equal(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal; true does not equal 1."""
    if one is other:  # true for most parts of a patched pod
        return True
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_equal(one[key], other[key]) for key in one)
    return type(one) is type(other) and bool(one == other)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
