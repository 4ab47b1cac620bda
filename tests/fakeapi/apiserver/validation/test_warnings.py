"""Warnings about what is stored without effect: once for an object, and listed in the docs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fakeapi.apiserver.endpoints import Api
from fakeapi.apiserver.validation.warnings import WITHOUT_EFFECT
from tests.fakeapi.admission_policies import BINDINGS, binding
from tests.fakeapi.api_requests import APPLY, MAPS, NAMESPACES, named, send

NETWORK = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
ENFORCE = {"pod-security.kubernetes.io/enforce": "restricted"}
SERVICE = {
    "metadata": {"name": "v1.example.com"},
    "spec": {
        "group": "example.com",
        "version": "v1",
        "groupPriorityMinimum": 1,
        "versionPriority": 1,
    },
}


def warned(api: Api, method: str, path: str, body: dict[str, Any], **fields: Any) -> list[str]:
    """Send a write that succeeds; return what its warnings are about."""
    answer = send(api, method, path, body, **fields)
    assert answer.status in (200, 201), answer.body
    return [warning.partition(":")[0] for warning in answer.warnings]


def labelled(labels: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": "a", "labels": labels}}


@pytest.mark.parametrize(
    ("path", "document", "about"),
    [
        (MAPS, named("a"), []),
        (NAMESPACES, labelled({}), []),
        (NAMESPACES, labelled(ENFORCE), ["Namespace with labels pod-security.kubernetes.io/*"]),
        (NETWORK, {"metadata": {"name": "a"}, "spec": {"podSelector": {}}}, ["NetworkPolicy"]),
        (
            BINDINGS,
            binding("a", "Audit"),
            ["ValidatingAdmissionPolicyBinding with the action Audit"],
        ),
        (BINDINGS, binding("a"), []),
        (SERVICES, SERVICE, []),
    ],
)
def test_a_create_warns_of_what_has_no_effect(
    api: Api, path: str, document: dict[str, Any], about: list[str]
) -> None:
    assert warned(api, "POST", path, document) == about


def test_an_update_warns_only_when_it_begins_to_apply(api: Api) -> None:
    path = f"{NAMESPACES}/a"
    about = ["Namespace with labels pod-security.kubernetes.io/*"]
    assert warned(api, "POST", NAMESPACES, labelled({})) == []
    assert warned(api, "PATCH", path, labelled({"team": "red"})) == []
    assert warned(api, "PATCH", path, labelled(ENFORCE)) == about
    assert warned(api, "PATCH", path, labelled({"team": "blue"})) == []
    assert warned(api, "PUT", path, labelled(ENFORCE)) == []


def test_an_apply_warns_once(api: Api) -> None:
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "a"},
        "spec": {"podSelector": {}},
    }
    fields: dict[str, Any] = {"content_type": APPLY, "query": {"fieldManager": "me"}}
    assert warned(api, "PATCH", f"{NETWORK}/a", policy, **fields) == ["NetworkPolicy"]
    policy["spec"] = {"podSelector": {"matchLabels": {"a": "b"}}}
    assert warned(api, "PATCH", f"{NETWORK}/a", policy, **fields) == []


def test_the_documentation_lists_what_has_no_effect() -> None:
    text = Path("docs/fakeapi.md").read_text().partition("## Stored without effect")[2]
    rows = [line for line in text.partition("\n## ")[0].splitlines() if line.startswith("| ")][1:]
    effects = [effect for each in WITHOUT_EFFECT.values() for effect in each]
    assert rows == [f"| {effect.what} | {effect.missing} |" for effect in effects]


def test_every_listed_resource_is_served(api: Api) -> None:
    assert WITHOUT_EFFECT.keys() <= {kind.resource for kind in api.kinds.all}
