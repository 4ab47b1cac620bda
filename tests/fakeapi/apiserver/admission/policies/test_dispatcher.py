"""ValidatingAdmissionPolicies of a request: what denies it, with which code and words."""

from __future__ import annotations

from typing import Any

import pytest

from fakeapi.apiserver.endpoints import Api
from tests.fakeapi.admission_policies import (
    BINDINGS,
    POLICIES,
    binding,
    matching,
    policy,
    validation,
)
from tests.fakeapi.admission_webhooks import answered, configuration, rule, webhook
from tests.fakeapi.api_requests import DEFAULT, MAPS, NAMESPACES, PODS, Ask, named, send
from tests.fakeapi.apiserver.admission.policies.conftest import Enforce

DENIED = "ValidatingAdmissionPolicy 'rule' with binding 'rule' denied request: "


def test_a_failed_validation_denies_a_create_with_upstreams_status(
    ask: Ask, enforce: Enforce
) -> None:
    enforce("object.data.size() < 2", message="too much data")
    assert ask("POST", MAPS, named("small", a="1"))[0] == 201
    status, answer = ask("POST", MAPS, named("big", a="1", b="2"))
    message = f"{DENIED}too much data"
    assert status == 422
    assert answer == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'configmaps "big" is forbidden: {message}',
        "reason": "Invalid",
        "details": {"name": "big", "kind": "configmaps", "causes": [{"message": message}]},
        "code": 422,
    }
    assert ask("GET", f"{MAPS}/big")[0] == 404


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "failed expression: object.data.size() < 1"),
        ({"message": " no data "}, "no data"),
        ({"messageExpression": "object.metadata.name + ' has data'"}, "a has data"),
        ({"message": "no", "messageExpression": "object.metadata.missing + ''"}, "no"),
        ({"message": "no", "messageExpression": "'  '"}, "no"),
        ({"message": "no", "messageExpression": "'two\\nlines'"}, "no"),
        ({"messageExpression": "'at most ' + string(variables.limit)"}, "at most 1"),
    ],
    ids=["expression", "message", "worded", "error", "blank", "lines", "variable"],
)
def test_the_message_is_that_of_the_validation(
    ask: Ask, enforce: Enforce, fields: dict[str, str], message: str
) -> None:
    variables = [{"name": "limit", "expression": "1"}]
    enforce("object.data.size() < 1", variables=variables, **fields)
    status, answer = ask("POST", MAPS, named("a", b="c"))
    assert (status, answer["details"]["causes"]) == (422, [{"message": DENIED + message}])


@pytest.mark.parametrize(
    ("reason", "code"),
    [("Forbidden", 403), ("RequestEntityTooLarge", 413), ("Invalid", 422)],
)
def test_the_reason_of_a_validation_is_that_of_the_status(
    ask: Ask, enforce: Enforce, reason: str, code: int
) -> None:
    enforce("false", reason=reason)
    status, answer = ask("POST", MAPS, named("a"))
    assert (status, answer["reason"], answer["code"]) == (code, reason, code)


@pytest.mark.parametrize(
    ("actions", "status", "warned"),
    [
        (("Deny",), 422, []),
        (
            ("Warn",),
            201,
            ["Validation failed for ValidatingAdmissionPolicy 'rule' with binding 'rule': no"],
        ),
        (("Audit",), 201, []),
        (("Deny", "Audit"), 422, []),
    ],
    ids=["deny", "warn", "audit", "both"],
)
def test_the_actions_of_a_binding_decide(
    api: Api, enforce: Enforce, actions: tuple[str, ...], status: int, warned: list[str]
) -> None:
    enforce("false", message="no", actions=actions)
    answer = send(api, "POST", MAPS, named("a"))
    assert (answer.status, list(answer.warnings)) == (status, warned)


