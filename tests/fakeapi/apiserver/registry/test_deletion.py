"""Deletion: grace periods, finalizers, preconditions, propagation and collections."""

from __future__ import annotations

from typing import Any

import pytest

from fakeapi.apiserver.endpoints import Api
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from tests.builders import pod_spec
from tests.fakeapi.api_requests import NAMESPACES, NODES, PODS, Ask, OpenWatch

POD = f"{PODS}/p"


def create_pod(ask: Ask, spec: dict[str, Any], phase: str = "Running", **metadata: Any) -> None:
    pod = {"metadata": {"name": "p", **metadata}, "spec": pod_spec(**spec)}
    assert ask("POST", PODS, pod)[0] == 201
    assert ask("PATCH", f"{POD}/status", {"status": {"phase": phase}})[0] == 200


@pytest.mark.parametrize(
    ("spec", "phase", "options", "grace"),
    [
        ({}, "Pending", {}, None),
        ({"nodeName": "n"}, "Succeeded", {}, None),
        ({"nodeName": "n"}, "Failed", {"gracePeriodSeconds": 5}, None),
        ({"nodeName": "n"}, "Running", {"gracePeriodSeconds": 0}, None),
        ({"nodeName": "n"}, "Running", {}, 30),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 45}, "Running", {}, 45),
        (
            {"nodeName": "n", "terminationGracePeriodSeconds": 60},
            "Running",
            {"gracePeriodSeconds": 5},
            5,
        ),
        ({"nodeName": "n"}, "Running", {"gracePeriodSeconds": -1}, 1),
    ],
)
def test_running_pods_have_a_grace_period_and_others_are_deleted_at_once(
    ask: Ask, spec: dict[str, Any], phase: str, options: dict[str, int], grace: int | None
) -> None:
    create_pod(ask, spec, phase)
    status, answer = ask("DELETE", POD, options)
    assert (status, answer["kind"]) == (200, "Pod")
    found, pod = ask("GET", POD)
    if grace is None:
        assert found == 404
    else:
        assert pod["metadata"]["deletionGracePeriodSeconds"] == grace
        assert (
            pod["metadata"]["deletionTimestamp"]
            == f"2026-01-01T00:{grace // 60:02}:{grace % 60:02}Z"
        )


def test_a_second_delete_may_shorten_the_grace_period_but_not_lengthen_it(
    api: Api, ask: Ask
) -> None:
    create_pod(ask, {"nodeName": "n"})
    ask("DELETE", POD)
    before = api.store.version
    ask("DELETE", POD)
    ask("DELETE", POD, {"gracePeriodSeconds": 60})
    assert api.store.version == before
    _, pod = ask("DELETE", POD, {"gracePeriodSeconds": 2})
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 2
    ask("DELETE", POD, {"gracePeriodSeconds": 0})
    assert ask("GET", POD)[0] == 404


def test_the_grace_period_may_be_a_query_parameter(ask: Ask) -> None:
    create_pod(ask, {"nodeName": "n"})
    ask("DELETE", POD, None, gracePeriodSeconds="0")
    assert ask("GET", POD)[0] == 404


def test_watchers_see_the_deletion_timestamp_and_then_the_deletion(
    ask: Ask, watch: OpenWatch
) -> None:
    create_pod(ask, {"nodeName": "n"})
    read = watch(PODS)
    read()
    ask("DELETE", POD)
    ask("DELETE", POD, {"gracePeriodSeconds": 0})
    kinds = [(kind, "deletionTimestamp" in pod["metadata"]) for kind, pod in read()]
    assert kinds == [("MODIFIED", True), ("MODIFIED", True), ("DELETED", True)]


def test_an_object_is_deleted_with_its_last_finalizer(ask: Ask) -> None:
    ask("POST", NODES, {"metadata": {"name": "n", "finalizers": ["a/a", "b/b"]}})
    _, marked = ask("DELETE", f"{NODES}/n")
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    for left, found in ((["b/b"], 200), ([], 404)):
        ask("PATCH", f"{NODES}/n", {"metadata": {"finalizers": left}})
        assert ask("GET", f"{NODES}/n")[0] == found


def test_a_pod_is_deleted_without_finalizers_and_containers(ask: Ask) -> None:
    create_pod(ask, {"nodeName": "n"}, finalizers=["a/a"])
    ask("DELETE", POD, {"gracePeriodSeconds": 0})
    assert ask("GET", POD)[0] == 200
    ask("PATCH", POD, {"metadata": {"finalizers": None}})
    assert ask("GET", POD)[0] == 404


def test_an_update_cannot_remove_the_deletion_timestamp(ask: Ask) -> None:
    create_pod(ask, {"nodeName": "n"})
    ask("DELETE", POD)
    patch = {"metadata": {"deletionTimestamp": None, "deletionGracePeriodSeconds": None}}
    _, pod = ask("PATCH", POD, patch)
    assert pod["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:30Z"


def test_most_kinds_answer_a_delete_with_a_status(ask: Ask) -> None:
    _, node = ask("POST", NODES, {"metadata": {"name": "n"}})
    status, answer = ask("DELETE", f"{NODES}/n")
    assert status == 200
    assert answer == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": "n", "kind": "nodes", "uid": node["metadata"]["uid"]},
    }


