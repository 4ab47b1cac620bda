"""The server describes itself: metrics, and the issuer of its tokens."""

from __future__ import annotations

import orjson
from prometheus_client.parser import text_string_to_metric_families

from fakeapi.apiserver.endpoints import Api, Request, Response
from tests.fakeapi.api_requests import NODES, Ask


def answer(api: Api, path: str) -> Response:
    response = api.handle(Request("GET", path))
    assert isinstance(response, Response)
    assert response.status == 200
    return response


def test_metrics_count_the_objects_of_each_kind(api: Api, ask: Ask) -> None:
    for name in "ab":
        ask("POST", NODES, {"metadata": {"name": name}})
    families = text_string_to_metric_families(answer(api, "/metrics").body.decode())
    samples = {family.name: family.samples for family in families}
    [build] = samples["kubernetes_build_info"]
    assert build.labels["git_version"] == "v1.37.0"
    counts = {
        (sample.labels["group"], sample.labels["resource"]): sample.value
        for sample in samples["apiserver_resource_objects"]
    }
    assert counts["", "nodes"] == 2
    assert counts["", "namespaces"] == 4
    assert counts["apps", "deployments"] == 0


def test_the_issuer_of_tokens_is_described(api: Api) -> None:
    configuration = orjson.loads(answer(api, "/.well-known/openid-configuration").body)
    path = configuration["jwks_uri"].removeprefix(configuration["issuer"])
    keys = answer(api, path)
    assert keys.content_type == "application/jwk-set+json"
    assert orjson.loads(keys.body) == {"keys": []}


def test_the_root_lists_these_paths(ask: Ask) -> None:
    paths = ask("GET", "/")[1]["paths"]
    assert {"/metrics", "/openid/v1/jwks", "/.well-known/openid-configuration"} <= set(paths)
