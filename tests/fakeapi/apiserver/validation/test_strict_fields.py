"""Fields that a kind does not have, fields given twice, and values that do not fit."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from fakeapi.apiserver.endpoints import Api
from tests.builders import pod_spec
from tests.fakeapi.api_requests import JSON_PATCH, MAPS, MERGE, PODS, STRATEGIC, send

PREFIX = 'Pod in version "v1" cannot be handled as a Pod: '


def warned(
    api: Api, method: str, path: str, body: Any, content_type: str | None = None, **query: str
) -> tuple[int, Any, tuple[str, ...]]:
    """Send a request; return the status, the body and the warnings."""
    answer = send(api, method, path, body, content_type, query=query)
    return answer.status, orjson.loads(answer.body), answer.warnings


def pod(*containers: Any, **spec: Any) -> dict[str, Any]:
    given = {"containers": [*containers]} if containers else {}
    return {"metadata": {"name": "p"}, "spec": pod_spec(**given | spec)}


UNKNOWN = pod({"name": "c", "image": "i", "bar": 2}, q={"a": 1}) | {"foo": 1}
NAMES = ("spec.containers[0].bar", "spec.q", "foo")


def test_strict_refuses_unknown_fields_and_names_all_of_them(api: Api) -> None:
    status, answer, _ = warned(api, "POST", PODS, UNKNOWN, fieldValidation="Strict")
    errors = ", ".join(f'unknown field "{name}"' for name in NAMES)
    assert (status, answer["reason"]) == (400, "BadRequest")
    assert answer["message"] == f"{PREFIX}strict decoding error: {errors}"


@pytest.mark.parametrize("query", [{}, {"fieldValidation": "Warn"}])
def test_warn_is_the_default_and_names_each_field(api: Api, query: dict[str, str]) -> None:
    status, made, warnings = warned(api, "POST", PODS, UNKNOWN, **query)
    assert (status, warnings) == (201, tuple(f'unknown field "{name}"' for name in NAMES))
    assert "foo" not in made
    assert "q" not in made["spec"]
    assert "bar" not in made["spec"]["containers"][0]


def test_ignore_drops_them_silently(api: Api) -> None:
    status, made, warnings = warned(api, "POST", PODS, UNKNOWN, fieldValidation="Ignore")
    assert (status, warnings) == (201, ())
    assert "foo" not in made


def test_another_level_is_refused(api: Api) -> None:
    status, answer, _ = warned(api, "POST", PODS, UNKNOWN, fieldValidation="Foo")
    assert (status, answer["message"]) == (
        422,
        (
            'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Foo": '
            'supported values: "", "Ignore", "Strict", "Warn"'
        ),
    )


def test_duplicate_fields_are_reported_in_the_order_of_the_body(api: Api) -> None:
    body = b'{"metadata":{"name":"a","name":"b"},"data":{"x":"1","x":"2"},"data":{"y":"2"},"foo":1}'
    duplicates = ("metadata.name", "data.x", "data")
    expected = (*(f'duplicate field "{name}"' for name in duplicates), 'unknown field "foo"')
    status, made, warnings = warned(api, "POST", MAPS, body)
    assert (status, warnings) == (201, expected)
    assert (made["metadata"]["name"], made["data"]) == ("b", {"y": "2"})
    status, answer, _ = warned(api, "POST", MAPS, body, fieldValidation="Strict")
    assert status == 400
    assert answer["message"].endswith(f"strict decoding error: {', '.join(expected)}")


@pytest.mark.parametrize(
    "body", [b'{"metadata" : {"name": "b"}}', b'{"metadata":{"name":"b"},"data":{"a":"\\":"}}']
)
def test_spaces_and_quotes_are_no_duplicate_fields(api: Api, body: bytes) -> None:
    assert warned(api, "POST", MAPS, body)[2] == ()


@pytest.mark.parametrize(
    ("body", "found", "where", "expected"),
    [
        (pod(containers="x"), "string", "PodSpec.spec.containers", "[]v1.Container"),
        (pod("x"), "string", "PodSpec.spec.containers", "v1.Container"),
        (pod({"name": 1}), "number", "Container.spec.containers.name", "string"),
        (pod(priority=5.5), "number 5.5", "PodSpec.spec.priority", "int32"),
        (pod(hostNetwork="true"), "string", "PodSpec.spec.hostNetwork", "bool"),
        (pod(nodeSelector={"a": 1}), "number", "PodSpec.spec.nodeSelector", "string"),
        (pod(nodeSelector=[]), "array", "PodSpec.spec.nodeSelector", "map[string]string"),
        ({"metadata": {"name": "x"}, "spec": []}, "array", "Pod.spec", "v1.PodSpec"),
        ({"metadata": {"name": 1}}, "number", "ObjectMeta.metadata.name", "string"),
        ({"metadata": {"labels": {"a": 1}}}, "number", "ObjectMeta.metadata.labels", "string"),
    ],
)
def test_a_value_of_another_type_is_refused_in_gos_words(
    api: Api, body: dict[str, Any], found: str, where: str, expected: str
) -> None:
    status, answer, _ = warned(api, "POST", PODS, body)
    message = f"json: cannot unmarshal {found} into Go struct field {where} of type {expected}"
    assert (status, answer["message"]) == (400, f"{PREFIX}{message}")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            pod({"name": "c", "resources": {"limits": {"cpu": "abc"}}}),
            (
                "quantities must match the regular expression "
                "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            ),
        ),
        (
            {"metadata": {"name": "x", "creationTimestamp": "foo"}},
            'parsing time "foo" as "2006-01-02T15:04:05Z07:00": cannot parse "foo" as "2006"',
        ),
    ],
)
def test_a_text_that_cannot_be_read_is_refused(
    api: Api, body: dict[str, Any], message: str
) -> None:
    assert warned(api, "POST", PODS, body)[:2][1]["message"] == f"{PREFIX}{message}"


def test_null_and_empty_are_as_good_as_absent(api: Api) -> None:
    body = pod(nodeName=None, tolerations=None, nodeSelector={}, imagePullSecrets=[])
    status, made, warnings = warned(api, "POST", PODS, body | {"status": None})
    assert (status, warnings) == (201, ())
    assert not {"nodeName", "nodeSelector", "imagePullSecrets"} & set(made["spec"])


def test_a_null_quantity_is_zero(api: Api) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": None}}}
    status, made, _ = warned(api, "POST", PODS, pod(containers=[container]))
    assert (status, made["spec"]["containers"][0]["resources"]) == (201, {"requests": {"cpu": "0"}})


@pytest.mark.parametrize(
    ("content_type", "patch", "shown"),
    [
        (MERGE, {"foo": 1}, '"{\\"apiVersion\\":\\"v1\\",'),
        (JSON_PATCH, [{"op": "add", "path": "/foo", "value": 1}], '"{\\"apiVersion\\":\\"v1\\",'),
        (STRATEGIC, {"foo": 1}, '"map[foo:1]"'),
    ],
)
def test_a_patch_that_leaves_an_unknown_field_is_unprocessable_or_warned_of(
    api: Api, content_type: str, patch: Any, shown: str
) -> None:
    warned(api, "POST", MAPS, {"metadata": {"name": "c"}})
    path = f"{MAPS}/c"
    status, _, warnings = warned(api, "PATCH", path, patch, content_type)
    assert (status, warnings) == (200, ('unknown field "foo"',))
    status, answer, _ = warned(api, "PATCH", path, patch, content_type, fieldValidation="Strict")
    assert (status, answer["reason"]) == (422, "Invalid")
    assert answer["message"].startswith(f' "" is invalid: patch: Invalid value: {shown}')
    assert answer["message"].endswith('strict decoding error: unknown field "foo"')


def test_a_deprecated_kind_has_a_warning(api: Api) -> None:
    assert send(api, "GET", "/api/v1/namespaces/default/endpoints").warnings == (
        "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    )
