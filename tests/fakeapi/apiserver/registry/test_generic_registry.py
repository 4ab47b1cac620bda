"""Creates and updates: fields that the server sets and keeps, and refusals."""

from __future__ import annotations

from typing import Any

import pytest

from fakeapi.apiserver.endpoints import Api
from tests.builders import controller_spec, pod_request, pod_spec
from tests.fakeapi.api_requests import BUDGETS, MAPS, NAMESPACES, NODES, PODS, SETS, Ask

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"

TEMPLATE = controller_spec({"app": "web"})


def test_create_sets_identity_and_the_first_status(ask: Ask) -> None:
    body = pod_request() | {"status": {"phase": "Running"}}
    body["metadata"] |= {"uid": "mine", "creationTimestamp": None, "generation": 9}
    status, made = ask("POST", PODS, body)
    assert (status, list(made)[:3]) == (201, ["kind", "apiVersion", "metadata"])
    metadata = made["metadata"]
    assert metadata["uid"] != "mine"
    assert metadata["namespace"] == "default"
    assert metadata["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert metadata["generation"] == 1
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_a_node_keeps_the_status_it_is_created_with(ask: Ask) -> None:
    body = {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "1"}}}
    assert ask("POST", NODES, body)[1]["status"]["capacity"] == {"cpu": "1"}


def test_a_namespace_is_active_labelled_with_its_name_and_held_by_its_finalizer(ask: Ask) -> None:
    _, made = ask("POST", NAMESPACES, {"metadata": {"name": "team"}})
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team"}
    assert made["spec"] == {"finalizers": ["kubernetes"]}
    assert made["status"] == {"phase": "Active"}


def test_names_are_generated_and_differ(ask: Ask) -> None:
    body = {"metadata": {"generateName": "web-"}, "spec": pod_spec()}
    names = {ask("POST", PODS, body)[1]["metadata"]["name"] for _ in range(20)}
    assert len(names) == 20
    assert all(name.startswith("web-") and len(name) == 9 for name in names)


@pytest.mark.parametrize(
    ("body", "status", "reason", "message"),
    [
        ({}, 422, "Invalid", "name or generateName is required"),
        (pod_request("Upper"), 422, "Invalid", "a lowercase RFC 1123 subdomain"),
        (pod_request("a/b"), 422, "Invalid", 'metadata.name: Invalid value: "a/b"'),
        (pod_request("x" * 254), 422, "Invalid", "must be no more than 253 characters"),
        (pod_request() | {"kind": "Node"}, 400, "BadRequest", "cannot be handled as a Pod"),
        (
            pod_request() | {"apiVersion": "v2"},
            400,
            "BadRequest",
            'no kind "Pod" is registered for version "v2"',
        ),
        (pod_request() | {"metadata": 3}, 400, "BadRequest", "Pod.metadata of type v1.ObjectMeta"),
        (pod_request() | {"spec": []}, 400, "BadRequest", "Pod.spec of type v1.PodSpec"),
        (
            {"metadata": {"name": "p", "labels": {"a": 1}}},
            400,
            "BadRequest",
            "ObjectMeta.metadata.labels of type string",
        ),
        (
            {"metadata": {"name": "p", "namespace": "other"}},
            400,
            "BadRequest",
            "the namespace of the provided object does not match",
        ),
        (
            {"metadata": {"name": "P", "resourceVersion": "12"}},
            422,
            "Invalid",
            'metadata.name: Invalid value: "P"',
        ),
        (
            {**pod_request("p"), "metadata": {"name": "p", "resourceVersion": "12"}},
            500,
            None,
            "resourceVersion should not be set on objects to be created",
        ),
        ([], 400, "BadRequest", "json: cannot unmarshal array into Go value"),
    ],
)
def test_a_create_that_breaks_a_rule_is_refused_and_stores_nothing(
    api: Api, ask: Ask, body: Any, status: int, reason: str | None, message: str
) -> None:
    before = api.store.version
    code, answer = ask("POST", PODS, body)
    assert (code, answer.get("reason")) == (status, reason)
    assert message in answer["message"]
    assert api.store.version == before


def test_a_dry_run_of_a_create_ignores_the_resource_version(ask: Ask) -> None:
    body = {"metadata": {"name": "a", "resourceVersion": "12"}}
    assert ask("POST", MAPS, body, dryRun="All")[0] == 201
    assert ask("POST", MAPS, body)[0] == 500


def test_a_replacement_that_creates_ignores_the_resource_version(ask: Ask) -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    body = {"metadata": {"name": "a", "resourceVersion": "12"}}
    assert ask("PUT", f"{leases}/a", body)[0] == 201


def test_a_resource_version_that_is_no_number_is_ignored_on_create(ask: Ask) -> None:
    body = {"metadata": {"name": "p", "resourceVersion": "v1"}, "spec": pod_spec()}
    assert ask("POST", PODS, body)[0] == 201


def test_a_taken_name_is_answered_with_upstreams_status(ask: Ask) -> None:
    ask("POST", PODS, pod_request())
    status, answer = ask("POST", PODS, pod_request())
    assert status == 409
    assert list(answer.items()) == [
        ("kind", "Status"),
        ("apiVersion", "v1"),
        ("metadata", {}),
        ("status", "Failure"),
        ("message", 'pods "p" already exists'),
        ("reason", "AlreadyExists"),
        ("details", {"name": "p", "kind": "pods"}),
        ("code", 409),
    ]


