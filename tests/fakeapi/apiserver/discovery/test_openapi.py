"""The OpenAPI documents: their index, content and caching."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from fakeapi.apiserver.endpoints import Api, Response
from fakeapi.apiserver.kinds import BUILTIN
from tests.fakeapi.api_requests import send

ROOT = "/openapi/v3"


def fetch(api: Api, path: str, etag: str = "", **query: str) -> Response:
    return send(api, "GET", path, query=query, if_none_match=etag)


def document(api: Api, path: str) -> dict[str, Any]:
    parsed: dict[str, Any] = orjson.loads(fetch(api, f"{ROOT}/{path}").body)
    return parsed


def test_the_index_names_every_group_version_and_its_url(api: Api) -> None:
    answer = fetch(api, ROOT)
    paths = orjson.loads(answer.body)["paths"]
    assert answer.content_type == "text/plain; charset=utf-8"
    assert {kind.root.removeprefix("/") for kind in BUILTIN.all} == set(paths)
    address, _, asked = paths["apis/apps/v1"]["serverRelativeURL"].partition("?hash=")
    kept = fetch(api, address, hash=asked)
    assert (kept.status, kept.headers["Cache-Control"]) == (200, "public, immutable")
    assert kept.headers["ETag"] == f'"{asked}"'
    assert fetch(api, address, f'"{asked}"').status == 304


def test_an_outdated_hash_is_redirected_to_the_present_one(api: Api) -> None:
    answer = fetch(api, f"{ROOT}/api/v1", hash="OLD")
    assert answer.status == 301
    assert answer.headers["Location"].startswith(f"{ROOT}/api/v1?hash=")


@pytest.mark.parametrize("path", [f"{ROOT}/apis/none/v1", f"{ROOT}/api/v2"])
def test_an_undescribed_group_is_not_found(api: Api, path: str) -> None:
    assert fetch(api, path).status == 404


@pytest.mark.parametrize(
    "group_version", [kind.root.removeprefix("/") for kind in BUILTIN.all], ids=str
)
def test_a_document_has_all_referenced_schemas(api: Api, group_version: str) -> None:
    described = document(api, group_version)
    schemas = described["components"]["schemas"]
    referred = {name.rpartition("/")[2] for name in references(described)}
    assert referred <= set(schemas)


def references(value: Any) -> set[str]:
    if isinstance(value, list):
        return {name for each in value for name in references(each)}
    if not isinstance(value, dict):
        return set()
    own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
    return own | {name for each in value.values() for name in references(each)}


def test_a_patch_is_described_with_its_kind_and_field_validation(api: Api) -> None:
    paths = document(api, "apis/apps/v1")["paths"]
    patch = paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {
        "group": "apps",
        "version": "v1",
        "kind": "Deployment",
    }
    assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]


def test_a_schema_has_merge_keys_and_descriptions(api: Api) -> None:
    schemas = document(api, "api/v1")["components"]["schemas"]
    containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    assert containers["description"].startswith("List of containers belonging to the pod.")


def test_only_supported_verbs_are_described(api: Api) -> None:
    paths = document(api, "api/v1")["paths"]
    assert set(paths["/api/v1/namespaces/{namespace}/bindings"]) == {"post", "parameters"}
    assert set(paths["/api/v1/componentstatuses"]) == {"get", "parameters"}
    eviction = paths["/api/v1/namespaces/{namespace}/pods/{name}/eviction"]["post"]
    assert eviction["x-kubernetes-group-version-kind"]["kind"] == "Eviction"
