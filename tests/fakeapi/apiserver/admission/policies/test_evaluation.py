"""Expressions of policies: variables, the authorizer, and errors."""

from __future__ import annotations

from typing import Any

import pytest

from fakeapi.apiserver.endpoints import Api
from fakeapi.apiserver.wire.http_messages import User
from tests.fakeapi.admission_policies import matching
from tests.fakeapi.api_requests import MAPS, Ask, named, send
from tests.fakeapi.apiserver.admission.policies.conftest import Enforce

DENIED = "ValidatingAdmissionPolicy 'rule' with binding 'rule' denied request: "


def message(ask: Ask, **data: str) -> str:
    """Create a config map; return the message of the denial, "" if it is created."""
    status, answer = ask("POST", MAPS, named("a", **data))
    if status == 201:
        return ""
    [cause] = answer["details"]["causes"]
    return str(cause["message"]).removeprefix(DENIED)


def variables(**expressions: str) -> list[dict[str, str]]:
    """Build variables, in this order."""
    return [{"name": name, "expression": text} for name, text in expressions.items()]


@pytest.mark.parametrize(
    ("declared", "expression", "denial"),
    [
        (variables(one="1"), "variables.one == 1", ""),
        (variables(one="1", two="variables.one + 1"), "variables.two == 2", ""),
        (variables(data="object.data"), "variables.data.a == 'x'", ""),
        (variables(data="object.data"), "variables.data.all(k, variables.data[k] == 'x')", ""),
        (variables(broken="object.nothing"), "true || variables.broken", ""),
        (variables(broken="object.nothing"), "has(variables.broken)", ""),
        (
            variables(broken="object.nothing"),
            "variables.broken == 1",
            (
                "expression 'variables.broken == 1' resulted in error: composited variable "
                '"broken" fails to evaluate: no such key: nothing'
            ),
        ),
        (
            variables(broken="object.nothing", outer="variables.broken"),
            "variables.outer == 1",
            (
                "expression 'variables.outer == 1' resulted in error: composited variable "
                '"outer" fails to evaluate: composited variable "broken" fails to evaluate: no '
                "such key: nothing"
            ),
        ),
    ],
)
def test_variables_are_evaluated_when_they_are_needed(
    ask: Ask, enforce: Enforce, declared: list[dict[str, str]], expression: str, denial: str
) -> None:
    enforce(expression, variables=declared)
    assert message(ask, a="x") == denial


@pytest.mark.parametrize(
    ("expression", "denial"),
    [
        ("object.data.a.matches('^[a-z]+$')", ""),
        ("quantity('1Ki').isGreaterThan(quantity('1k'))", ""),
        ("object.data.?b.orValue('none') == 'none'", ""),
        ("1 / int(object.data.size() - 1) == 1", "division by zero"),
        ("object.data.a + 1 == 2", "no such overload"),
        ("quantity(object.data.a).isInteger()", "quantities must match the regular expression"),
    ],
)
def test_expressions_have_the_functions_of_kubernetes(
    ask: Ask, enforce: Enforce, expression: str, denial: str
) -> None:
    enforce(expression)
    wanted = f"expression '{expression}' resulted in error: {denial}" if denial else ""
    assert message(ask, a="x") == wanted


def test_an_expression_that_costs_too_much_denies(ask: Ask, enforce: Enforce) -> None:
    nested = "object.data.all(a, object.data.all(b, object.data.all(c, object.data.all(d, true))))"
    enforce(nested)
    error = "operation cancelled: actual cost limit exceeded"
    data = {f"k{i}": "v" for i in range(40)}
    assert message(ask, **data) == f"expression '{nested}' resulted in error: {error}"


