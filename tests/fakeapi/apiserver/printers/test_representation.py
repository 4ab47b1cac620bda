"""Representations of answers and watches: Tables, metadata only, YAML, line breaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
import yaml

from fakeapi.apiserver.endpoints import Api, Request, Response, Watch
from tests.fakeapi.api_requests import MAPS, PARTIAL, TABLE, named, send

PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

Show = Callable[..., Response]


@pytest.fixture
def show(api: Api) -> Show:
    """Send requests to an API with two ConfigMaps: a with one entry, b with none."""
    for name, data in {"a": {"key": "value"}, "b": {}}.items():
        send(api, "POST", MAPS, named(name, **data))

    def show(path: str, accept: str = "", method: str = "GET", **query: str) -> Response:
        return send(api, method, path, query=query, accept=accept)

    return show


def test_a_list_as_a_table(show: Show) -> None:
    shown = orjson.loads(show(MAPS, TABLE).body)
    assert [row["cells"] for row in shown["rows"]] == [["a", 1, "0s"], ["b", 0, "0s"]]
    assert [row["object"]["kind"] for row in shown["rows"]] == ["PartialObjectMetadata"] * 2


def test_an_object_as_a_table(show: Show) -> None:
    shown = orjson.loads(show(f"{MAPS}/a", TABLE, includeObject="Object").body)
    assert shown["rows"][0]["object"]["data"] == {"key": "value"}


def test_an_empty_list_as_a_table_has_columns(show: Show) -> None:
    shown = orjson.loads(show("/api/v1/namespaces/default/pods", TABLE).body)
    assert shown["rows"] == []
    assert shown["columnDefinitions"][0]["format"] == "name"


def test_metadata_alone(show: Show) -> None:
    shown = orjson.loads(show(f"{MAPS}/a", PARTIAL).body)
    assert list(shown) == ["kind", "apiVersion", "metadata"]
    assert (shown["apiVersion"], shown["metadata"]["name"]) == ("meta.k8s.io/v1", "a")


def test_a_list_of_metadata_alone(show: Show) -> None:
    shown = orjson.loads(show(MAPS, PARTIAL_LIST).body)
    assert shown["kind"] == "PartialObjectMetadataList"
    assert [item["metadata"]["name"] for item in shown["items"]] == ["a", "b"]
    assert all("data" not in item for item in shown["items"])


@pytest.mark.parametrize(
    ("path", "accept", "message"),
    [
        (MAPS, PARTIAL, "you requested PartialObjectMetadata, but the requested object is a list"),
        (f"{MAPS}/a", PARTIAL_LIST, "but the requested object is not a list"),
    ],
)
def test_an_unsuitable_representation_is_refused(
    show: Show, path: str, accept: str, message: str
) -> None:
    refused = show(path, accept)
    assert refused.status == 406
    assert message in orjson.loads(refused.body)["message"]


def test_a_refusal_is_a_status_in_every_representation(show: Show) -> None:
    for accept in (TABLE, PARTIAL, PARTIAL_LIST):
        refused = show(f"{MAPS}/nope", accept)
        assert (refused.status, orjson.loads(refused.body)["reason"]) == (404, "NotFound")


def test_a_deletion_answers_with_a_status_not_a_table(show: Show) -> None:
    assert orjson.loads(show(f"{MAPS}/b", TABLE, "DELETE").body)["kind"] == "Status"


def test_an_object_as_yaml(show: Show) -> None:
    answer = show(f"{MAPS}/a", "application/yaml")
    assert answer.content_type == "application/yaml"
    assert yaml.safe_load(answer.body)["data"] == {"key": "value"}


def test_line_breaks_on_demand(show: Show) -> None:
    plain, pretty = show(f"{MAPS}/a"), show(f"{MAPS}/a", pretty="true")
    assert plain.body.count(b"\n") == 1
    assert pretty.body.startswith(b'{\n  "kind": "ConfigMap",\n')
    assert orjson.loads(pretty.body) == orjson.loads(plain.body)


def events(api: Api, accept: str, **query: str) -> list[tuple[str, Any]]:
    watch = api.handle(Request("GET", MAPS, {"watch": "1", **query}, accept=accept))
    assert isinstance(watch, Watch)
    lines: list[bytes] = []
    while more := watch.read(10):
        lines += more
    frames = [orjson.loads(line) for line in [*lines, watch.bookmark()]]
    return [(frame["type"], frame["object"]) for frame in frames]


def test_a_watch_of_tables_defines_columns_once(show: Show, api: Api) -> None:
    assert show(MAPS).status == 200
    seen = events(api, TABLE)
    assert [kind for kind, _ in seen] == ["ADDED", "ADDED", "BOOKMARK"]
    assert [bool(shown["columnDefinitions"]) for _, shown in seen] == [True, False, False]
    assert [shown["rows"][0]["cells"][0] for _, shown in seen] == ["a", "b", ""]


def test_a_watch_of_metadata_shows_no_data(show: Show, api: Api) -> None:
    assert show(MAPS).status == 200
    shapes = {(shown["kind"], tuple(shown)) for _, shown in events(api, PARTIAL)}
    assert shapes == {("PartialObjectMetadata", ("kind", "apiVersion", "metadata"))}


def test_a_watch_of_tables_ends_with_a_status(show: Show, api: Api) -> None:
    assert show(MAPS).status == 200
    watch = api.handle(Request("GET", MAPS, {"watch": "1"}, accept=TABLE))
    assert isinstance(watch, Watch)
    watch.read(10)
    api.reset()
    assert orjson.loads(watch.read(10)[0])["object"]["kind"] == "Status"
    assert watch.ended


def test_a_watch_in_yaml_is_refused(show: Show) -> None:
    assert show(MAPS, "application/yaml", watch="1").status == 406


@pytest.mark.parametrize(
    ("path", "spec"),
    [
        ("authentication.k8s.io/v1/tokenreviews", {"token": "x"}),
        ("authentication.k8s.io/v1/selfsubjectreviews", {}),
        ("authorization.k8s.io/v1/selfsubjectrulesreviews", {"namespace": "default"}),
        (
            "authorization.k8s.io/v1/subjectaccessreviews",
            {"user": "a", "nonResourceAttributes": {"path": "/", "verb": "get"}},
        ),
    ],
    ids=["token", "self", "rules", "access"],
)
def test_a_review_is_no_table(api: Api, path: str, spec: dict[str, object]) -> None:
    body = {"spec": spec} if spec else {}
    accepted = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    message = f"only the following media types are accepted: {accepted}"
    answer = send(api, "POST", f"/apis/{path}", body, accept=TABLE)
    assert (answer.status, orjson.loads(answer.body)["message"]) == (406, message)
    assert send(api, "POST", f"/apis/{path}", body, accept=PARTIAL).status == 201
