"""Errors of ValidatingAdmissionPolicies and bindings when they are written."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakeapi.admission_policies import (
    BINDINGS,
    POLICIES,
    binding,
    matching,
    policy,
    validation,
)
from tests.fakeapi.admission_webhooks import rule
from tests.fakeapi.api_requests import Ask


def causes(ask: Ask, path: str, document: dict[str, Any]) -> list[tuple[str, str]]:
    """Create an object; return the fields and messages of its errors."""
    status, answer = ask("POST", path, document)
    if status == 201:
        return []
    assert (status, answer["reason"]) == (422, "Invalid"), answer
    return [(cause["field"], cause["message"]) for cause in answer["details"]["causes"]]


def undeclared(source: str, name: str, column: int) -> str:
    """Return the message of upstream's compiler for an undeclared name; columns begin at 1."""
    return (
        f'Invalid value: "{source}": compilation failed: ERROR: <input>:1:{column}: undeclared '
        f"reference to '{name}' (in container '')\n | {source}\n | {'.' * (column - 1)}^"
    )


def undefined(source: str, name: str, column: int) -> str:
    """Return the message of upstream's compiler for an unknown field."""
    return (
        f'Invalid value: "{source}": compilation failed: ERROR: <input>:1:{column}: undefined '
        f"field '{name}'\n | {source}\n | {'.' * (column - 1)}^"
    )


AT_LEAST_ONE = "at least one validation action is required"
EXPRESSION = "spec.validations[0].expression"
PARAMS = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}


@pytest.mark.parametrize(
    ("source", "spec", "message"),
    [
        ("object.x == 1", {}, ""),
        ("object.metadata.name.startsWith('a')", {}, ""),
        ("authorizer.group('').resource('pods').check('get').allowed()", {}, ""),
        ("params.x == 1", PARAMS, ""),
        ("params.x == 1", {}, undeclared("params.x == 1", "params", 1)),
        ("1 == subject", {}, undeclared("1 == subject", "subject", 6)),
        ("variables.a == 1", {}, undeclared("variables.a == 1", "variables", 1)),
        ("missing(1) == 1", {}, undeclared("missing(1) == 1", "missing", 8)),
        ("request.verb == 'a'", {}, undefined("request.verb == 'a'", "verb", 8)),
        ("request.kind.plural == 'a'", {}, undefined("request.kind.plural == 'a'", "plural", 13)),
        ("namespaceObject.x == 1", {}, undefined("namespaceObject.x == 1", "x", 16)),
        ("'a'", {}, "Invalid value: \"'a'\": must evaluate to bool but got string"),
        ("1", {}, 'Invalid value: "1": must evaluate to bool but got int'),
        ("1.5", {}, 'Invalid value: "1.5": must evaluate to bool but got double'),
        ("object.a", {}, 'Invalid value: "object.a": must evaluate to bool but got dyn'),
        ("request.name", {}, 'Invalid value: "request.name": must evaluate to bool but got string'),
        (" ", {}, "Required value: expression is not specified"),
    ],
)
def test_expressions_that_do_not_compile_are_refused(
    ask: Ask, source: str, spec: dict[str, Any], message: str
) -> None:
    found = causes(ask, POLICIES, policy("a", validation(source), **spec))
    assert found == ([(EXPRESSION, message)] if message else [])


def test_syntax_errors_have_the_compilers_words(ask: Ask) -> None:
    [(field, message)] = causes(ask, POLICIES, policy("a", validation("object.x ==")))
    assert field == EXPRESSION
    assert message.startswith(
        'Invalid value: "object.x ==": compilation failed: ERROR: <input>:1:12: Syntax error: '
    )


def variable(name: str, expression: str) -> dict[str, str]:
    """Build a variable."""
    return {"name": name, "expression": expression}


