"""Webhooks of a request: rules, selectors, equivalent versions, exemptions."""

from __future__ import annotations

from typing import Any

import pytest

from fakeapi.apiserver.endpoints import Api
from tests.builders import event_json, manifest
from tests.fakeapi.admission_webhooks import CONFIGURATIONS, Recorder, configuration, rule, webhook
from tests.fakeapi.api_requests import MAPS, NAMESPACES, NODES, Ask
from tests.fakeapi.apiserver.admission.conftest import Configure

EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"

RED = {"matchExpressions": [{"key": "team", "operator": "In", "values": ["red"]}]}
WATCHED = {"matchLabels": {"watched": "yes"}}
EVENT = event_json()


def named(name: str = "a", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}}


@pytest.mark.parametrize(
    ("found", "asked"),
    [
        (rule("configmaps"), 1),
        (rule("*"), 1),
        (rule("*/*"), 1),
        (rule("secrets", "configmaps"), 1),
        (rule("configmaps/status"), 0),
        (rule("*/status"), 0),
        (rule("secrets"), 0),
        (rule("configmaps", operations=["UPDATE", "CREATE"]), 1),
        (rule("configmaps", operations=["UPDATE"]), 0),
        (rule("configmaps", apiGroups=[""]), 1),
        (rule("configmaps", apiGroups=["apps"]), 0),
        (rule("configmaps", apiVersions=["v1"]), 1),
        (rule("configmaps", apiVersions=["v2"]), 0),
        (rule("configmaps", scope="Namespaced"), 1),
        (rule("configmaps", scope="Cluster"), 0),
    ],
)
def test_rules_select_requests(
    ask: Ask, configure: Configure, found: dict[str, Any], asked: int
) -> None:
    recorder = configure("validating", rules=[found])
    ask("POST", MAPS, named())
    assert len(recorder.requests) == asked


@pytest.mark.parametrize(("scope", "asked"), [("*", 2), ("Cluster", 2), ("Namespaced", 0)])
def test_namespaces_and_nodes_belong_to_no_namespace(
    ask: Ask, configure: Configure, scope: str, asked: int
) -> None:
    recorder = configure("validating", rules=[rule("*", scope=scope)])
    ask("POST", NODES, named())
    ask("POST", NAMESPACES, named())
    assert len(recorder.requests) == asked


@pytest.fixture
def by_namespace(ask: Ask, configure: Configure) -> Recorder:
    ask("POST", NAMESPACES, named("red", labels={"team": "red"}))
    ask("POST", NAMESPACES, named("blue", labels={"team": "blue"}))
    return configure("validating", "*", namespaceSelector=RED)


@pytest.mark.parametrize(("namespace", "asked"), [("red", 1), ("blue", 0)])
def test_objects_match_by_the_labels_of_their_namespace(
    ask: Ask, by_namespace: Recorder, namespace: str, asked: int
) -> None:
    ask("POST", f"/api/v1/namespaces/{namespace}/configmaps", named())
    assert len(by_namespace.requests) == asked


def test_cluster_scoped_objects_match_any_namespace_selector(
    ask: Ask, by_namespace: Recorder
) -> None:
    ask("POST", NODES, named())
    assert by_namespace.seen("name") == ["a"]


def test_a_new_namespace_matches_by_its_own_labels(ask: Ask, by_namespace: Recorder) -> None:
    ask("POST", NAMESPACES, named("one", labels={"team": "red"}))
    ask("POST", NAMESPACES, named("two"))
    assert by_namespace.seen("name", "namespace") == [("one", "one")]


def test_a_changed_namespace_matches_by_its_new_labels(ask: Ask, by_namespace: Recorder) -> None:
    patch = {"metadata": {"labels": {"team": "red"}}}
    assert ask("PATCH", f"{NAMESPACES}/blue", patch)[0] == 200
    assert by_namespace.seen("name") == ["blue"]


def test_a_deleted_namespace_is_matched_by_its_last_labels(
    ask: Ask, by_namespace: Recorder
) -> None:
    ask("DELETE", f"{NAMESPACES}/blue")
    ask("DELETE", f"{NAMESPACES}/red")
    assert by_namespace.seen("operation", "name") == [("DELETE", "red")]


@pytest.fixture
def by_object(configure: Configure) -> Recorder:
    return configure("validating", objectSelector=WATCHED)


@pytest.mark.parametrize(
    ("before", "after", "asked"),
    [("no", "no", 0), ("no", "yes", 1), ("yes", "no", 2), ("yes", "yes", 2)],
)
def test_the_new_or_the_old_object_must_match(
    ask: Ask, by_object: Recorder, before: str, after: str, asked: int
) -> None:
    ask("POST", MAPS, named(labels={"watched": before}))
    ask("PUT", f"{MAPS}/a", named(labels={"watched": after}))
    assert len(by_object.requests) == asked


def test_a_delete_is_matched_by_the_old_labels(ask: Ask, by_object: Recorder) -> None:
    ask("POST", MAPS, named("b", labels={"watched": "yes"}))
    ask("POST", MAPS, named("a"))
    ask("DELETE", f"{MAPS}/a")
    ask("DELETE", f"{MAPS}/b")
    assert by_object.seen("operation", "name") == [("CREATE", "b"), ("DELETE", "b")]


