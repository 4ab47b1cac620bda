"""The management API: loading objects, history and requests."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from fakeapi.apiserver.endpoints import Api, Request, StatusError
from fakeapi.apiserver.kinds import builtin
from fakeapi.apiserver.registry.manifests import parse_documents
from fakeapi.apiserver.testing.management_api import ManagementApi
from fakeapi.apiserver.testing.request_log import RequestRecord
from tests.builders import manifest, pod_request
from tests.fakeapi.api_requests import PODS, Ask

POD = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {
        "name": "p",
        "namespace": "team",
        "uid": "given",
        "resourceVersion": "99",
        "creationTimestamp": "2020-01-01T00:00:00Z",
        "generation": 4,
    },
    "spec": {"nodeName": "n"},
    "status": {"phase": "Running"},
}
NODE = manifest("Node", "n")


@pytest.fixture
def manage(api: Api) -> Ask:
    management = ManagementApi(api)
    management.requests.append(RequestRecord("GET", "/api/v1/pods", "limit=1", "curl", 200))

    def manage(method: str, name: str, body: bytes = b"", **query: str) -> tuple[int, Any]:
        answer = management.handle(Request(method, f"/_fakeapi/{name}", query, body))
        return answer.status, orjson.loads(answer.body)

    return manage


def test_objects_are_stored_as_they_are_given(ask: Ask, manage: Ask) -> None:
    assert manage("POST", "load", orjson.dumps(POD)) == (200, {"loaded": 1})
    _, pod = ask("GET", "/api/v1/namespaces/team/pods/p")
    assert pod["metadata"].pop("resourceVersion") != "99"
    given = {key: value for key, value in POD["metadata"].items() if key != "resourceVersion"}  # type: ignore[attr-defined]
    assert pod == {**POD, "metadata": given}


def test_the_namespace_of_a_loaded_object_is_created(ask: Ask, manage: Ask) -> None:
    manage("POST", "load", orjson.dumps(POD))
    assert ask("GET", "/api/v1/namespaces/team")[1]["status"] == {"phase": "Active"}


def test_an_object_without_a_namespace_is_loaded_into_default(ask: Ask, manage: Ask) -> None:
    manage("POST", "load", b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"q"}}')
    assert ask("GET", "/api/v1/namespaces/default/pods/q")[0] == 200


def test_loading_again_replaces(ask: Ask, manage: Ask) -> None:
    manage("POST", "load", orjson.dumps(POD))
    manage("POST", "load", orjson.dumps({**POD, "spec": {"nodeName": "m"}}))
    assert ask("GET", "/api/v1/namespaces/team/pods/p")[1]["spec"] == {"nodeName": "m"}


@pytest.mark.parametrize(
    "body",
    [
        orjson.dumps({"kind": "List", "apiVersion": "v1", "items": [NODE, POD]}),
        orjson.dumps([NODE, POD]),
        orjson.dumps(NODE) + b"\n\n" + orjson.dumps(POD) + b"\n",
        orjson.dumps({"kind": "List", "items": [NODE]}) + b"\n" + orjson.dumps([POD]),
    ],
    ids=["list", "array", "lines", "lines of both"],
)
def test_many_objects_come_as_a_list_an_array_or_lines(manage: Ask, body: bytes) -> None:
    assert manage("POST", "load", body) == (200, {"loaded": 2})


def test_the_response_to_a_list_can_be_loaded(ask: Ask, manage: Ask) -> None:
    manage("POST", "load", orjson.dumps(POD))
    listed = orjson.dumps(ask("GET", "/api/v1/pods")[1])
    manage("POST", "reset")
    assert ask("GET", "/api/v1/pods")[1]["items"] == []
    assert manage("POST", "load", listed) == (200, {"loaded": 1})


@pytest.mark.parametrize(
    ("invalid", "message"),
    [
        ({"kind": "Widget", "apiVersion": "v1"}, "document 1: no kind 'Widget' in version 'v1'"),
        ({"kind": "Pod", "apiVersion": "v1"}, "name or generateName is required"),
        ({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": 1}}, "of type string"),
        (3, "expected an object, a List or an array"),
    ],
)
def test_either_all_is_loaded_or_nothing(api: Api, manage: Ask, invalid: Any, message: str) -> None:
    before = api.store.version
    status, answer = manage("POST", "load", orjson.dumps([NODE, invalid]))
    assert status in (400, 422)
    assert message in answer["message"]
    assert api.store.version == before


@pytest.mark.parametrize("body", [b"", b"kind: Pod", b"{}\nnonsense"])
def test_invalid_json_is_not_loaded(body: bytes) -> None:
    with pytest.raises(StatusError):
        parse_documents(body)


def test_history_shows_every_event_of_every_resource_in_order(ask: Ask, manage: Ask) -> None:
    _, node = ask("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
    ask("POST", PODS, pod_request())
    ask("DELETE", "/api/v1/nodes/n")
    since = str(int(node["metadata"]["resourceVersion"]) - 1)
    events = manage("GET", "history", since=since)[1]["events"]
    assert [(e["type"], e["object"]["kind"]) for e in events] == [
        ("ADDED", "Node"),
        ("ADDED", "Pod"),
        ("DELETED", "Node"),
    ]


def test_compacting_forgets_the_history(api: Api, manage: Ask) -> None:
    assert manage("POST", "compact", resourceVersion="2")[0] == 200
    versions = [event.version for event in api.store.history()]
    assert versions == [3, 4, 5, 6]
    manage("POST", "compact")
    assert manage("GET", "history")[1] == {"events": []}


def test_requests_are_logged(manage: Ask) -> None:
    record = manage("GET", "requests")[1]["requests"][0]
    assert record == {
        "method": "GET",
        "path": "/api/v1/pods",
        "query": "limit=1",
        "userAgent": "curl",
        "status": 200,
    }


def test_the_wrong_method_is_refused(manage: Ask) -> None:
    assert manage("GET", "reset")[0] == 405


def test_an_unknown_endpoint_is_refused_with_the_known_ones(api: Api) -> None:
    answer = ManagementApi(api).handle(Request("POST", "/_fakeapi/explode"))
    assert answer.status == 404
    assert (
        b"reset, load, compact, snapshot, restore, fork, clock, export, history, requests"
        in answer.body
    )


@pytest.mark.parametrize(
    ("spec", "priority"),
    [
        ({"priorityClassName": "high"}, 1000),
        ({"priorityClassName": "high", "priority": 5}, 5),
        ({"priorityClassName": "system-node-critical"}, 2_000_001_000),
        ({}, None),
    ],
)
def test_a_loaded_pod_gets_the_priority_of_its_class(
    api: Api, spec: dict[str, Any], priority: int | None
) -> None:
    pod = manifest("Pod", "a", spec={"containers": [], **spec})
    high = manifest("PriorityClass", "high", version="scheduling.k8s.io/v1", value=1000)
    api.load([pod, high])
    [stored] = api.store.entries(builtin.PODS)
    assert stored.document()["spec"].get("priority") == priority


def test_a_loaded_pod_of_an_unknown_class_is_refused(api: Api) -> None:
    pod = manifest("Pod", "a", spec={"containers": [], "priorityClassName": "hihg"})
    with pytest.raises(StatusError) as raised:
        api.load([pod])
    assert raised.value.message == (
        "document 0: Pod default/a: spec.priorityClassName: no PriorityClass 'hihg'"
    )
