"""Field managers of requests, and applied configurations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from fakeapi.apiserver.endpoints import Api, Request, StatusError
from fakeapi.apiserver.objects.patch import read_configuration
from fakeapi.apiserver.wire.write_options import (
    APPLY_PATCH,
    apply_manager_of,
    check_write_options,
    field_manager_of,
)
from tests.builders import manifest
from tests.fakeapi.api_requests import MAPS, send


def write(method: str = "POST", agent: str = "", **query: str) -> Request:
    return Request(method, MAPS, query, user_agent=agent)


@pytest.mark.parametrize(
    ("agent", "query", "manager"),
    [
        ("kubectl/v1.37.1 (linux/amd64) kubernetes/abc", {}, "kubectl"),
        ("kubectl/v1", {"fieldManager": "kubectl-create"}, "kubectl-create"),
        ("no slash", {}, "no slash"),
        ("tab\there/1", {}, "tabhere"),
        ("x" * 200, {}, "x" * 128),
        ("é" * 100, {}, "é" * 64),
        ("", {}, ""),
    ],
)
def test_the_query_names_the_manager_or_else_the_user_agent(
    agent: str, query: dict[str, str], manager: str
) -> None:
    assert field_manager_of(write(agent=agent, **query)) == manager


@pytest.mark.parametrize(
    ("method", "query", "message"),
    [
        ("POST", {"fieldManager": "x" * 129}, "fieldManager: Too long: may not be more than 128"),
        ("PUT", {"fieldManager": "a\tb"}, r"invalid character U+0009 (at position 1)"),
        ("PATCH", {"force": "true"}, "force: Forbidden: may not be specified for non-apply patch"),
    ],
)
def test_a_bad_name_is_refused(method: str, query: dict[str, str], message: str) -> None:
    with pytest.raises(StatusError) as refused:
        check_write_options(write(method, **query))
    assert refused.value.code == 422
    assert message in refused.value.message


def test_an_apply_must_name_its_manager() -> None:
    with pytest.raises(StatusError) as refused:
        check_write_options(replace(write("PATCH"), content_type=APPLY_PATCH))
    assert refused.value.message == (
        'PatchOptions.meta.k8s.io "" is invalid: '
        "fieldManager: Required value: is required for apply patch"
    )
    assert apply_manager_of(write("PATCH", fieldManager="a", force="true")) == ("a", True)


@pytest.mark.parametrize(
    ("body", "document"),
    [
        (b'{"a": 1}', {"a": 1}),
        (b"a: {b: [1, x]}\n", {"a": {"b": [1, "x"]}}),
        (b"{a: b}", {"a": "b"}),
        (b"", {}),
        (b"a: &x {b: c}\nd: *x\n", {"a": {"b": "c"}, "d": {"b": "c"}}),
    ],
)
def test_a_configuration_is_read_from_yaml_or_json(body: bytes, document: Any) -> None:
    assert read_configuration(body) == document


@pytest.mark.parametrize("body", [b"- 1", b"text", b"1", b"a: [", b"[" * 300, b"\xff"])
def test_a_configuration_that_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(StatusError) as refused:
        read_configuration(body)
    assert refused.value.code == 400


def test_an_apply_creates_changes_and_runs_dry(api: Api) -> None:
    def apply(data: dict[str, str], **query: str) -> tuple[int, Any]:
        body = manifest("ConfigMap", "m", namespace="", data=data)
        asked = {"fieldManager": "me", **query}
        answer = send(api, "PATCH", f"{MAPS}/m", body, APPLY_PATCH, query=asked)
        return answer.status, orjson.loads(answer.body)

    version = api.store.version
    assert apply({"a": "1"}, dryRun="All")[0] == 201
    assert api.store.version == version
    assert apply({"a": "1"})[0] == 201
    assert apply({"a": "1"})[0] == 200
    assert api.store.version == version + 1
    assert apply({"b": "2"}, dryRun="All")[1]["data"] == {"b": "2"}
    assert api.store.version == version + 1
    assert apply({"b": "2"})[1]["data"] == {"b": "2"}