def test_nothing_is_created_in_a_namespace_that_is_missing_or_ending(ask: Ask) -> None:
    path = "/api/v1/namespaces/team/pods"
    status, answer = ask("POST", path, pod_request())
    assert (status, answer["message"]) == (404, 'namespaces "team" not found')
    ask("POST", NAMESPACES, {"metadata": {"name": "team"}})
    ask("DELETE", f"{NAMESPACES}/team")
    status, answer = ask("POST", path, pod_request())
    assert (status, answer["reason"]) == (403, "Forbidden")
    assert answer["details"]["causes"][0]["reason"] == "NamespaceTerminating"


def test_an_update_based_on_an_old_version_conflicts(ask: Ask) -> None:
    _, made = ask("POST", PODS, pod_request(activeDeadlineSeconds=5))
    newer = {**made, "spec": {**made["spec"], "activeDeadlineSeconds": 4}}
    assert ask("PUT", f"{PODS}/p", newer)[0] == 200
    newest = {**made, "spec": {**made["spec"], "activeDeadlineSeconds": 3}}
    status, answer = ask("PUT", f"{PODS}/p", newest)
    assert (status, answer["reason"]) == (409, "Conflict")
    assert answer["message"] == (
        'Operation cannot be fulfilled on pods "p": the object has been modified; please apply '
        "your changes to the latest version and try again"
    )
    assert ask("GET", f"{PODS}/p")[1]["spec"]["activeDeadlineSeconds"] == 4


def test_an_update_meant_for_another_object_of_that_name_conflicts(ask: Ask) -> None:
    ask("POST", PODS, pod_request())
    body = {"metadata": {"name": "p", "uid": "other"}}
    status, answer = ask("PUT", f"{PODS}/p", body)
    assert status == 409
    assert "Precondition failed: UID in precondition: other" in answer["message"]


def test_only_some_kinds_can_be_updated_without_a_version(ask: Ask) -> None:
    ask("POST", PODS, pod_request())
    assert ask("PUT", f"{PODS}/p", pod_request(activeDeadlineSeconds=5))[0] == 200
    ask("POST", BUDGETS, {"metadata": {"name": "b"}, "spec": {}})
    status, answer = ask("PUT", f"{BUDGETS}/b", {"metadata": {"name": "b"}, "spec": {}})
    assert (status, answer["reason"]) == (422, "Invalid")
    assert "must be specified for an update" in answer["message"]
    assert answer["details"]["kind"] == "poddisruptionbudgets"


def test_an_update_keeps_identity_and_status_and_counts_changes_of_the_spec(ask: Ask) -> None:
    _, made = ask("POST", SETS, {"metadata": {"name": "s"}, "spec": TEMPLATE | {"replicas": 1}})
    body = {
        "metadata": {"name": "s", "labels": {"a": "b"}, "generation": 7},
        "spec": TEMPLATE | {"replicas": 2},
        "status": {"replicas": 9},
    }
    _, updated = ask("PUT", f"{SETS}/s", body)
    assert updated["metadata"]["uid"] == made["metadata"]["uid"]
    assert updated["metadata"]["generation"] == 2
    assert updated["metadata"]["labels"] == {"a": "b"}
    assert updated["status"] == {"replicas": 0}
    _, relabelled = ask("PATCH", f"{SETS}/s", {"metadata": {"labels": {"a": "c"}}})
    assert relabelled["metadata"]["generation"] == 2


def test_a_status_update_changes_the_status_and_nothing_of_the_spec(ask: Ask) -> None:
    ask("POST", PODS, pod_request(nodeName="a"))
    body = {
        "metadata": {"name": "p", "labels": {"x": "y"}, "ownerReferences": [{"uid": "u"}]},
        "spec": {"nodeName": "b"},
        "status": {"phase": "Running"},
    }
    status, answer = ask("PUT", f"{PODS}/p/status", body)
    assert (status, answer["spec"]["nodeName"]) == (200, "a")
    assert answer["status"] == {"phase": "Running"}
    assert answer["metadata"]["labels"] == {"x": "y"}
    assert "ownerReferences" not in answer["metadata"]
    assert answer["metadata"]["generation"] == 1


def test_an_update_that_changes_nothing_writes_nothing(api: Api, ask: Ask) -> None:
    ask("POST", PODS, pod_request(nodeName="a"))
    before = api.store.version
    _, answer = ask("PATCH", f"{PODS}/p", {"spec": {"nodeName": "a"}})
    assert api.store.version == before
    assert answer["metadata"]["resourceVersion"] == str(before)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"metadata": {}}, "name must be provided"),
        ({"metadata": {"name": "q"}}, "does not match the name on the URL (p)"),
    ],
)
def test_an_update_names_the_object_of_its_url(ask: Ask, body: Any, message: str) -> None:
    ask("POST", PODS, pod_request())
    status, answer = ask("PUT", f"{PODS}/p", body)
    assert status == 400
    assert message in answer["message"]


def test_an_update_creates_objects_of_some_kinds_only(ask: Ask) -> None:
    assert ask("PUT", f"{PODS}/p", pod_request())[0] == 404
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}
    assert ask("PUT", f"{LEASES}/l", lease)[0] == 201
    lease["metadata"]["resourceVersion"] = ask("GET", f"{LEASES}/l")[1]["metadata"][
        "resourceVersion"
    ]
    assert ask("PUT", f"{LEASES}/l", lease)[0] == 200


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_a_missing_object_is_not_found(ask: Ask, method: str) -> None:
    body = None if method in ("GET", "DELETE") else {"metadata": {"name": "s"}}
    status, answer = ask(method, f"{SETS}/s", body)
    assert (status, answer["message"]) == (404, 'replicasets.apps "s" not found')
    assert answer["details"] == {"name": "s", "group": "apps", "kind": "replicasets"}
