"""Configurations of webhooks: defaults, and errors by field and reason."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from tests.builders import Document
from tests.fakeapi.admission_webhooks import CONFIGURATIONS, configuration, rule, webhook
from tests.fakeapi.api_requests import Ask

NAME = "a.example.com"


def required(field: str) -> tuple[str, str]:
    return field, "FieldValueRequired"


def invalid(field: str) -> tuple[str, str]:
    return field, "FieldValueInvalid"


def unsupported(field: str) -> tuple[str, str]:
    return field, "FieldValueNotSupported"


def forbidden(field: str) -> tuple[str, str]:
    return field, "FieldValueForbidden"


def selecting(key: str = "a", operator: str = "Exists", *values: str) -> Document:
    requirement = {"key": key, "operator": operator, "values": list(values)}
    return {"matchExpressions": [requirement]}


def conditions(*found: Document) -> Document:
    return {"matchConditions": list(found)}


def service(**fields: Any) -> Document:
    return {"clientConfig": {"service": {"namespace": "n", "name": "s", **fields}}}


def at(url: str) -> Document:
    return {"clientConfig": {"url": url}}


def rules(**fields: Any) -> Document:
    return {"rules": [rule("pods", **fields)]}


def resources(*names: str) -> Document:
    return {"rules": [rule(*names)]}


INVALID_FIELDS: dict[str, tuple[Document, tuple[str, str], str]] = {
    "no name": ({"name": ""}, required("name"), "Required value"),
    "a short name": (
        {"name": "a.b"},
        invalid("name"),
        'Invalid value: "a.b": should be a domain with at least three segments separated by dots',
    ),
    "a name in capitals": ({"name": "A.b.c"}, invalid("name"), "a lowercase RFC 1123 subdomain"),
    "no operation": (rules(operations=[]), required("rules[0].operations"), "Required value"),
    "a star among others": (
        rules(operations=["*", "CREATE"]),
        invalid("rules[0].operations"),
        'Invalid value: ["*","CREATE"]: if \'*\' is present, must not specify other operations',
    ),
    "an unknown operation": (
        rules(operations=["PATCH"]),
        unsupported("rules[0].operations[0]"),
        (
            'Unsupported value: "PATCH": supported values: "*", "CONNECT", "CREATE", "DELETE", '
            '"UPDATE"'
        ),
    ),
    "no group": (rules(apiGroups=[]), required("rules[0].apiGroups"), "Required value"),
    "a star among groups": (
        rules(apiGroups=["*", ""]),
        invalid("rules[0].apiGroups"),
        "if '*' is present, must not specify other API groups",
    ),
    "an empty version": (rules(apiVersions=[""]), required("rules[0].apiVersions[0]"), "Required"),
    "no resource": (resources(), required("rules[0].resources"), "Required value"),
    "an empty resource": (resources(""), required("rules[0].resources[0]"), "Required value"),
    "everything and more": (
        resources("*/*", "pods"),
        invalid("rules[0].resources"),
        "if '*/*' is present, must not specify other resources",
    ),
    "a star and a plain resource": (
        resources("*", "pods"),
        invalid("rules[0].resources"),
        "if '*' is present, must not specify other resources without subresources",
    ),
    "a subresource twice": (
        resources("pods/*", "pods/status"),
        invalid("rules[0].resources[1]"),
        "if 'pods/*' is present, must not specify pods/status",
    ),
    "a subresource of all and of one": (
        resources("*/scale", "deployments/scale"),
        invalid("rules[0].resources[1]"),
        "if '*/scale' is present, must not specify deployments/scale",
    ),
    "an unknown scope": (
        rules(scope="Galaxy"),
        unsupported("rules[0].scope"),
        'Unsupported value: "Galaxy": supported values: "*", "Cluster", "Namespaced"',
    ),
    "no side effects said": (
        {"sideEffects": None},
        required("sideEffects"),
        "Required value: must specify one of None, NoneOnDryRun",
    ),
    "side effects": (
        {"sideEffects": "Some"},
        unsupported("sideEffects"),
        'Unsupported value: "Some": supported values: "None", "NoneOnDryRun"',
    ),
    "a failure policy that is none": (
        {"failurePolicy": "Retry"},
        unsupported("failurePolicy"),
        'supported values: "Fail", "Ignore"',
    ),
    "a match policy that is none": (
        {"matchPolicy": "Loose"},
        unsupported("matchPolicy"),
        'supported values: "Equivalent", "Exact"',
    ),
    "no time at all": (
        {"timeoutSeconds": 0},
        invalid("timeoutSeconds"),
        "Invalid value: 0: the timeout value must be between 1 and 30 seconds",
    ),
    "too much time": ({"timeoutSeconds": 31}, invalid("timeoutSeconds"), "between 1 and 30"),
    "no version of reviews": (
        {"admissionReviewVersions": []},
        required("admissionReviewVersions"),
        "Required value: must specify one of v1, v1beta1",
    ),
    "unknown versions of reviews": (
        {"admissionReviewVersions": ["v7"]},
        invalid("admissionReviewVersions"),
        'Invalid value: ["v7"]: must include at least one of v1, v1beta1',
    ),
    "a version twice": (
        {"admissionReviewVersions": ["v1", "v1"]},
        invalid("admissionReviewVersions[1]"),
        'Invalid value: "v1": duplicate version',
    ),
    "a version that is no label": (
        {"admissionReviewVersions": ["v1", "1"]},
        invalid("admissionReviewVersions[1]"),
        "a DNS-1035 label must consist of",
    ),
    "an unknown operator": (
        {"namespaceSelector": selecting(operator="Near")},
        invalid("namespaceSelector.matchExpressions[0].operator"),
        'Invalid value: "Near": not a valid selector operator',
    ),
    "In without values": (
        {"objectSelector": selecting("a", "In")},
        required("objectSelector.matchExpressions[0].values"),
        "must be specified when `operator` is 'In' or 'NotIn'",
    ),
    "Exists with values": (
        {"objectSelector": selecting("a", "Exists", "b")},
        forbidden("objectSelector.matchExpressions[0].values"),
        "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
    ),
    "a key that is none": (
        {"objectSelector": selecting("a b")},
        invalid("objectSelector.matchExpressions[0].key"),
        'Invalid value: "a b": name part must consist of',
    ),
    "a label's value that is none": (
        {"namespaceSelector": {"matchLabels": {"a": "b c"}}},
        invalid("namespaceSelector.matchLabels"),
        'Invalid value: "b c": a valid label must be an empty string or consist of',
    ),
    "a condition without a name": (
        conditions({"expression": "true"}),
        required("matchConditions[0].name"),
        "Required value",
    ),
    "a condition whose name is none": (
        conditions({"name": "a b", "expression": "true"}),
        invalid("matchConditions[0].name"),
        'Invalid value: "a b": name part must consist of',
    ),
    "two conditions of one name": (
        conditions(*[{"name": "a", "expression": "true"}] * 2),
        ("matchConditions[1].name", "FieldValueDuplicate"),
        'Duplicate value: "a"',
    ),
    "a condition that says nothing": (
        conditions({"name": "a", "expression": " "}),
        required("matchConditions[0].expression"),
        "Required value",
    ),
    "a condition that is no expression": (
        conditions({"name": "a", "expression": "object.x =="}),
        invalid("matchConditions[0].expression"),
        "compilation failed: ERROR: <input>:1:",
    ),
    "a condition on what there is not": (
        conditions({"name": "a", "expression": "thing.x == 1"}),
        invalid("matchConditions[0].expression"),
        "undeclared reference to 'thing'",
    ),
    "too many conditions": (
        conditions(*[{"name": f"a{n}", "expression": "true"} for n in range(65)]),
        ("matchConditions", "FieldValueTooMany"),
        "Too many: 65: must have at most 64 items",
    ),
    "neither URL nor service": (
        {"clientConfig": {}},
        required("clientConfig"),
        "Required value: exactly one of url or service is required",
    ),
    "both URL and service": (
        {"clientConfig": {"url": "https://a", **service()["clientConfig"]}},
        required("clientConfig"),
        "exactly one of url or service is required",
    ),
    "plain http": (
        at("http://a/b"),
        invalid("clientConfig.url"),
        (
            "Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: "
            "https://host[/path]"
        ),
    ),
    "no host": (at("https:///b"), invalid("clientConfig.url"), "host must be specified"),
    "a user in the URL": (
        at("https://me@a/b"),
        invalid("clientConfig.url"),
        'Invalid value: "me": user information is not permitted in the URL',
    ),
    "a fragment": (
        at("https://a/b#c"),
        invalid("clientConfig.url"),
        "fragments are not permitted in the URL",
    ),
    "a query": (
        at("https://a/b?c=d"),
        invalid("clientConfig.url"),
        "query parameters are not permitted in the URL",
    ),
    "no URL at all": (at("https://[a"), required("clientConfig.url"), "url must be a valid URL"),
    "a service without a name": (
        service(name=""),
        required("clientConfig.service.name"),
        "Required value: service name is required",
    ),
    "a port that is none": (
        service(port=0),
        invalid("clientConfig.service.port"),
        "port is not valid: must be between 1 and 65535, inclusive",
    ),
    "a path without its slash": (
        service(path="ab"),
        invalid("clientConfig.service.path"),
        "must start with a '/'",
    ),
    "a path with an empty step": (
        service(path="/a//b"),
        invalid("clientConfig.service.path"),
        "segment[1] may not be empty",
    ),
    "a bundle that is no PEM": (
        {"clientConfig": {"url": "https://a", "caBundle": b64encode(b"no").decode()}},
        invalid("clientConfig.caBundle"),
        "unable to load root certificates: unable to parse bytes as PEM block",
    ),
}


@pytest.mark.parametrize("role", ["mutating", "validating"])
@pytest.mark.parametrize(
    ("fields", "cause", "message"), INVALID_FIELDS.values(), ids=INVALID_FIELDS
)
def test_a_broken_configuration_is_refused_by_field_and_reason(
    ask: Ask, role: str, fields: Document, cause: tuple[str, str], message: str
) -> None:
    body = configuration(role, {**webhook(NAME), **fields})
    status, refusal = ask("POST", CONFIGURATIONS[role], body)
    assert (status, refusal["reason"]) == (422, "Invalid")
    [found] = refusal["details"]["causes"]
    assert (found["field"], found["reason"]) == (f"webhooks[0].{cause[0]}", cause[1])
    assert message in found["message"]


@pytest.mark.parametrize("bundle", ["&", 3])
def test_an_invalid_base64_bundle_is_refused(ask: Ask, bundle: Any) -> None:
    config = {"url": "https://a", "caBundle": bundle}
    body = configuration("mutating", webhook(NAME, clientConfig=config))
    assert ask("POST", CONFIGURATIONS["mutating"], body)[0] == 400


def test_a_reinvocation_policy_is_one_of_two(ask: Ask) -> None:
    body = configuration("mutating", webhook(NAME, reinvocationPolicy="Often"))
    _, refusal = ask("POST", CONFIGURATIONS["mutating"], body)
    [cause] = refusal["details"]["causes"]
    assert cause["field"] == "webhooks[0].reinvocationPolicy"
    assert cause["message"].endswith('supported values: "IfNeeded", "Never"')


def test_names_are_unique_within_a_configuration(ask: Ask) -> None:
    body = configuration("validating", webhook(NAME), webhook(NAME))
    _, refusal = ask("POST", CONFIGURATIONS["validating"], body)
    [cause] = refusal["details"]["causes"]
    assert (cause["field"], cause["reason"]) == ("webhooks[1].name", "FieldValueDuplicate")


def test_missing_fields_of_a_webhook_get_defaults(ask: Ask) -> None:
    config = service()["clientConfig"]
    body = configuration("mutating", webhook(NAME, clientConfig=config))
    status, made = ask("POST", CONFIGURATIONS["mutating"], body)
    assert status == 201
    [found] = made["webhooks"]
    assert found["clientConfig"]["service"]["port"] == 443
    assert found["rules"][0]["scope"] == "*"
    members = ("failurePolicy", "matchPolicy", "reinvocationPolicy", "timeoutSeconds")
    assert [found[member] for member in members] == ["Fail", "Equivalent", "Never", 10]
    assert found["namespaceSelector"] == found["objectSelector"] == {}
