"""Unknown fields of manifests, and the names that were probably meant."""

from __future__ import annotations

from typing import Any

import pytest

from fakeapi.apiserver.schema.unknown_fields import unknown_fields
from tests.builders import encoded, pod_json


@pytest.mark.parametrize(
    ("fields", "lines"),
    [
        ({"metadata": {"name": "a", "labels": {"a.b/c": "d"}}}, []),
        ({"metadata": {"name": "a", "lables": {}}}, ["metadata.lables; labels"]),
        (
            {"spec": {"containers": [{"name": "c", "resources": {"request": {"cpu": "1"}}}]}},
            ["spec.containers[0].resources.request; requests"],
        ),
        ({"spec": {"zzz": 1}}, ["spec.zzz"]),
        ({"": 1, "[]": 1, ".": 1}, ["", "[]", "."]),
        ({"spec": {"containerss" * 10**6: 1}}, [f"spec.{'containerss' * 10**6}"]),
        ({"spec": {"containers": "none"}}, []),
        ({"apiVersion": "example.com/v1", "spec": {"zzz": 1}}, []),
    ],
)
def test_unknown_fields(fields: dict[str, Any], lines: list[str]) -> None:
    found = [
        line.replace(": unknown field", "").replace(" did you mean ", " ").rstrip("?")
        for line in unknown_fields(encoded(pod_json("a") | fields))
    ]
    assert found == lines
