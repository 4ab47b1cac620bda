"""What is sensitive is left out, wherever it stands, and what is left is a valid object."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from extender.recording.withholding import withhold

APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

CASES: dict[str, tuple[Any, Any]] = {
    "values of the environment, not what they refer to": (
        {"env": [{"name": "A", "value": "x"}, {"name": "B", "valueFrom": {"secretKeyRef": {}}}]},
        {"env": [{"name": "A", "value": ""}, {"name": "B", "valueFrom": {"secretKeyRef": {}}}]},
    ),
    "arguments": ({"image": "i", "args": ["--token=x"]}, {"image": "i"}),
    "all of a command but the program": (
        {"exec": {"command": ["sh", "-c", "login x"]}},
        {"exec": {"command": ["sh"]}},
    ),
    "values of headers": (
        {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": "x"}]}},
        {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": ""}]}},
    ),
    "what was last applied, and annotations if that was all": (
        {"metadata": {"name": "a", "annotations": {APPLIED: "{}"}}},
        {"metadata": {"name": "a"}},
    ),
    "no other annotation": (
        {"metadata": {"annotations": {APPLIED: "{}", "b": "c"}}},
        {"metadata": {"annotations": {"b": "c"}}},
    ),
    "a Secret's data": (
        {"apiVersion": "v1", "kind": "Secret", "data": {"k": "eA=="}, "stringData": {"l": "x"}},
        {"apiVersion": "v1", "kind": "Secret", "data": {"k": ""}},
    ),
    "what is deep in a patch": (
        {"spec": {"subsets": [{"patch": {"spec": {"containers": [{"args": ["x"]}]}}}]}},
        {"spec": {"subsets": [{"patch": {"spec": {"containers": [{}]}}}]}},
    ),
    "nothing of a schema whose fields bear these names": (
        {"properties": {"env": {"type": "array"}, "args": {"type": "array"}, "command": {}}},
        {"properties": {"env": {"type": "array"}, "args": {"type": "array"}, "command": {}}},
    ),
    "nothing of a ConfigMap": (
        {"kind": "ConfigMap", "data": {"env": "A=x", "args": "y"}},
        {"kind": "ConfigMap", "data": {"env": "A=x", "args": "y"}},
    ),
    "nothing where there is nothing": (
        {"metadata": {"annotations": None}, "env": None, "args": None},
        {"metadata": {"annotations": None}, "env": None, "args": None},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_takes_out(name: str) -> None:
    given, left = deepcopy(CASES[name])
    assert withhold(given) == left
    assert withhold(given) == left  # what is left out once is left out for good