def test_an_equivalent_form_is_seen_converted(ask: Ask, configure: Configure) -> None:
    recorder = configure("mutating", rules=[rule("events", apiGroups=[""])])
    assert ask("POST", EVENTS, EVENT)[0] == 201
    [request] = recorder.requests
    assert request["kind"] == {"group": "", "version": "v1", "kind": "Event"}
    assert request["resource"] == {"group": "", "version": "v1", "resource": "events"}
    assert request["requestKind"]["group"] == request["requestResource"]["group"]
    assert request["requestResource"]["group"] == "events.k8s.io"
    assert (request["object"]["apiVersion"], request["object"]["message"]) == ("v1", "assigned")


def test_the_form_of_the_request_comes_first(ask: Ask, configure: Configure) -> None:
    recorder = configure("mutating", "events")
    ask("POST", EVENTS, EVENT)
    [request] = recorder.requests
    assert request["kind"]["group"] == "events.k8s.io"
    assert request["object"]["note"] == "assigned"


def test_an_exact_policy_sees_its_own_form_only(ask: Ask, configure: Configure) -> None:
    rules = [rule("events", apiGroups=[""])]
    recorder = configure("mutating", rules=rules, matchPolicy="Exact")
    ask("POST", EVENTS, EVENT)
    assert not recorder.requests


@pytest.mark.parametrize(
    ("expressions", "asked"),
    [
        (["true"], 1),
        (["object.metadata.name == 'a'", "oldObject == null"], 1),
        (["request.operation == 'CREATE'", "request.userInfo.username != 'ada'"], 1),
        (["object.metadata.name.startsWith('b')"], 0),
        (["object.missing.x", "false"], 0),
        (["authorizer.requestResource.check('create').allowed()"], 1),
        (["authorizer.group('').resource('pods').check('get').reason() == 'no'"], 0),
        (["namespaceObject.metadata.name == 'default'"], 1),
        (["false", "object.missing.x"], 0),
    ],
)
def test_all_match_conditions_must_hold(
    ask: Ask, configure: Configure, expressions: list[str], asked: int
) -> None:
    conditions = [{"name": f"c{n}", "expression": e} for n, e in enumerate(expressions)]
    recorder = configure("validating", matchConditions=conditions)
    assert ask("POST", MAPS, named())[0] == 201
    assert len(recorder.requests) == asked


def test_a_match_condition_error_is_ignored_by_failure_policy(
    ask: Ask, configure: Configure
) -> None:
    conditions = [{"name": "a", "expression": "object.missing.x"}]
    recorder = configure("mutating", matchConditions=conditions, failurePolicy="Ignore")
    assert ask("POST", MAPS, named())[0] == 201
    assert not recorder.requests


def test_a_match_condition_error_is_refused_in_upstreams_words(
    ask: Ask, configure: Configure
) -> None:
    conditions = [{"name": "a", "expression": "object.missing.x"}]
    configure("mutating", matchConditions=conditions)
    status, refusal = ask("POST", MAPS, named())
    assert (status, refusal["message"]) == (
        403,
        (
            "configmaps \"a\" is forbidden: expression 'object.missing.x' resulted in error: "
            "no such key: missing"
        ),
    )


def test_webhook_configurations_are_not_reviewed(ask: Ask, configure: Configure) -> None:
    recorder = configure("validating", "*/*")
    for role in ("mutating", "validating"):
        body = configuration(role, webhook("b.example.com"), name="new")
        assert ask("POST", CONFIGURATIONS[role], body)[0] == 201
        assert ask("DELETE", f"{CONFIGURATIONS[role]}/new")[0] == 200
    assert not recorder.requests


def test_loading_calls_no_webhooks(api: Api, configure: Configure) -> None:
    recorder = configure("validating", "*")
    api.load([manifest("Node", "a")])
    assert not recorder.requests


def test_a_configuration_counts_from_its_creation_to_its_end(ask: Ask, api: Api) -> None:
    path, recorder = CONFIGURATIONS["validating"], Recorder()
    api.webhooks.handlers["a.example.com"] = recorder
    ask("POST", MAPS, named("a"))
    ask("POST", path, configuration("validating", webhook("a.example.com")))
    ask("POST", MAPS, named("b"))
    changed = {"webhooks": [webhook("a.example.com", "secrets")]}
    ask("PATCH", f"{path}/validating", changed)
    ask("POST", MAPS, named("c"))
    ask("DELETE", f"{path}/validating")
    ask("POST", MAPS, named("d"))
    assert recorder.seen("name") == ["b"]


@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        ({"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}, 500, "Near"),
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}},
            500,
            "Near",
        ),
        ({"matchConditions": [{"name": "a", "expression": "object.x.y"}]}, 403, "no such key: x"),
    ],
)
def test_an_unvalidated_condition_refuses_matching_requests(
    ask: Ask, configure: Configure, fields: dict[str, Any], status: int, message: str
) -> None:
    recorder = configure("validating", **fields)
    code, refusal = ask("POST", MAPS, named())
    assert (code, message in refusal["message"]) == (status, True)
    assert not recorder.requests
    assert ask("POST", NODES, named())[0] == 201


def test_an_invalid_loaded_configuration_is_ignored(ask: Ask, api: Api) -> None:
    api.load([configuration("validating") | {"webhooks": "none"}])
    assert ask("POST", MAPS, named())[0] == 201
