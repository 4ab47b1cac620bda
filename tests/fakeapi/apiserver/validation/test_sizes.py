"""Limits of annotations, and of the data of ConfigMaps and Secrets, for every kind of write."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import orjson
import pytest

from fakeapi.apiserver.endpoints import Api
from fakeapi.apiserver.objects.metadata import MAX_ANNOTATION_BYTES
from fakeapi.apiserver.validation.resource_rules import MAX_DATA_BYTES
from tests.builders import manifest
from tests.builders.definitions import DEFINITIONS, WIDGETS, definition, widget
from tests.fakeapi.api_requests import APPLY, DEFAULT, MAPS, MERGE, PODS, send

SECRETS = f"{DEFAULT}/secrets"
LONG_ANNOTATIONS = "metadata.annotations: Too long: may not be more than 262144 bytes"


def annotated(size: int) -> dict[str, Any]:
    half = (size - 2) // 2
    return {"metadata": {"annotations": {"a": "x" * half, "b": "x" * (size - 2 - half)}}}


def text(size: int) -> dict[str, Any]:
    return {"data": {"a": "é" * (size // 2), "b": "x" * (size % 2)}}


def binary(size: int) -> dict[str, Any]:
    return {"data": {"a": "xx"}, "binaryData": {"b": b64encode(b"x" * (size - 2)).decode()}}


def secret(size: int) -> dict[str, Any]:
    return {"data": {"a": b64encode(b"x" * size).decode()}}


def plain_secret(size: int) -> dict[str, Any]:
    return {"stringData": {"a": "x" * size}}


SIZES = [
    (MAPS, "ConfigMap", annotated, MAX_ANNOTATION_BYTES, LONG_ANNOTATIONS),
    (MAPS, "ConfigMap", text, MAX_DATA_BYTES, "[]: Too long: may not be more than 1048576 bytes"),
    (MAPS, "ConfigMap", binary, MAX_DATA_BYTES, "[]: Too long: may not be more than 1048576 bytes"),
    (SECRETS, "Secret", secret, MAX_DATA_BYTES, "data: Too long: may not be more than 1048576"),
    (SECRETS, "Secret", plain_secret, MAX_DATA_BYTES, "data: Too long: may not be more than"),
]
IDS = ["annotations", "text", "binary", "secret", "plain secret"]


@pytest.mark.parametrize("write", ["create", "update", "patch", "apply", "applied create"])
@pytest.mark.parametrize(("path", "kind", "sized", "most", "message"), SIZES, ids=IDS)
def test_what_is_too_large_is_refused_and_the_largest_is_stored(
    api: Api, path: str, kind: str, sized: Any, most: int, message: str, write: str
) -> None:
    for size, status in ((most + 1, 422), (most, 200)):
        name = f"{kind.lower()}-{status}"
        if write not in ("create", "applied create"):
            send(api, "POST", path, manifest(kind, name))
        body = orjson.loads(orjson.dumps(sized(size)))
        document = manifest(kind, name, **body) | {"apiVersion": "v1", "kind": kind}
        match write:
            case "create":
                answer = send(api, "POST", path, document)
            case "update":
                answer = send(api, "PUT", f"{path}/{name}", document)
            case "patch":
                answer = send(api, "PATCH", f"{path}/{name}", body, MERGE)
            case _:
                query = {"fieldManager": "m", "force": "true"}
                answer = send(api, "PATCH", f"{path}/{name}", document, APPLY, query=query)
        found = orjson.loads(answer.body)
        if status == 422:
            assert answer.status == 422
            assert found["message"].startswith(f'{kind} "{name}" is invalid: {message}')
            assert [cause["reason"] for cause in found["details"]["causes"]] == [
                "FieldValueTooLong"
            ]
        else:
            assert answer.status in (200, 201), found["message"]


def test_annotations_of_a_status_and_of_custom_resources_are_limited(api: Api) -> None:
    send(
        api, "POST", PODS, manifest("Pod", "p", spec={"containers": [{"name": "c", "image": "i"}]})
    )
    send(api, "POST", DEFINITIONS, definition())
    too_long = annotated(MAX_ANNOTATION_BYTES + 1)
    document = widget()
    document["metadata"] |= too_long["metadata"]
    for answer in (
        send(api, "PATCH", f"{PODS}/p/status", too_long),
        send(api, "POST", WIDGETS, document),
    ):
        assert answer.status == 422
        assert LONG_ANNOTATIONS in orjson.loads(answer.body)["message"]
