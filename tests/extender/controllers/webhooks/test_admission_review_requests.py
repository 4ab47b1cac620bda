"""Reviews as they are sent and answered, and what is none."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import orjson
import pytest

from extender.controllers.webhooks.admission_review import (
    ALLOWED,
    AdmissionResponse,
    ReviewError,
    decode_review,
    denied,
    encode_response,
)
from extender.controllers.webhooks.workloadspread_webhook import answer_conversion

ASKED = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {"uid": "1", "operation": "CREATE", "resource": {"resource": "pods"}},
}


def answered(verdict: AdmissionResponse) -> Any:
    return orjson.loads(encode_response(decode_review(orjson.dumps(ASKED)), verdict))


def test_yes_says_no_more() -> None:
    assert answered(ALLOWED) == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "1", "allowed": True},
    }


def test_no_says_why() -> None:
    response = answered(denied(400, "so it is"))["response"]
    assert response == {
        "uid": "1",
        "allowed": False,
        "status": {"code": 400, "message": "so it is"},
    }


def test_a_change_is_a_patch() -> None:
    operations = [{"op": "add", "path": "/a", "value": 1}]
    response = answered(AdmissionResponse(patch=operations))["response"]
    assert response["patchType"] == "JSONPatch"
    assert orjson.loads(b64decode(response["patch"])) == operations


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"no JSON", "AdmissionReview: not JSON"),
        (b"{}", "AdmissionReview: (the object): object missing required field request"),
        (b'{"request": {}}', "AdmissionReview: request: object missing required field uid"),
        (b'{"request": {"uid": 1}}', "AdmissionReview: request.uid: expected str, got int"),
    ],
)
def test_an_invalid_admission_review_is_reported_in_one_line(body: bytes, told: str) -> None:
    with pytest.raises(ReviewError) as error:
        decode_review(body)
    assert str(error.value).replace("`", "").startswith(told)
    assert "\n" not in str(error.value)


def conversion(*objects: Any, desired: str = "apps.kruise.io/v1beta1") -> Any:
    request = {"uid": "1", "desiredAPIVersion": desired, "objects": objects}
    return orjson.loads(answer_conversion(orjson.dumps({"request": request})))["response"]


def test_an_unknown_version_fails_a_conversion_and_says_which_there_are() -> None:
    result = conversion({"apiVersion": "apps.kruise.io/v1"})["result"]
    assert result["status"] == "Failure"
    assert "expected apps.kruise.io/v1beta1 or apps.kruise.io/v1alpha1" in result["message"]


def test_nothing_is_converted_to_nothing() -> None:
    assert conversion() == {
        "uid": "1",
        "convertedObjects": [],
        "result": {"status": "Success"},
    }


@pytest.mark.parametrize("body", [b"", b"[]", b'{"request": {"uid": "1"}}'])
def test_an_invalid_conversion_review_is_reported(body: bytes) -> None:
    with pytest.raises(ReviewError, match="ConversionReview: "):
        answer_conversion(body)
