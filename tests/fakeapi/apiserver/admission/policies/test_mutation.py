"""MutatingAdmissionPolicies: what the recorded answers of a server leave out.

A kube-apiserver evaluates policies in no particular order; here it is that of their names.
"""

from __future__ import annotations

from typing import Any

import pytest

from fakeapi.apiserver.endpoints import Api
from tests.fakeapi.admission_policies import matching
from tests.fakeapi.admission_webhooks import GROUP, add, answering, patching, rule
from tests.fakeapi.api_requests import APPLY, DEPLOYMENTS, MAPS, Ask, named, send
from tests.fakeapi.apiserver.admission.conftest import Configure
from tests.fakeapi.apiserver.transcripts.policy_scenes import binding, configuration, json_patch

POLICIES = f"{GROUP}/mutatingadmissionpolicies"
BINDINGS = f"{GROUP}/mutatingadmissionpolicybindings"
COUNT = configuration("Object{data: {'n': object.data.?n.orValue('') + string(size(object.data))}}")
GROW = json_patch("[JSONPatch{op: 'add', path: '/data/l', value: 'long'}]")


def mutate(ask: Ask, name: str, *mutations: dict[str, Any], **spec: Any) -> None:
    """Create a policy about config maps, and a binding that restricts nothing."""
    bound = spec.pop("bound", {})
    common = {"matchConstraints": matching(), "reinvocationPolicy": "Never", **spec}
    written = {"metadata": {"name": name}, "spec": {**common, "mutations": [*mutations]}}
    assert ask("POST", POLICIES, written)[0] == 201
    assert ask("POST", BINDINGS, binding(name, **bound))[0] == 201


@pytest.mark.parametrize(
    ("first", "second", "counted"),
    [
        ("Never", "Never", "1"),
        ("IfNeeded", "Never", "13"),
        ("IfNeeded", "IfNeeded", "13"),
        ("Never", "IfNeeded", "1"),
    ],
)
def test_a_policy_is_called_again_after_a_later_change(
    ask: Ask, first: str, second: str, counted: str
) -> None:
    mutate(ask, "a", COUNT, reinvocationPolicy=first)
    mutate(ask, "b", GROW, reinvocationPolicy=second)
    assert ask("POST", MAPS, named("m", a="1"))[1]["data"]["n"] == counted


def test_a_policy_is_called_again_after_a_change_of_a_webhook(
    ask: Ask, configure: Configure
) -> None:
    mutate(ask, "a", COUNT, reinvocationPolicy="IfNeeded")
    configure("mutating", answer=answering(**patching(add("/data/l", "long"))))
    assert ask("POST", MAPS, named("m", a="1"))[1]["data"]["n"] == "13"


def test_a_webhook_sees_what_policies_have_changed(ask: Ask, configure: Configure) -> None:
    mutate(ask, "a", GROW)
    recorder = configure("mutating")
    ask("POST", MAPS, named("m", a="1"))
    assert [seen["data"] for seen in recorder.seen("object")] == [{"a": "1", "l": "long"}]


def test_each_parameter_of_a_selector_is_an_invocation(ask: Ask) -> None:
    for name in ("one", "two"):
        params = {"metadata": {"name": name, "labels": {"params": "yes"}}, "data": {name: name}}
        assert ask("POST", MAPS, params)[0] == 201
    reference = {
        "selector": {"matchLabels": {"params": "yes"}},
        "parameterNotFoundAction": "Deny",
    }
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    from_params = configuration("Object{data: params.data}")
    mutate(ask, "a", from_params, paramKind=kind, bound={"paramRef": reference})
    made = ask("POST", MAPS, named("m", a="1"))[1]
    assert made["data"] == {"a": "1", "one": "one", "two": "two"}


def test_a_deletion_and_a_read_are_not_mutated(ask: Ask) -> None:
    ask("POST", MAPS, named("m", a="1"))
    mutate(ask, "a", COUNT)
    assert ask("GET", f"{MAPS}/m")[1]["data"] == {"a": "1"}
    assert ask("DELETE", f"{MAPS}/m")[0] == 200


def test_no_manager_owns_what_a_policy_has_set(ask: Ask, api: Api) -> None:
    mutate(ask, "a", GROW)
    body = (
        b'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1"}}'
    )
    answer = send(api, "PATCH", f"{MAPS}/m", body, APPLY, query={"fieldManager": "me"})
    assert answer.status == 201
    made = ask("GET", f"{MAPS}/m")[1]
    [mine] = [e for e in made["metadata"]["managedFields"] if e["operation"] == "Apply"]
    assert made["data"] == {"a": "1", "l": "long"}
    assert mine["fieldsV1"] == {"f:data": {"f:a": {}}}


def test_a_result_is_defaulted_and_validated(ask: Ask) -> None:
    rules = matching("deployments")
    containers = "Object.spec.template.spec.containers"
    sidecar = configuration(
        "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{"
        f"containers: [{containers}{{name: variables.name, image: 'i'}}]}}}}}}}}"
    )
    name = {"name": "name", "expression": "request.name == 'bad' ? 'Not A Name' : 'side'"}
    mutate(ask, "a", sidecar, matchConstraints=rules, variables=[name])
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    status, made = ask("POST", DEPLOYMENTS, {"metadata": {"name": "good"}, "spec": spec})
    assert status == 201
    first, added = made["spec"]["template"]["spec"]["containers"]
    assert (first["name"], added["name"]) == ("c", "side")
    assert added["terminationMessagePolicy"] == "File"
    status, refusal = ask("POST", DEPLOYMENTS, {"metadata": {"name": "bad"}, "spec": spec})
    assert status == 422
    [cause] = refusal["details"]["causes"]
    assert cause["field"] == "spec.template.spec.containers[1].name"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("Object{data: {'t': timestamp('2026-01-01T00:00:00Z')}}", "is no JSON"),
        ("Object{data: {'t': b'a'}}", "is no JSON"),
        ("Object{data: {'t': duration('1s')}}", "is no JSON"),
    ],
)
def test_a_value_that_is_no_json_denies_the_request(
    ask: Ask, expression: str, message: str
) -> None:
    mutate(ask, "a", configuration(expression))
    status, refusal = ask("POST", MAPS, named("m"))
    assert (status, refusal["reason"]) == (403, "Invalid")
    assert message in refusal["message"]


def test_policies_themselves_are_not_mutated(ask: Ask) -> None:
    everything = {"resourceRules": [rule("*", apiGroups=["*"], apiVersions=["*"])]}
    refuse = configuration("Object{metadata: Object.metadata{name: object.missing}}")
    mutate(ask, "a", refuse, matchConstraints=everything)
    assert ask("DELETE", f"{POLICIES}/a")[0] == 200
    mutate(ask, "b", GROW)
