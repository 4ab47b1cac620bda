"""Discovery: equal to that of kube-apiserver 1.37, plain and aggregated; health and version."""

from __future__ import annotations

import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from fakeapi.apiserver.discovery.version_and_health import ServerVersion, ServerVersionError
from fakeapi.apiserver.endpoints import Api, Response
from tests.fakeapi.api_requests import send

RECORDED: dict[str, Any] = orjson.loads(
    lzma.decompress((Path(__file__).parents[2] / "recorded" / "discovery.json.xz").read_bytes())
)
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
V2 = AGGREGATED.format("v2")
V2BETA1 = AGGREGATED.format("v2beta1")

Get = Callable[..., Response]


@pytest.fixture
def get(api: Api) -> Get:
    def get(path: str, accept: str = "", if_none_match: str = "", **query: str) -> Response:
        headers = {"accept": accept, "if_none_match": if_none_match}
        return send(api, "GET", path, query=query, **headers)

    return get


def comparable(document: Any) -> Any:
    """Leave out the server's address and the hashes of what the storage holds."""
    if isinstance(document, list):
        return [comparable(item) for item in document]
    if not isinstance(document, dict):
        return document
    left_out = ("storageVersionHash", "serverAddressByClientCIDRs")
    return {key: comparable(value) for key, value in document.items() if key not in left_out}


@pytest.mark.parametrize("recorded", RECORDED)
def test_discovery_equals_upstreams(get: Get, recorded: str) -> None:
    path = recorded.removeprefix("v2 ")
    answer = get(path, V2 if path != recorded else "")
    assert comparable(orjson.loads(answer.body)) == comparable(RECORDED[recorded])


def test_kinds_stored_as_they_are_served_have_upstreams_storage_hash(get: Get) -> None:
    served = orjson.loads(get("/apis/apps/v1").body)["resources"]
    assert served == RECORDED["/apis/apps/v1"]["resources"]


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        (f"{V2},{V2BETA1},application/json", V2),
        (f"{V2BETA1},application/json", V2BETA1),
        ("application/json", "application/json"),
        ("", "application/json"),
        (f"{AGGREGATED.format('v3')},application/json", "application/json"),
    ],
)
def test_the_content_type_names_the_requested_form(
    get: Get, accept: str, content_type: str
) -> None:
    for path in ("/api", "/apis"):
        assert get(path, accept).content_type == content_type


def test_an_unsupported_form_is_refused(get: Get) -> None:
    assert get("/apis", AGGREGATED.format("v3")).status == 406
    assert get("/apis/apps", V2).status == 406
    assert get("/apis", "text/html").status == 406


def test_a_matching_etag_gets_304(get: Get) -> None:
    first = get("/apis", V2)
    again = get("/apis", V2, if_none_match=first.headers["ETag"])
    assert (again.status, again.body, again.headers) == (304, b"", first.headers)
    assert get("/apis", V2, if_none_match='"other"').status == 200
    assert get("/apis", V2BETA1).headers["ETag"] != first.headers["ETag"]


def test_unknown_groups_and_versions_differ(get: Get) -> None:
    assert get("/apis/nope").body == b"404 page not found\n"
    assert orjson.loads(get("/apis/apps/v9").body)["reason"] == "NotFound"


def test_the_root_lists_paths(get: Get) -> None:
    paths = orjson.loads(get("/").body)["paths"]
    assert {"/api/v1", "/apis/apps", "/healthz/ping", "/version", "/openapi/v3"} <= set(paths)
    assert paths == sorted(paths)


def test_the_version_is_that_of_the_release(get: Get) -> None:
    version = orjson.loads(get("/version").body)
    assert (version["major"], version["minor"], version["gitVersion"]) == ("1", "37", "v1.37.0")


def test_the_release_can_be_another() -> None:
    assert ServerVersion("v1.28.3-gke.1").document()["minor"] == "28"
    with pytest.raises(ServerVersionError, match="expected one such as"):
        ServerVersion("28").document()


@pytest.mark.parametrize(
    ("path", "query", "answer"),
    [
        ("/healthz", {}, "ok"),
        ("/livez", {}, "ok"),
        ("/readyz", {}, "ok"),
        ("/readyz/ping", {}, "ok"),
        ("/livez/etcd", {"verbose": ""}, "ok"),
        ("/livez", {"verbose": ""}, "[+]ping ok\n[+]log ok\n[+]etcd ok\nlivez check passed\n"),
        (
            "/healthz",
            {"verbose": "", "exclude": "log"},
            "[+]ping ok\n[+]log excluded: ok\n[+]etcd ok\nhealthz check passed\n",
        ),
        (
            "/healthz",
            {"verbose": "true", "exclude": "nope"},
            (
                "[+]ping ok\n[+]log ok\n[+]etcd ok\nwarn: some health checks cannot be excluded: "
                'no matches for "nope"\nhealthz check passed\n'
            ),
        ),
    ],
)
def test_health_is_reported_check_by_check(
    get: Get, path: str, query: dict[str, str], answer: str
) -> None:
    answered = get(path, **query)
    assert (answered.status, answered.body.decode()) == (200, answer)


def test_an_unknown_check_is_not_found(get: Get) -> None:
    assert get("/livez/nope").status == 404
