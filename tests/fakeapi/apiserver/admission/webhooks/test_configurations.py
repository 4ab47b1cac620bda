"""Configurations of webhooks: what is filled in, and what is refused, by field and reason."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from tests.fakeapi.admission_webhooks import CONFIGURATIONS, configuration, rule, webhook
from tests.fakeapi.api_requests import Ask

NAME = "a.example.com"
REQUIRED, INVALID = "FieldValueRequired", "FieldValueInvalid"
UNSUPPORTED, FORBIDDEN = "FieldValueNotSupported", "FieldValueForbidden"


def selecting(key: str = "a", operator: str = "Exists", *values: str) -> dict[str, Any]:
    requirement = {"key": key, "operator": operator, "values": list(values)}
    return {"matchExpressions": [requirement]}


def conditions(*found: dict[str, Any]) -> dict[str, Any]:
    return {"matchConditions": list(found)}


def service(**fields: Any) -> dict[str, Any]:
    return {"clientConfig": {"service": {"namespace": "n", "name": "s", **fields}}}


def at(url: str) -> dict[str, Any]:
    return {"clientConfig": {"url": url}}


def rules(**fields: Any) -> dict[str, Any]:
    return {"rules": [rule("pods", **fields)]}


def resources(*names: str) -> dict[str, Any]:
    return {"rules": [rule(*names)]}


INVALID_FIELDS: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "no name": ({"name": ""}, "name", REQUIRED, "Required value"),
    "a short name": (
        {"name": "a.b"},
        "name",
        INVALID,
        'Invalid value: "a.b": should be a domain with at least three segments separated by dots',
    ),
    "a name in capitals": ({"name": "A.b.c"}, "name", INVALID, "a lowercase RFC 1123 subdomain"),
    "no operation": (rules(operations=[]), "rules[0].operations", REQUIRED, "Required value"),
    "a star among others": (
        rules(operations=["*", "CREATE"]),
        "rules[0].operations",
        INVALID,
        'Invalid value: ["*","CREATE"]: if \'*\' is present, must not specify other operations',
    ),
    "an unknown operation": (
        rules(operations=["PATCH"]),
        "rules[0].operations[0]",
        UNSUPPORTED,
        (
            'Unsupported value: "PATCH": supported values: "*", "CONNECT", "CREATE", "DELETE", '
            '"UPDATE"'
        ),
    ),
    "no group": (rules(apiGroups=[]), "rules[0].apiGroups", REQUIRED, "Required value"),
    "a star among groups": (
        rules(apiGroups=["*", ""]),
        "rules[0].apiGroups",
        INVALID,
        "if '*' is present, must not specify other API groups",
    ),
    "an empty version": (rules(apiVersions=[""]), "rules[0].apiVersions[0]", REQUIRED, "Required"),
    "no resource": (resources(), "rules[0].resources", REQUIRED, "Required value"),
    "an empty resource": (resources(""), "rules[0].resources[0]", REQUIRED, "Required value"),
    "everything and more": (
        resources("*/*", "pods"),
        "rules[0].resources",
        INVALID,
        "if '*/*' is present, must not specify other resources",
    ),
    "a star and a plain resource": (
        resources("*", "pods"),
        "rules[0].resources",
        INVALID,
        "if '*' is present, must not specify other resources without subresources",
    ),
    "a subresource twice": (
        resources("pods/*", "pods/status"),
        "rules[0].resources[1]",
        INVALID,
        "if 'pods/*' is present, must not specify pods/status",
    ),
    "a subresource of all and of one": (
        resources("*/scale", "deployments/scale"),
        "rules[0].resources[1]",
        INVALID,
        "if '*/scale' is present, must not specify deployments/scale",
    ),
    "an unknown scope": (
        rules(scope="Galaxy"),
        "rules[0].scope",
        UNSUPPORTED,
        'Unsupported value: "Galaxy": supported values: "*", "Cluster", "Namespaced"',
    ),
    "no side effects said": (
        {"sideEffects": None},
        "sideEffects",
        REQUIRED,
        "Required value: must specify one of None, NoneOnDryRun",
    ),
    "side effects": (
        {"sideEffects": "Some"},
        "sideEffects",
        UNSUPPORTED,
        'Unsupported value: "Some": supported values: "None", "NoneOnDryRun"',
    ),
    "a failure policy that is none": (
        {"failurePolicy": "Retry"},
        "failurePolicy",
        UNSUPPORTED,
        'supported values: "Fail", "Ignore"',
    ),
    "a match policy that is none": (
        {"matchPolicy": "Loose"},
        "matchPolicy",
        UNSUPPORTED,
        'supported values: "Equivalent", "Exact"',
    ),
    "no time at all": (
        {"timeoutSeconds": 0},
        "timeoutSeconds",
        INVALID,
        "Invalid value: 0: the timeout value must be between 1 and 30 seconds",
    ),
    "too much time": ({"timeoutSeconds": 31}, "timeoutSeconds", INVALID, "between 1 and 30"),
    "no version of reviews": (
        {"admissionReviewVersions": []},
        "admissionReviewVersions",
        REQUIRED,
        "Required value: must specify one of v1, v1beta1",
    ),
    "unknown versions of reviews": (
        {"admissionReviewVersions": ["v7"]},
        "admissionReviewVersions",
        INVALID,
        'Invalid value: ["v7"]: must include at least one of v1, v1beta1',
    ),
    "a version twice": (
        {"admissionReviewVersions": ["v1", "v1"]},
        "admissionReviewVersions[1]",
        INVALID,
        'Invalid value: "v1": duplicate version',
    ),
    "a version that is no label": (
        {"admissionReviewVersions": ["v1", "1"]},
        "admissionReviewVersions[1]",
        INVALID,
        "a DNS-1035 label must consist of",
    ),
    "an unknown operator": (
        {"namespaceSelector": selecting(operator="Near")},
        "namespaceSelector.matchExpressions[0].operator",
        INVALID,
        'Invalid value: "Near": not a valid selector operator',
    ),
    "In without values": (
        {"objectSelector": selecting("a", "In")},
        "objectSelector.matchExpressions[0].values",
        REQUIRED,
        "must be specified when `operator` is 'In' or 'NotIn'",
    ),
    "Exists with values": (
        {"objectSelector": selecting("a", "Exists", "b")},
        "objectSelector.matchExpressions[0].values",
        FORBIDDEN,
        "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
    ),
    "a key that is none": (
        {"objectSelector": selecting("a b")},
        "objectSelector.matchExpressions[0].key",
        INVALID,
        'Invalid value: "a b": name part must consist of',
    ),
    "a label's value that is none": (
        {"namespaceSelector": {"matchLabels": {"a": "b c"}}},
        "namespaceSelector.matchLabels",
        INVALID,
        'Invalid value: "b c": a valid label must be an empty string or consist of',
    ),
    "a condition without a name": (
        conditions({"expression": "true"}),
        "matchConditions[0].name",
        REQUIRED,
        "Required value",
    ),
    "a condition whose name is none": (
        conditions({"name": "a b", "expression": "true"}),
        "matchConditions[0].name",
        INVALID,
        'Invalid value: "a b": name part must consist of',
    ),
    "two conditions of one name": (
        conditions(*[{"name": "a", "expression": "true"}] * 2),
        "matchConditions[1].name",
        "FieldValueDuplicate",
        'Duplicate value: "a"',
    ),
    "a condition that says nothing": (
        conditions({"name": "a", "expression": " "}),
        "matchConditions[0].expression",
        REQUIRED,
        "Required value",
    ),
    "a condition that is no expression": (
        conditions({"name": "a", "expression": "object.x =="}),
        "matchConditions[0].expression",
        INVALID,
        "compilation failed: ERROR: <input>:1:",
    ),
    "a condition on what there is not": (
        conditions({"name": "a", "expression": "thing.x == 1"}),
        "matchConditions[0].expression",
        INVALID,
        "undeclared reference to 'thing'",
    ),
    "too many conditions": (
        conditions(*[{"name": f"a{n}", "expression": "true"} for n in range(65)]),
        "matchConditions",
        "FieldValueTooMany",
        "Too many: 65: must have at most 64 items",
    ),
    "neither URL nor service": (
        {"clientConfig": {}},
        "clientConfig",
        REQUIRED,
        "Required value: exactly one of url or service is required",
    ),
    "both URL and service": (
        {"clientConfig": {"url": "https://a", **service()["clientConfig"]}},
        "clientConfig",
        REQUIRED,
        "exactly one of url or service is required",
    ),
    "plain http": (
        at("http://a/b"),
        "clientConfig.url",
        INVALID,
        (
            "Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: "
            "https://host[/path]"
        ),
    ),
    "no host": (
        at("https:///b"),
        "clientConfig.url",
        INVALID,
        "host must be specified",
    ),
    "a user in the URL": (
        at("https://me@a/b"),
        "clientConfig.url",
        INVALID,
        'Invalid value: "me": user information is not permitted in the URL',
    ),
    "a fragment": (
        at("https://a/b#c"),
        "clientConfig.url",
        INVALID,
        "fragments are not permitted in the URL",
    ),
    "a query": (
        at("https://a/b?c=d"),
        "clientConfig.url",
        INVALID,
        "query parameters are not permitted in the URL",
    ),
    "no URL at all": (
        at("https://[a"),
        "clientConfig.url",
        REQUIRED,
        "url must be a valid URL",
    ),
    "a service without a name": (
        service(name=""),
        "clientConfig.service.name",
        REQUIRED,
        "Required value: service name is required",
    ),
    "a port that is none": (
        service(port=0),
        "clientConfig.service.port",
        INVALID,
        "port is not valid: must be between 1 and 65535, inclusive",
    ),
    "a path without its slash": (
        service(path="ab"),
        "clientConfig.service.path",
        INVALID,
        "must start with a '/'",
    ),
    "a path with an empty step": (
        service(path="/a//b"),
        "clientConfig.service.path",
        INVALID,
        "segment[1] may not be empty",
    ),
    "a bundle that is no PEM": (
        {"clientConfig": {"url": "https://a", "caBundle": b64encode(b"no").decode()}},
        "clientConfig.caBundle",
        INVALID,
        "unable to load root certificates: unable to parse bytes as PEM block",
    ),
}


@pytest.mark.parametrize("role", ["mutating", "validating"])
@pytest.mark.parametrize(
    ("fields", "field", "reason", "message"), INVALID_FIELDS.values(), ids=INVALID_FIELDS
)
def test_a_broken_configuration_is_refused_by_field_and_reason(
    ask: Ask, role: str, fields: dict[str, Any], field: str, reason: str, message: str
) -> None:
    body = configuration(role, {**webhook(NAME), **fields})
    status, refusal = ask("POST", CONFIGURATIONS[role], body)
    assert (status, refusal["reason"]) == (422, "Invalid")
    [cause] = refusal["details"]["causes"]
    assert (cause["field"], cause["reason"]) == (f"webhooks[0].{field}", reason)
    assert message in cause["message"]


@pytest.mark.parametrize("bundle", ["&", 3])
def test_a_bundle_that_is_no_base64_cannot_be_read(ask: Ask, bundle: Any) -> None:
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