def test_a_namespace_terminates_and_waits_for_its_finalizer(ask: Ask) -> None:
    ask("POST", NAMESPACES, {"metadata": {"name": "team"}})
    _, answer = ask("DELETE", f"{NAMESPACES}/team")
    assert answer["status"]["phase"] == "Terminating"
    assert ask("GET", f"{NAMESPACES}/team")[1]["spec"] == {"finalizers": ["kubernetes"]}


def test_system_namespaces_cannot_be_deleted(ask: Ask) -> None:
    status, answer = ask("DELETE", f"{NAMESPACES}/kube-system")
    assert (status, answer["reason"]) == (403, "Forbidden")


@pytest.mark.parametrize("wrong", [{"uid": "other"}, {"resourceVersion": "1"}])
def test_a_delete_meant_for_another_object_conflicts(ask: Ask, wrong: dict[str, str]) -> None:
    create_pod(ask, {})
    status, answer = ask("DELETE", POD, {"preconditions": wrong})
    assert (status, answer["reason"]) == (409, "Conflict")
    assert ask("GET", POD)[0] == 200


@pytest.mark.parametrize(
    "options",
    [
        {"gracePeriodSeconds": "soon"},
        {"gracePeriodSeconds": True},
        {"preconditions": []},
        {"preconditions": {"uid": 1}},
        {"dryRun": "All"},
        {"propagationPolicy": 1},
        {"kind": "Pod"},
        [],
    ],
)
def test_delete_options_of_a_wrong_type_are_refused(ask: Ask, options: Any) -> None:
    create_pod(ask, {})
    assert ask("DELETE", POD, options)[0] == 400
    assert ask("GET", POD)[0] == 200


def test_selected_objects_of_a_collection_are_deleted(ask: Ask) -> None:
    for name, team in (("a", "red"), ("b", "blue"), ("c", "red")):
        ask("POST", NODES, {"metadata": {"name": name, "labels": {"team": team}}})
    status, answer = ask("DELETE", NODES, labelSelector="team=red")
    assert (status, len(answer["items"])) == (200, 2)
    left = ask("GET", NODES)[1]["items"]
    assert [node["metadata"]["name"] for node in left] == ["b"]


def test_a_collection_is_deleted_page_by_page(ask: Ask) -> None:
    for name in "abc":
        ask("POST", NODES, {"metadata": {"name": name}})
    _, answer = ask("DELETE", NODES, limit="2")
    assert answer["metadata"]["remainingItemCount"] == 1
    assert [node["metadata"]["name"] for node in ask("GET", NODES)[1]["items"]] == ["c"]


async def test_a_shorter_period_counts_from_the_first_delete(ask: Ask, clock: VirtualClock) -> None:
    create_pod(ask, {"nodeName": "n"})
    ask("DELETE", POD, {"gracePeriodSeconds": 60})
    await clock.advance(10)
    _, pod = ask("DELETE", POD, {"gracePeriodSeconds": 30})
    assert pod["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:30Z"
    await clock.advance(20)
    _, pod = ask("DELETE", POD, {"gracePeriodSeconds": 5})
    assert pod["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:30Z"
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 1


@pytest.mark.parametrize(
    ("present", "options", "left"),
    [
        ([], {"propagationPolicy": "Background"}, None),
        ([], {"propagationPolicy": "Foreground"}, ["foregroundDeletion"]),
        ([], {"propagationPolicy": "Orphan"}, ["orphan"]),
        ([], {"orphanDependents": True}, ["orphan"]),
        (["foregroundDeletion"], {"orphanDependents": False}, None),
        (["orphan"], {"propagationPolicy": "Foreground"}, ["foregroundDeletion"]),
        (["orphan", "x/y"], {"propagationPolicy": "Background"}, ["x/y"]),
        (["foregroundDeletion"], {}, ["foregroundDeletion"]),
    ],
)
def test_the_propagation_policy_becomes_a_finalizer(
    ask: Ask, present: list[str], options: dict[str, Any], left: list[str] | None
) -> None:
    ask("POST", NODES, {"metadata": {"name": "n", "finalizers": present}})
    ask("DELETE", f"{NODES}/n", options)
    status, node = ask("GET", f"{NODES}/n")
    assert status == (200 if left else 404)
    assert not left or node["metadata"]["finalizers"] == left


def test_jobs_orphan_by_default_and_events_have_no_dependents(ask: Ask) -> None:
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    template = {"spec": pod_spec(restartPolicy="Never")}
    ask("POST", jobs, {"metadata": {"name": "j"}, "spec": {"template": template}})
    assert ask("DELETE", f"{jobs}/j")[1]["metadata"]["finalizers"] == ["orphan"]
    events = "/api/v1/namespaces/default/events"
    involved = {"kind": "Pod", "name": "p", "namespace": "default"}
    ask("POST", events, {"metadata": {"name": "e"}, "involvedObject": involved})
    ask("DELETE", f"{events}/e", {"propagationPolicy": "Foreground"})
    assert ask("GET", f"{events}/e")[0] == 404
