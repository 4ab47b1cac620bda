"""``/convert``: conversion of WorkloadSpreads between versions.

Source: openkruise/kruise apis/apps/v1alpha1/workloadspread_conversion.go, and controller-runtime's
pkg/webhook/conversion.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from extender.kube.decoding import with_field_path
from extender.kube.workloadspread.conversion import UnknownVersionError, convert
from fakeapi.controllers.spreadwebhooks.reviews import ReviewError


class _ConversionRequest(Struct, frozen=True):
    uid: str
    desired_version: str = msgspec.field(name="desiredAPIVersion")
    objects: list[dict[str, Any]] = []


class _ConversionReview(Struct, frozen=True, rename="camel"):
    request: _ConversionRequest
    api_version: str = "apiextensions.k8s.io/v1"
    kind: str = "ConversionReview"


_reviews = msgspec.json.Decoder(_ConversionReview)
_encoder = msgspec.json.Encoder()


def answer_conversion(body: bytes) -> bytes:
    """Answer a ConversionReview; an unknown version fails the whole review. Raises ReviewError."""
    try:
        review = _reviews.decode(body)
    except msgspec.ValidationError as error:
        raise ReviewError(f"ConversionReview: {with_field_path(str(error))}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ReviewError(f"ConversionReview: not JSON: {error}") from None
    asked = review.request
    try:
        converted = [convert(each, asked.desired_version) for each in asked.objects]
        outcome = {"convertedObjects": converted, "result": {"status": "Success"}}
    except UnknownVersionError as error:
        outcome = {"convertedObjects": [], "result": {"status": "Failure", "message": str(error)}}
    return _encoder.encode(
        {
            "apiVersion": review.api_version,
            "kind": review.kind,
            "response": {"uid": asked.uid, **outcome},
        }
    )
