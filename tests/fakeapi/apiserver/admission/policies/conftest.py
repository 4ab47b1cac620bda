"""An API with admission policies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fakeapi.admission_policies import BINDINGS, POLICIES, binding, policy, validation
from tests.fakeapi.api_requests import Ask

Enforce = Callable[..., None]


@pytest.fixture
def enforce(ask: Ask) -> Enforce:
    """Create a policy on config maps with one validation, and a binding that denies."""

    def enforce(expression: str, name: str = "rule", **spec: Any) -> None:
        fields = {key: spec.pop(key) for key in _OF_VALIDATION if key in spec}
        bound = {key: spec.pop(key) for key in _OF_BINDING if key in spec}
        actions = bound.pop("actions", ("Deny",))
        created = [
            ask("POST", POLICIES, policy(name, validation(expression, **fields), **spec)),
            ask("POST", BINDINGS, binding(name, *actions, **bound)),
        ]
        assert [status for status, _ in created] == [201, 201], created

    return enforce


_OF_VALIDATION = ("message", "messageExpression", "reason")
_OF_BINDING = ("actions", "paramRef", "matchResources")