def test_warnings_are_sent_with_a_denial(api: Api, enforce: Enforce) -> None:
    enforce("false", name="a", message="warned", actions=("Warn",))
    enforce("false", name="b", message="denied")
    answer = send(api, "POST", MAPS, named("a"))
    assert answer.status == 422
    assert [warning.rpartition(": ")[2] for warning in answer.warnings] == ["warned"]


ERROR = "expression 'object.data.missing == 'a'' resulted in error: no such key: missing"


@pytest.mark.parametrize(
    ("failure_policy", "status", "causes"),
    [("Fail", 422, [{"message": DENIED + ERROR}]), ("Ignore", 201, None)],
)
def test_the_failure_policy_decides_about_errors(
    ask: Ask, enforce: Enforce, failure_policy: str, status: int, causes: object
) -> None:
    enforce("object.data.missing == 'a'", failurePolicy=failure_policy)
    got, answer = ask("POST", MAPS, named("a", b="c"))
    assert (got, answer.get("details", {}).get("causes")) == (status, causes)


def test_with_failure_policy_ignore_a_false_validation_denies(ask: Ask, enforce: Enforce) -> None:
    enforce("false", failurePolicy="Ignore")
    assert ask("POST", MAPS, named("a"))[0] == 422


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("request.operation != 'UPDATE' || object.data == oldObject.data", [201, 422, 422, 200]),
        ("request.operation != 'DELETE'", [201, 200, 200, 422]),
        ("(oldObject == null) == (request.operation == 'CREATE')", [201, 200, 200, 200]),
        ("(object == null) == (request.operation == 'DELETE')", [201, 200, 200, 200]),
        ("has(object.data) && object.data.a == '1'", [201, 422, 422, 422]),
    ],
)
def test_policies_see_creates_updates_patches_and_deletes(
    ask: Ask, enforce: Enforce, expression: str, wanted: list[int]
) -> None:
    enforce(expression)
    seen = [
        ask("POST", MAPS, named("a", a="1"))[0],
        ask("PUT", f"{MAPS}/a", named("a", a="2"))[0],
        ask("PATCH", f"{MAPS}/a", {"data": {"a": "3"}})[0],
        ask("DELETE", f"{MAPS}/a")[0],
    ]
    assert seen == wanted
    assert ask("GET", f"{MAPS}/a")[0] == (404 if wanted[3] == 200 else 200)


def test_a_policy_without_a_binding_and_a_binding_without_a_policy_do_nothing(ask: Ask) -> None:
    assert ask("POST", POLICIES, policy("alone", validation("false")))[0] == 201
    assert ask("POST", BINDINGS, binding("other"))[0] == 201
    assert ask("POST", MAPS, named("a"))[0] == 201


def test_changes_of_policies_and_bindings_take_effect_immediately(
    ask: Ask, enforce: Enforce
) -> None:
    enforce("false")
    assert ask("POST", MAPS, named("a"))[0] == 422
    ask("PATCH", f"{POLICIES}/rule", {"spec": {"validations": [validation("true")]}})
    assert ask("POST", MAPS, named("a"))[0] == 201
    ask("PATCH", f"{POLICIES}/rule", {"spec": {"validations": [validation("false")]}})
    assert ask("POST", MAPS, named("b"))[0] == 422
    ask("DELETE", f"{BINDINGS}/rule")
    assert ask("POST", MAPS, named("b"))[0] == 201


def test_a_store_that_is_restored_has_its_own_policies(
    api: Api, ask: Ask, enforce: Enforce
) -> None:
    enforce("object.metadata.name != 'a'")
    saved = api.store.fork()
    ask("PATCH", f"{POLICIES}/rule", {"spec": {"validations": [validation("true")]}})
    assert ask("POST", MAPS, named("a"), dryRun="All")[0] == 201
    api.store.restore(saved)
    assert ask("POST", MAPS, named("a"))[0] == 422
    api.reset()
    assert ask("POST", MAPS, named("a"))[0] == 201


