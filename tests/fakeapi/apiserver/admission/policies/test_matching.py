"""Policies of a request: rules, selectors, match conditions, and the parameters of bindings."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import event_json
from tests.fakeapi.admission_policies import matching
from tests.fakeapi.admission_webhooks import rule
from tests.fakeapi.api_requests import MAPS, NAMESPACES, NODES, Ask, named
from tests.fakeapi.apiserver.admission.policies.conftest import Enforce

DENIED = "ValidatingAdmissionPolicy 'rule' with binding 'rule' denied request: "
RED = {"matchLabels": {"team": "red"}}
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


def codes(ask: Ask, *names: str, **labels: str) -> list[int]:
    """Create config maps; return the codes of the answers."""
    metadata = [{"name": name, "labels": labels} for name in names]
    return [ask("POST", MAPS, {"metadata": each})[0] for each in metadata]


@pytest.mark.parametrize(
    ("constraints", "status"),
    [
        (matching(), 422),
        (matching("secrets"), 201),
        (matching("*"), 422),
        (matching(excludeResourceRules=[rule("configmaps")]), 201),
        (matching(excludeResourceRules=[rule("secrets")]), 422),
        (matching(objectSelector=RED), 201),
        (matching(objectSelector={"matchLabels": {"team": "blue"}}), 422),
        (matching(namespaceSelector=RED), 201),
        ({"resourceRules": [rule("configmaps", resourceNames=["a"])]}, 422),
        ({"resourceRules": [rule("configmaps", resourceNames=["b"])]}, 201),
        ({"resourceRules": [rule("configmaps", operations=["UPDATE"])]}, 201),
        ({"resourceRules": [rule("configmaps", apiVersions=["v2"])]}, 201),
        ({"resourceRules": [rule("configmaps", scope="Cluster")]}, 201),
    ],
)
def test_match_constraints_select_requests(
    ask: Ask, enforce: Enforce, constraints: dict[str, Any], status: int
) -> None:
    enforce("false", matchConstraints=constraints)
    assert codes(ask, "a", team="blue") == [status]


def test_the_labels_of_the_namespace_decide(ask: Ask, enforce: Enforce) -> None:
    ask("POST", NAMESPACES, {"metadata": {"name": "red", "labels": {"team": "red"}}})
    enforce("false", matchConstraints=matching("*", namespaceSelector=RED))
    assert ask("POST", f"{NAMESPACES}/red/configmaps", named("a"))[0] == 422
    assert ask("POST", MAPS, named("a"))[0] == 201
    assert ask("POST", NODES, named("n"))[0] == 422


@pytest.mark.parametrize(
    ("match_policy", "status", "version"), [("Equivalent", 422, "v1"), ("Exact", 201, "")]
)
def test_equivalent_rules_match_other_versions_with_converted_objects(
    ask: Ask, enforce: Enforce, match_policy: str, status: int, version: str
) -> None:
    rules = [rule("events", apiGroups=[""])]
    enforce(
        "false",
        messageExpression="object.apiVersion + ' ' + request.requestKind.group",
        matchConstraints={"resourceRules": rules, "matchPolicy": match_policy},
    )
    got, answer = ask("POST", EVENTS, event_json())
    causes = [{"message": f"{DENIED}{version} events.k8s.io"}]
    assert (got, answer.get("details", {}).get("causes")) == (status, causes if version else None)


@pytest.mark.parametrize(
    ("conditions", "failure_policy", "status"),
    [
        (["true"], "Fail", 422),
        (["object.metadata.name == 'b'"], "Fail", 201),
        (["true", "false"], "Fail", 201),
        (["object.missing", "false"], "Fail", 201),
        (["object.missing == 1"], "Fail", 422),
        (["object.missing == 1"], "Ignore", 201),
        (["params == null"], "Fail", 422),
    ],
)
def test_match_conditions_skip_a_policy(
    ask: Ask, enforce: Enforce, conditions: list[str], failure_policy: str, status: int
) -> None:
    named_conditions = [
        {"name": f"c{i}", "expression": each if each != "object.missing" else "object.missing == 1"}
        for i, each in enumerate(conditions)
    ]
    spec: dict[str, Any] = {"failurePolicy": failure_policy}
    if "params == null" in conditions:
        spec["paramKind"] = {"apiVersion": "v1", "kind": "ConfigMap"}
    enforce("false", matchConditions=named_conditions, **spec)
    assert codes(ask, "a") == [status]


LIMITS = {"apiVersion": "v1", "kind": "ConfigMap"}
CLUSTER_WIDE = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
MISSING = "failed to configure binding: "
NO_PARAMS = f"{MISSING}no params found for policy binding with `Deny` parameterNotFoundAction"


def reference(action: str = "Deny", **fields: Any) -> dict[str, Any]:
    """Build the reference of a binding to its parameters."""
    return {"parameterNotFoundAction": action, **fields}


@pytest.mark.parametrize(
    ("kind", "param_ref", "message"),
    [
        (LIMITS, reference(name="strict"), "limit 1"),
        (LIMITS, reference(name="lax"), ""),
        (LIMITS, reference(name="away"), NO_PARAMS),
        (LIMITS, reference("Allow", name="away"), ""),
        (LIMITS, reference(name="away", namespace="kube-public"), "limit 0"),
        (LIMITS, reference(selector={"matchLabels": {"limits": "yes"}}), "limit 1"),
        (LIMITS, reference(selector={"matchLabels": {"limits": "no"}}), NO_PARAMS),
        (LIMITS, reference("Allow", selector={"matchLabels": {"limits": "no"}}), ""),
        (CLUSTER_WIDE, reference(name="system-node-critical"), "limit 2000001000"),
        (
            CLUSTER_WIDE,
            reference(name="system-node-critical", namespace="a"),
            f"{MISSING}paramRef.namespace must not be provided for a cluster-scoped `paramKind`",
        ),
    ],
)
def test_the_parameters_of_a_binding_are_read(
    ask: Ask, enforce: Enforce, kind: dict[str, str], param_ref: dict[str, Any], message: str
) -> None:
    for name, limit in (("strict", "1"), ("lax", "5")):
        labels = {"limits": "yes"}
        ask("POST", MAPS, {"metadata": {"name": name, "labels": labels}, "data": {"limit": limit}})
    ask("POST", f"{NAMESPACES}/kube-public/configmaps", named("away", limit="0"))
    limit = "params.data.limit" if kind is LIMITS else "string(params.value)"
    enforce(
        f"object.data.size() <= int({limit}) && params.kind != 'PriorityClass'",
        messageExpression=f"'limit ' + {limit}",
        paramKind=kind,
        paramRef=param_ref,
    )
    status, answer = ask("POST", MAPS, named("a", a="1", b="2"))
    wanted = [{"message": DENIED + message}] if message else None
    assert status == (422 if message else 201)
    assert answer.get("details", {}).get("causes") == wanted


def test_a_namespaced_parameter_needs_a_namespace(ask: Ask, enforce: Enforce) -> None:
    enforce(
        "true",
        matchConstraints=matching("nodes"),
        paramKind=LIMITS,
        paramRef=reference(name="strict"),
    )
    _, answer = ask("POST", NODES, named("n"))
    assert answer["details"]["causes"][0]["message"] == (
        f"{DENIED}{MISSING}cannot use namespaced paramRef in policy binding that matches "
        "cluster-scoped resources"
    )


def test_a_binding_without_a_reference_has_null_parameters(ask: Ask, enforce: Enforce) -> None:
    enforce("params != null", paramKind=LIMITS)
    assert codes(ask, "a") == [422]


def test_a_policy_with_parameters_of_an_unknown_kind_denies_all_requests(
    ask: Ask, enforce: Enforce
) -> None:
    kind = {"apiVersion": "example.com/v1", "kind": "Limit"}
    enforce("true", paramKind=kind, paramRef=reference(name="a"))
    _, answer = ask("POST", MAPS, named("a"))
    assert answer["details"]["causes"][0]["message"] == (
        "ValidatingAdmissionPolicy 'rule' denied request: failed to configure policy: failed to "
        "find resource referenced by paramKind: 'example.com/v1, Kind=Limit'"
    )
