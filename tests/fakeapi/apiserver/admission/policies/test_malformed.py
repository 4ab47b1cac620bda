"""Policies that were loaded without validation: the server denies requests, and goes on."""

from __future__ import annotations

from typing import Any

import pytest

from fakeapi.apiserver.endpoints import Api
from tests.fakeapi.admission_policies import binding, policy, validation
from tests.fakeapi.api_requests import MAPS, Ask, named

DENIED = "ValidatingAdmissionPolicy 'rule' with binding 'rule' denied request: "


def with_variables(**expressions: str) -> dict[str, Any]:
    """Build a policy that needs the variable a."""
    declared = [{"name": name, "expression": text} for name, text in expressions.items()]
    return policy("rule", validation("variables.a == 1"), variables=declared)


@pytest.mark.parametrize(
    ("loaded", "denial"),
    [
        ({**policy("rule"), "spec": None}, ""),
        ({**policy("rule"), "spec": {"validations": "none"}}, ""),
        (policy("rule", validation("true"), matchConstraints={}), ""),
        (policy("rule", {}), "compilation error: "),
        (policy("rule", validation("object.x ==")), "compilation error: "),
        (policy("rule", validation("unknown == 1")), "expression 'unknown == 1' resulted in error"),
        (policy("rule", validation("'a'")), "failed expression: 'a'"),
        (with_variables(), "expression 'variables.a == 1' resulted in error: no such key: a"),
        (with_variables(a="variables.a"), "expression 'variables.a == 1' resulted in error: "),
        (
            with_variables(a="variables.b", b="variables.a"),
            "expression 'variables.a == 1' resulted in error: ",
        ),
    ],
)
def test_a_malformed_policy_denies_or_does_nothing(
    api: Api, ask: Ask, loaded: dict[str, Any], denial: str
) -> None:
    api.load([loaded, binding("rule")])
    status, answer = ask("POST", MAPS, named("a"))
    [cause] = answer.get("details", {}).get("causes") or [{"message": DENIED}]
    assert status == (422 if denial else 201)
    assert cause["message"].startswith(DENIED + denial)
    assert ask("GET", MAPS)[0] == 200