def test_policies_cannot_block_policies_webhooks_and_reviews(ask: Ask, enforce: Enforce) -> None:
    enforce("false", matchConstraints=matching("*/*"))
    assert ask("POST", POLICIES, policy("more", validation("true")))[0] == 201
    assert ask("DELETE", f"{BINDINGS}/rule")[0] == 200


def test_policies_come_before_validating_webhooks_and_after_mutating_ones(
    ask: Ask, api: Api, enforce: Enforce
) -> None:
    called: list[str] = []

    def allow(review: dict[str, Any]) -> dict[str, Any]:
        called.append(review["request"]["name"])
        return answered(review)

    api.load([configuration("validating", webhook("v.example.com"))])
    api.webhooks.handlers["v.example.com"] = allow
    enforce("object.metadata.name == 'good'")
    assert ask("POST", MAPS, named("bad"))[0] == 422
    assert ask("POST", MAPS, named("good"))[0] == 201
    assert called == ["good"]


def test_a_dry_run_is_denied_too(ask: Ask, enforce: Enforce) -> None:
    enforce("!request.dryRun")
    assert ask("POST", MAPS, named("a"), dryRun="All")[0] == 422
    assert ask("POST", MAPS, named("a"))[0] == 201


def test_each_object_of_a_collection_is_validated_before_it_is_deleted(
    ask: Ask, enforce: Enforce
) -> None:
    ask("POST", MAPS, named("a"))
    enforce("request.operation != 'DELETE' || oldObject.metadata.name != 'a'")
    assert ask("DELETE", MAPS)[0] == 422
    assert ask("GET", f"{MAPS}/a")[0] == 200


def test_subresources_are_matched_by_their_names(ask: Ask, enforce: Enforce) -> None:
    expression = "!has(request.subResource) || request.subResource != 'eviction'"
    enforce(expression, matchConstraints=matching("pods/*"))
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    assert ask("POST", PODS, pod)[0] == 201
    eviction = {"metadata": {"name": "p"}, "apiVersion": "policy/v1", "kind": "Eviction"}
    assert ask("POST", f"{PODS}/p/eviction", eviction)[0] == 422


def test_an_error_of_an_audit_annotation_denies(ask: Ask, enforce: Enforce) -> None:
    annotations = [{"key": "seen", "valueExpression": "object.data.missing + 'a'"}]
    enforce("true", auditAnnotations=annotations, actions=("Audit",))
    status, answer = ask("POST", MAPS, named("a", b="c"))
    error = "expression 'object.data.missing + 'a'' resulted in error: no such key: missing"
    assert (status, answer["details"]["causes"]) == (422, [{"message": DENIED + error}])


def test_the_namespace_of_an_object_is_visible(ask: Ask, enforce: Enforce) -> None:
    enforce("namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == 'default'")
    assert ask("POST", MAPS, named("a"))[0] == 201
    assert ask("POST", f"{NAMESPACES}/kube-public/configmaps", named("a"))[0] == 422


def test_namespaces_and_cluster_scoped_objects_have_no_namespace_object(
    ask: Ask, enforce: Enforce
) -> None:
    enforce("namespaceObject == null", matchConstraints=matching("namespaces", "nodes"))
    assert ask("POST", NAMESPACES, named("n"))[0] == 201
    assert ask("POST", "/api/v1/nodes", named("n"))[0] == 201


def test_a_generated_name_is_named_in_the_denial(ask: Ask, enforce: Enforce) -> None:
    enforce("false")
    _, answer = ask("POST", MAPS, {"metadata": {"generateName": "a-"}})
    assert answer["message"].startswith('configmaps "a-')


@pytest.mark.parametrize("rules", [[rule("configmaps", operations=["DELETE"])], [rule("secrets")]])
def test_a_binding_restricts_what_a_policy_matches(
    ask: Ask, enforce: Enforce, rules: list[dict[str, Any]]
) -> None:
    enforce("false", matchResources={"resourceRules": rules})
    assert ask("POST", MAPS, named("a"))[0] == 201
    assert DEFAULT in MAPS
