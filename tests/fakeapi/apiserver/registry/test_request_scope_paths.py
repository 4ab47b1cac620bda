"""Paths, methods and media types."""

from __future__ import annotations

import pytest

from fakeapi.apiserver.endpoints import Api
from tests.fakeapi.api_requests import MAPS, PODS, Ask, send


def plain(
    api: Api, method: str, path: str, body: bytes = b"", **fields: str
) -> tuple[int, bytes, str]:
    answer = send(api, method, path, body, **fields)
    return answer.status, answer.body, answer.content_type


@pytest.mark.parametrize(
    "path",
    [
        "/api/v2",
        "/api/v2/pods",
        "/apis/apps/v2",
        "/apis/apps/v2/deployments",
        "/api/v1/widgets",
        "/api/v1/pods/p",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/nodes/n/status/more",
        "/api/v1/nodes/n/exec",
        f"{PODS}/p/diary",
        f"{PODS}//status",
        "/apis/apps/v1/namespaces/default/gizmos",
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets/a/b/c",
    ],
)
def test_a_path_to_nothing_below_a_known_version_is_a_status(ask: Ask, path: str) -> None:
    status, answer = ask("GET", path)
    assert (status, answer["reason"], answer["details"]) == (404, "NotFound", {})
    assert answer["message"] == "the server could not find the requested resource"


@pytest.mark.parametrize("path", ["/nope", "/apis/nope", "/apis/nope/v1/things"])
def test_a_path_to_nothing_at_all_is_plain_text(api: Api, path: str) -> None:
    answer = plain(api, "GET", path)
    assert answer == (404, b"404 page not found\n", "text/plain; charset=utf-8")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/pods"),
        ("DELETE", "/api/v1/pods"),
        ("PUT", PODS),
        ("POST", f"{PODS}/p"),
        ("DELETE", f"{PODS}/p/status"),
        ("TRACE", PODS),
        ("POST", "/api/v1"),
    ],
)
def test_a_method_that_is_not_served_is_refused(ask: Ask, method: str, path: str) -> None:
    status, answer = ask(method, path, {})
    assert (status, answer["reason"]) == (405, "MethodNotAllowed")


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("", 200),
        ("*/*", 200),
        ("application/json", 200),
        ("application/vnd.kubernetes.protobuf,application/json", 200),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", 200),
        ("application/vnd.kubernetes.protobuf", 200),
        ("text/html", 406),
    ],
)
def test_only_json_is_answered(api: Api, accept: str, status: int) -> None:
    assert plain(api, "GET", PODS, accept=accept)[0] == status


@pytest.mark.parametrize(
    ("content_type", "body", "status"),
    [
        ("", b'{"metadata":{"name":"p"}}', 201),
        ("application/json; charset=utf-8", b'{"metadata":{"name":"p"}}', 201),
        ("application/vnd.kubernetes.protobuf", b"k8s\0", 400),
        ("application/yaml", b"metadata: {name: p}", 201),
        ("application/json", b"{", 400),
        ("application/json", b"", 400),
        ("application/json", b"[" * 100_000, 400),
        ("application/json", b'{"a":' * 500 + b"1" + b"}" * 500, 400),
        ("application/json", b'{"metadata":{"name":"p"},"n":123456789012345678901234567890}', 201),
    ],
)
def test_bodies_are_read_by_their_media_type(
    api: Api, content_type: str, body: bytes, status: int
) -> None:
    assert plain(api, "POST", MAPS, body, content_type=content_type)[0] == status
