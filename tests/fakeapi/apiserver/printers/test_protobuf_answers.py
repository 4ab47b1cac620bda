"""Protobuf answers of the API: objects, lists, errors, watches, and what has no protobuf."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from fakeapi.apiserver.endpoints import Api, Request, Response, Watch
from fakeapi.apiserver.wire.protobuf import read_protobuf
from fakeapi.apiserver.wire.protobuf_encoder import encode_protobuf
from tests.builders.definitions import definition, widget
from tests.fakeapi.api_requests import DEPLOYMENTS, JSON, MAPS, PROTOBUF, TABLE, named, send
from tests.fakeapi.protobuf_frames import read_frames

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
USUAL = f"{PROTOBUF},{JSON}"
PARTIAL = f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PARTIAL_LIST = f"{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
DEPLOYMENT = {
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "nginx"}]},
        },
    },
}


@pytest.fixture(autouse=True)
def config_maps(api: Api) -> None:
    for name, data in {"a": {"key": "value"}, "b": {}}.items():
        assert send(api, "POST", MAPS, named(name, **data)).status == 201


def encoded(document: dict[str, Any]) -> bytes:
    body = encode_protobuf(orjson.dumps(document))
    assert body is not None
    return body


def read(answer: Response) -> Any:
    assert answer.content_type == PROTOBUF
    return read_protobuf(answer.body)


def opened(api: Api, path: str, accept: str = USUAL, **query: str) -> Watch:
    watch = api.handle(Request("GET", path, {"watch": "true", **query}, accept=accept))
    assert isinstance(watch, Watch), watch
    return watch


def events(watch: Watch) -> list[tuple[str, Any]]:
    stream = b""
    while not watch.ended and (frames := watch.read(3)):
        stream += b"".join(frames)
    return read_frames(stream)


@pytest.mark.parametrize(
    "path",
    [f"{MAPS}/a", MAPS, "/api/v1/namespaces/default/pods", "/api/v1/namespaces/kube-system"],
    ids=["object", "list", "empty-list", "namespace"],
)
def test_an_answer_in_protobuf_is_the_same_as_in_json(api: Api, path: str) -> None:
    expected = orjson.loads(send(api, "GET", path, accept=JSON).body)
    if expected.get("items") == []:
        del expected["items"]
    assert read(send(api, "GET", path, accept=USUAL)) == expected


def test_a_list_shows_every_change_since_the_last_one(api: Api) -> None:
    before = read(send(api, "GET", MAPS, accept=PROTOBUF))
    send(api, "PATCH", f"{MAPS}/a", {"data": {"key": "other"}})
    after = read(send(api, "GET", MAPS, accept=PROTOBUF))
    assert [before["items"][0]["data"], after["items"][0]["data"]] == [
        {"key": "value"},
        {"key": "other"},
    ]
    assert before["items"][1] == after["items"][1]


@pytest.mark.parametrize("accept", [PROTOBUF, USUAL])
def test_errors_are_answered_in_protobuf(api: Api, accept: str) -> None:
    status = read(send(api, "GET", f"{MAPS}/missing", accept=accept))
    assert (status["kind"], status["reason"], status["code"]) == ("Status", "NotFound", 404)
    assert status["details"] == {"name": "missing", "kind": "configmaps"}


def test_errors_of_a_request_for_metadata_only_are_answered_in_json(api: Api) -> None:
    answer = send(api, "GET", f"{MAPS}/missing", accept=f"{PARTIAL},{JSON}")
    assert (answer.status, answer.content_type) == (404, JSON)


@pytest.mark.parametrize(
    ("path", "document"),
    [
        (DEFINITIONS, definition(spec={"size": {"type": "integer", "maximum": 3}})),
        (
            SERVICES,
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": "v1.example.org"},
                "spec": {
                    "group": "example.org",
                    "version": "v1",
                    "groupPriorityMinimum": 1000,
                    "versionPriority": 15,
                    "insecureSkipTLSVerify": True,
                    "service": {"namespace": "default", "name": "example"},
                },
            },
        ),
        (DEPLOYMENTS, {"apiVersion": "apps/v1", "kind": "Deployment", **DEPLOYMENT}),
    ],
    ids=["CustomResourceDefinition", "APIService", "Deployment"],
)
def test_objects_are_created_updated_and_deleted_in_protobuf(
    api: Api, path: str, document: dict[str, Any]
) -> None:
    answer = send(api, "POST", path, encoded(document), PROTOBUF, accept=USUAL)
    made = read(answer)
    assert answer.status == 201
    one = f"{path}/{made['metadata']['name']}"
    assert orjson.loads(send(api, "GET", one).body)["spec"] == made["spec"]
    made = read(send(api, "GET", one, accept=USUAL))
    made["metadata"]["labels"] = {"a": "b"}
    changed = read(send(api, "PUT", one, encoded(made), PROTOBUF, accept=USUAL))
    assert changed["metadata"]["labels"] == {"a": "b"}
    options = encoded({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan"})
    assert send(api, "DELETE", one, options, PROTOBUF, accept=USUAL).content_type == PROTOBUF


def test_reviews_and_scales_are_answered_in_protobuf(api: Api) -> None:
    review = {
        "kind": "TokenReview",
        "apiVersion": "authentication.k8s.io/v1",
        "spec": {"token": "x"},
    }
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    assert read(send(api, "POST", path, encoded(review), PROTOBUF, accept=USUAL))["spec"] == {
        "token": "x"
    }
    send(api, "POST", DEPLOYMENTS, DEPLOYMENT)
    scale = read(send(api, "GET", f"{DEPLOYMENTS}/web/scale", accept=USUAL))
    assert (scale["kind"], scale["spec"]) == ("Scale", {"replicas": 2})


def test_tables_stay_json(api: Api) -> None:
    table = f"{PROTOBUF};as=Table;g=meta.k8s.io;v=v1"
    answer = send(api, "GET", MAPS, accept=f"{table},{TABLE}")
    assert (answer.content_type, orjson.loads(answer.body)["kind"]) == (JSON, "Table")


@pytest.mark.parametrize("path", [MAPS, WIDGETS], ids=["built-in", "custom"])
def test_metadata_alone_is_answered_in_protobuf(api: Api, path: str) -> None:
    add_widget(api)
    found = read(send(api, "GET", path, accept=PARTIAL_LIST))
    assert (found["kind"], found["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    assert [set(item) for item in found["items"]] == [{"metadata"}] * len(found["items"])
    one = read(send(api, "GET", f"{path}/a", accept=PARTIAL))
    assert (one["kind"], one["metadata"]["name"]) == ("PartialObjectMetadata", "a")


def add_widget(api: Api) -> None:
    send(api, "POST", DEFINITIONS, definition())
    assert send(api, "POST", WIDGETS, widget("a")).status == 201


@pytest.mark.parametrize("path", [WIDGETS, f"{WIDGETS}/a"], ids=["list", "object"])
def test_custom_resources_are_json_or_not_acceptable(api: Api, path: str) -> None:
    add_widget(api)
    assert send(api, "GET", path, accept=USUAL).content_type == JSON
    refused = send(api, "GET", path, accept=PROTOBUF)
    assert (refused.status, read(refused)["reason"]) == (406, "NotAcceptable")
    missing = send(api, "GET", f"{WIDGETS}/missing", accept=USUAL)
    assert read(missing)["reason"] == "NotFound"


def test_a_watch_is_frames_with_the_objects_of_a_list(api: Api) -> None:
    watch = opened(api, MAPS)
    assert watch.content_type == f"{PROTOBUF};stream=watch"
    listed = orjson.loads(send(api, "GET", MAPS).body)["items"]
    kind = {"kind": "ConfigMap", "apiVersion": "v1"}
    assert events(watch) == [("ADDED", kind | item) for item in listed]
    send(api, "PATCH", f"{MAPS}/a", {"data": {"key": "other"}})
    send(api, "DELETE", f"{MAPS}/b")
    assert [(type_, found["metadata"]["name"]) for type_, found in events(watch)] == [
        ("MODIFIED", "a"),
        ("DELETED", "b"),
    ]


def test_a_watch_of_metadata_alone_is_frames(api: Api) -> None:
    add_widget(api)
    for path in (MAPS, WIDGETS):
        found = events(opened(api, path, PARTIAL))
        assert {event["kind"] for _, event in found} == {"PartialObjectMetadata"}


def test_bookmarks_are_frames(api: Api) -> None:
    query = {"allowWatchBookmarks": "true", "sendInitialEvents": "true"}
    watch = opened(api, MAPS, resourceVersionMatch="NotOlderThan", **query)
    [*_, (type_, last)] = events(watch)
    assert (type_, last["kind"]) == ("BOOKMARK", "ConfigMap")
    assert last["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    [(type_, later)] = read_frames(watch.bookmark())
    assert (type_, later["metadata"]) == ("BOOKMARK", {"resourceVersion": str(api.store.version)})


def test_the_error_of_an_expired_watch_is_a_frame(api: Api) -> None:
    watch = opened(api, MAPS, resourceVersion=str(api.store.version))
    [(type_, status)] = read_frames(watch.expire())
    assert (type_, status["kind"], status["code"]) == ("ERROR", "Status", 410)


@pytest.mark.parametrize(
    "path",
    ["/api", "/apis", "/apis/apps", "/api/v1", "/apis/apps/v1", "/apis/apiextensions.k8s.io"],
)
def test_discovery_in_protobuf_is_the_same_as_in_json(api: Api, path: str) -> None:
    answer = send(api, "GET", path, accept=USUAL)
    assert without_empty(read(answer)) == without_empty(orjson.loads(send(api, "GET", path).body))


@pytest.mark.parametrize("version", ["v2", "v2beta1"])
def test_aggregated_discovery_in_protobuf_is_the_same_as_in_json(api: Api, version: str) -> None:
    kind = f"g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    plain = send(api, "GET", "/apis", accept=f"{JSON};{kind}")
    answer = send(api, "GET", "/apis", accept=f"{PROTOBUF};{kind},{JSON};{kind}")
    assert answer.content_type == f"{PROTOBUF};{kind}"
    assert answer.headers["ETag"] == plain.headers["ETag"]
    assert without_empty(read_protobuf(answer.body)) == without_empty(orjson.loads(plain.body))


@pytest.mark.parametrize("path", ["/version", "/"])
def test_documents_that_are_no_objects_stay_json(api: Api, path: str) -> None:
    assert send(api, "GET", path, accept=USUAL).content_type == JSON


def without_empty(value: Any) -> Any:
    """Return a value without members that Go's decoder does not distinguish from missing ones."""
    if isinstance(value, dict):
        return {
            key: without_empty(item)
            for key, item in value.items()
            if item not in ("", [], {}, False)
        }
    return [without_empty(item) for item in value] if isinstance(value, list) else value