ONE = [variable("one", "1")]


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        ({"variables": ONE}, []),
        (
            {"variables": [variable("a", "variables.b"), variable("b", "1")]},
            [("spec.variables[0].expression", undefined("variables.b", "b", 10))],
        ),
        (
            {"variables": [variable("a-b", "1")]},
            [("spec.variables[0].name", 'Invalid value: "a-b": must be a valid CEL identifier')],
        ),
        (
            {"variables": [variable("for", "")]},
            [
                ("spec.variables[0].name", 'Invalid value: "for": must be a valid CEL identifier'),
                ("spec.variables[0].expression", "Required value: expression is not specified"),
            ],
        ),
        (
            {"matchConditions": [variable("a", "variables.one == 1")], "variables": ONE},
            [
                (
                    "spec.matchConditions[0].expression",
                    undeclared("variables.one == 1", "variables", 1),
                )
            ],
        ),
        (
            {"matchConditions": [{"name": "", "expression": ""}]},
            [
                ("spec.matchConditions[0].expression", "Required value"),
                ("spec.matchConditions[0].name", "Required value"),
            ],
        ),
        (
            {"auditAnnotations": [{"key": "a", "valueExpression": "true"}]},
            [
                (
                    "spec.auditAnnotations[0].valueExpression",
                    (
                        'Invalid value: "true": must evaluate to one of [string null_type] but got '
                        "bool"
                    ),
                )
            ],
        ),
        (
            {"auditAnnotations": [{"key": "a", "valueExpression": "'a'"}] * 2},
            [("spec.auditAnnotations[1].key", 'Duplicate value: "a"')],
        ),
        (
            {"failurePolicy": "Maybe"},
            [
                (
                    "spec.failurePolicy",
                    'Unsupported value: "Maybe": supported values: "Fail", "Ignore"',
                )
            ],
        ),
        (
            {"paramKind": {"apiVersion": "a/b/c", "kind": "No!"}},
            [
                (
                    "spec.paramKind.apiVersion",
                    'Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
                ),
                (
                    "spec.paramKind.kind",
                    (
                        'Invalid value: "No!": may have mixed case, but should otherwise match: a '
                        "DNS-1035 label must consist of lower case alphanumeric characters or '-', "
                        "start with an alphabetic character, and end with an alphanumeric "
                        "character (e.g. "
                        "'my-name',  or 'abc-123', regex used for validation is "
                        "'[a-z]([-a-z0-9]*[a-z0-9])?')"
                    ),
                ),
            ],
        ),
        ({"matchConstraints": {}}, [("spec.matchConstraints.resourceRules", "Required value")]),
        ({"matchConstraints": None}, [("spec.matchConstraints", "Required value")]),
        (
            {"matchConstraints": {"resourceRules": [rule("configmaps", resourceNames=["a", "a"])]}},
            [("spec.matchConstraints.resourceRules[0].resourceNames[1]", 'Duplicate value: "a"')],
        ),
        (
            {"matchConstraints": matching(excludeResourceRules=[rule("a", operations=[])])},
            [("spec.matchConstraints.excludeResourceRules[0].operations", "Required value")],
        ),
    ],
)
def test_the_fields_of_a_policy_are_validated(
    ask: Ask, spec: dict[str, Any], errors: list[tuple[str, str]]
) -> None:
    assert causes(ask, POLICIES, policy("a", validation("true"), **spec)) == errors


@pytest.mark.parametrize(
    ("fields", "errors"),
    [
        ({"message": " "}, [("message", 'Invalid value: " ": must be non-empty if specified')]),
        (
            {"message": "a\nb"},
            [("message", 'Invalid value: "a\\nb": must not contain line breaks')],
        ),
        ({"messageExpression": "'a' + object.b"}, []),
        (
            {"messageExpression": "true"},
            [("messageExpression", 'Invalid value: "true": must evaluate to string but got bool')],
        ),
        (
            {"messageExpression": "authorizer.x"},
            [("messageExpression", undeclared("authorizer.x", "authorizer", 1))],
        ),
        (
            {"reason": "NotFound"},
            [
                (
                    "reason",
                    (
                        'Unsupported value: "NotFound": supported values: "Forbidden", "Invalid", '
                        '"RequestEntityTooLarge"'
                    ),
                )
            ],
        ),
    ],
)
def test_the_fields_of_a_validation_are_validated(
    ask: Ask, fields: dict[str, str], errors: list[tuple[str, str]]
) -> None:
    found = causes(ask, POLICIES, policy("a", validation("true", **fields)))
    assert found == [(f"spec.validations[0].{field}", message) for field, message in errors]


def test_a_policy_needs_a_validation_or_an_annotation(ask: Ask) -> None:
    message = "Required value: validations or auditAnnotations must contain at least one item"
    assert causes(ask, POLICIES, policy("a")) == [
        ("spec.validations", message),
        ("spec.auditAnnotations", message),
    ]


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        ({}, []),
        ({"policyName": ""}, [("spec.policyName", "Required value")]),
        (
            {"validationActions": []},
            [("spec.validationActions", f"Required value: {AT_LEAST_ONE}")],
        ),
        (
            {"validationActions": ["Deny", "Warn"]},
            [
                (
                    "spec.validationActions",
                    (
                        'Invalid value: ["Deny","Warn"]: must not contain both Deny and Warn '
                        "(repeating the same validation failure information in the API response "
                        "and headers serves no purpose)"
                    ),
                )
            ],
        ),
        (
            {"validationActions": ["Allow", "Audit", "Audit"]},
            [
                (
                    "spec.validationActions[0]",
                    'Unsupported value: "Allow": supported values: "Audit", "Deny", "Warn"',
                ),
                ("spec.validationActions[2]", 'Duplicate value: "Audit"'),
            ],
        ),
        (
            {"paramRef": {"parameterNotFoundAction": "Allow"}},
            [("spec.paramRef", "Required value: one of name or selector must be specified")],
        ),
        (
            {"paramRef": {"name": "a", "selector": {}, "parameterNotFoundAction": "Allow"}},
            [
                ("spec.paramRef.name", "Forbidden: name and selector are mutually exclusive"),
                ("spec.paramRef.selector", "Forbidden: name and selector are mutually exclusive"),
            ],
        ),
        (
            {"paramRef": {"name": "a/b"}},
            [
                ("spec.paramRef.name", "Invalid value: \"a/b\": may not contain '/'"),
                ("spec.paramRef.parameterNotFoundAction", "Required value"),
            ],
        ),
    ],
)
def test_the_fields_of_a_binding_are_validated(
    ask: Ask, spec: dict[str, Any], errors: list[tuple[str, str]]
) -> None:
    document = binding("a")
    document["spec"] |= spec
    assert causes(ask, BINDINGS, document) == errors