@pytest.mark.parametrize(
    ("expression", "users"),
    [
        ("authorizer.group('').resource('configmaps').namespace('default').check('get').allowed()",
         ["reader"]),
        ("authorizer.requestResource.check('get').allowed()", ["reader"]),
        ("authorizer.requestResource.check('custom').allowed()", []),
        ("authorizer.group('').resource('configmaps').check('get').allowed()", []),
        ("authorizer.path('/healthz').check('get').allowed()", ["reader", "writer"]),
        (("authorizer.serviceAccount('default', 'robot').group('').resource('configmaps')"
         ".namespace('default').name('a').check('get').allowed()"), ["reader", "writer"]),
        (("authorizer.serviceAccount('default', 'other').group('').resource('configmaps')"
         ".namespace('default').check('get').allowed()"), []),
        (("authorizer.group('').resource('configmaps').subresource('x').namespace('default')"
         ".check('get').allowed()"), []),
        ("!authorizer.requestResource.check('get').errored()", ["reader", "writer"]),
    ],
)  # fmt: skip
def test_the_authorizer_answers_by_rbac(
    api: Api, enforce: Enforce, expression: str, users: list[str]
) -> None:
    api.enforce_rbac()
    api.load([role("read", "get", "create"), role("write", "create")])
    api.load([bound("read", user("reader")), bound("write", user("writer"))])
    api.load([bound("read", {"kind": "ServiceAccount", "name": "robot"}, "robots")])
    enforce(expression)
    groups = ("system:authenticated",)
    allowed = [
        name
        for name in ("reader", "writer")
        if send(api, "POST", MAPS, named(name), user=User(name, groups=groups)).status == 201
    ]
    assert allowed == users


def test_the_authorizer_refuses_empty_paths_and_resources(ask: Ask, enforce: Enforce) -> None:
    enforce("authorizer.path(' ').check('get').allowed()")
    assert message(ask).endswith("resulted in error: path must not be empty")


def test_a_policy_sees_the_user_and_the_names_of_a_request(ask: Ask, enforce: Enforce) -> None:
    enforce(
        "request.userInfo.username == 'kubernetes-admin' && request.kind.kind == 'ConfigMap' && "
        "request.resource.resource == 'configmaps' && request.namespace == 'default' && "
        "request.name == 'a' && request.options.fieldManager == 'me'",
    )
    assert ask("POST", MAPS, named("a"), fieldManager="me")[0] == 201


def test_policies_validate_custom_resources(ask: Ask, enforce: Enforce) -> None:
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "gadgets", "kind": "Gadget", "singular": "gadget",
                      "listKind": "GadgetList"},
            "versions": [{
                "name": "v1", "served": True, "storage": True,
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": True,
                }},
            }],
        },
    }  # fmt: skip
    assert (
        ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)[0] == 201
    )
    enforce("object.spec.size < 3", matchConstraints=matching("gadgets"))
    path = "/apis/example.com/v1/namespaces/default/gadgets"
    gadget = {"apiVersion": "example.com/v1", "kind": "Gadget"}
    small = {**gadget, "metadata": {"name": "s"}, "spec": {"size": 2}}
    big = {**gadget, "metadata": {"name": "b"}, "spec": {"size": 3}}
    assert [ask("POST", path, each)[0] for each in (small, big)] == [201, 422]


def role(name: str, *verbs: str) -> dict[str, Any]:
    """Build a role for config maps and /healthz."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": name, "namespace": "default"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": list(verbs)}],
    }


def user(name: str) -> dict[str, str]:
    """Build a user as the subject of a binding."""
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}


def bound(role_name: str, subject: dict[str, str], name: str = "") -> dict[str, Any]:
    """Build a binding of a role to a subject."""
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role_name}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name or role_name, "namespace": "default"},
        "roleRef": reference,
        "subjects": [{"namespace": "default", **subject} if subject["kind"] != "User" else subject],
    }


@pytest.mark.parametrize(
    "expression",
    [
        "object.metadata.managedFields[0].manager == 'me'",
        "'managedFields' in object.metadata",
        "object.all(key, key != 'spec')",
        "object.size() > 3",
        "object != oldObject",
        "object['data']['a'] == 'x'",
        "object.kind == 'ConfigMap' && object.apiVersion == 'v1'",
        "variables.whole.data.a == 'x' && object.metadata.name == 'a'",
        "!has(object.spec) && !has(object.metadata.labels) && has(object.data)",
        "object.?metadata.?labels.hasValue() == false",
    ],
)
def test_policies_see_the_fields_that_they_refer_to(
    ask: Ask, enforce: Enforce, expression: str
) -> None:
    declared = variables(whole="object") if "variables" in expression else []
    enforce("object.metadata.name != ''", name="other")
    enforce(expression, variables=declared)
    assert ask("POST", MAPS, named("a", a="x"), fieldManager="me")[0] == 201
