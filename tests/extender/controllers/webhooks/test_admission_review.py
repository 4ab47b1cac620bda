"""Admission reviews: the response, the change as a JSON patch, and errors of requests."""

from __future__ import annotations

from base64 import b64decode
from copy import deepcopy
from typing import Any

import jsonpatch
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.controllers.webhooks.admission_review import (
    ALLOWED,
    AdmissionResponse,
    ReviewError,
    create_json_patch,
    decode_review,
    denied,
    encode_response,
)
from extender.controllers.webhooks.workloadspread_webhook import answer_conversion

KEYS = st.sampled_from(["a", "b", "a/b", "m~n", "~1", ""])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a", "/", "~1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=4)


def applied(document: Any, operations: Any) -> Any:
    return jsonpatch.apply_patch(deepcopy(document), deepcopy(operations))


def exactly(document: Any) -> bytes:
    """Return JSON, which distinguishes true from 1."""
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


@given(DOCUMENTS, DOCUMENTS)
def test_the_patch_changes_one_document_into_the_other(before: Any, after: Any) -> None:
    operations = create_json_patch(before, after)
    assert exactly(applied(before, operations)) == exactly(after)


@given(DOCUMENTS)
def test_equal_values_give_no_patch_operations(document: Any) -> None:
    assert create_json_patch(document, deepcopy(document)) == []


@pytest.mark.parametrize(
    ("before", "after", "operations"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, [("add", "/a/c", 2)]),
        ({"a": [1]}, {"a": [1, 2]}, [("replace", "/a", [1, 2])]),
        ({"x/y": 1, "m~n": 1}, {"x/y": 2}, [("replace", "/x~1y", 2), ("remove", "/m~0n", None)]),
        ({"a": 1}, {"a": True}, [("replace", "/a", True)]),
        ({"a": [{"b": 0}]}, {"a": [{"b": False}]}, [("replace", "/a", [{"b": False}])]),
    ],
)
def test_members_are_patched_one_by_one_and_other_values_as_a_whole(
    before: Any, after: Any, operations: Any
) -> None:
    found = [
        (each["op"], each["path"], each.get("value")) for each in create_json_patch(before, after)
    ]
    assert found == operations


REVIEW = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {"uid": "1", "operation": "CREATE", "resource": {"resource": "pods"}},
}


def response_to_review(answer: AdmissionResponse) -> Any:
    return orjson.loads(encode_response(decode_review(orjson.dumps(REVIEW)), answer))


def test_an_allowed_review_has_no_details() -> None:
    assert response_to_review(ALLOWED) == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "1", "allowed": True},
    }


def test_a_denied_review_has_a_code_and_a_message() -> None:
    response = response_to_review(denied(400, "because"))["response"]
    assert response == {"uid": "1", "allowed": False, "status": {"code": 400, "message": "because"}}


def test_a_change_is_a_patch() -> None:
    operations = [{"op": "add", "path": "/a", "value": 1}]
    response = response_to_review(AdmissionResponse(patch=operations))["response"]
    assert response["patchType"] == "JSONPatch"
    assert orjson.loads(b64decode(response["patch"])) == operations


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"no JSON", "AdmissionReview: not JSON"),
        (b"{}", "AdmissionReview: (the object): object missing required field request"),
        (b'{"request": {}}', "AdmissionReview: request: object missing required field uid"),
        (b'{"request": {"uid": 1}}', "AdmissionReview: request.uid: expected str, got int"),
    ],
)
def test_an_invalid_admission_review_is_reported_in_one_line(body: bytes, message: str) -> None:
    with pytest.raises(ReviewError) as error:
        decode_review(body)
    assert str(error.value).replace("`", "").startswith(message)
    assert "\n" not in str(error.value)


def conversion(*objects: Any, desired: str = "apps.kruise.io/v1beta1") -> Any:
    request = {"uid": "1", "desiredAPIVersion": desired, "objects": objects}
    return orjson.loads(answer_conversion(orjson.dumps({"request": request})))["response"]


def test_a_conversion_to_an_unknown_version_names_the_known_ones() -> None:
    result = conversion({"apiVersion": "apps.kruise.io/v1"})["result"]
    assert result["status"] == "Failure"
    assert "expected apps.kruise.io/v1beta1 or apps.kruise.io/v1alpha1" in result["message"]


def test_a_conversion_of_no_objects_succeeds() -> None:
    assert conversion() == {"uid": "1", "convertedObjects": [], "result": {"status": "Success"}}


@pytest.mark.parametrize("body", [b"", b"[]", b'{"request": {"uid": "1"}}'])
def test_an_invalid_conversion_review_is_reported(body: bytes) -> None:
    with pytest.raises(ReviewError, match="ConversionReview: "):
        answer_conversion(body)
