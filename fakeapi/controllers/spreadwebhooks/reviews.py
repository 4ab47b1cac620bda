"""AdmissionReview requests and responses: JSON in, JSON out.

A response that rejects has a code and a message; the client of the API server receives the message.

Sources: k8s.io/api/admission/v1/types.go, controller-runtime's pkg/webhook/admission/response.go.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from extender.kube.decoding import located

BAD_REQUEST: Final = 400
FAILED: Final = 500

_NOTHING: Final = Raw(b"null")

Operations = Sequence[Mapping[str, Any]]
"""A JSON patch."""


class ReviewError(ValueError):
    """The body is not a review; the text has the field and what was expected."""


class Resource(Struct, frozen=True):
    """metav1.GroupVersionResource."""

    group: str = ""
    version: str = ""
    resource: str = ""


class Request(Struct, frozen=True, rename="camel"):
    """admission/v1.AdmissionRequest, as far as it is read; objects are raw JSON."""

    uid: str
    operation: str = ""
    resource: Resource = Resource()
    sub_resource: str = ""
    namespace: str = ""
    name: str = ""
    dry_run: bool | None = None
    object: Raw = _NOTHING
    old_object: Raw = _NOTHING

    @property
    def is_dry(self) -> bool:
        """Whether it is a dry run."""
        return self.dry_run is True

    def concerns(self, operation: str, plural: str, sub_resource: str = "") -> bool:
        """Return whether the request is this operation on this resource and subresource."""
        asked = self.operation, self.resource.resource, self.sub_resource
        return asked == (operation, plural, sub_resource)


class Review(Struct, frozen=True, rename="camel"):
    """admission/v1.AdmissionReview."""

    request: Request
    api_version: str = "admission.k8s.io/v1"
    kind: str = "AdmissionReview"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A response: allowed, with a patch, or rejected, with ``code`` and ``message``."""

    allowed: bool = True
    code: int = 0
    message: str = ""
    patch: Operations = field(default=())


ALLOWED: Final = Verdict()

_reviews = msgspec.json.Decoder(Review)
_encoder = msgspec.json.Encoder()


def refused(code: int, message: str) -> Verdict:
    """Return a response that rejects."""
    return Verdict(allowed=False, code=code, message=message)


def read_review(body: bytes) -> Review:
    """Decode an AdmissionReview. Raises ReviewError."""
    try:
        return _reviews.decode(body)
    except msgspec.ValidationError as error:
        raise ReviewError(f"AdmissionReview: {located(str(error))}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ReviewError(f"AdmissionReview: not JSON: {error}") from None


def write_review(review: Review, verdict: Verdict) -> bytes:
    """Encode the response to an AdmissionReview."""
    response: dict[str, Any] = {"uid": review.request.uid, "allowed": verdict.allowed}
    if not verdict.allowed:
        response["status"] = {"code": verdict.code, "message": verdict.message}
    if verdict.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = b64encode(_encoder.encode(verdict.patch)).decode()
    answered = {"apiVersion": review.api_version, "kind": review.kind, "response": response}
    return _encoder.encode(answered)
