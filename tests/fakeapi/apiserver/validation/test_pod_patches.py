"""The merge keys of pods in pod_injection equal those of the server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from extender.kube.workloadspread.pod_injection import MERGE_KEYS
from fakeapi.apiserver.kinds.builtin import PODS
from fakeapi.apiserver.kinds.structural_types import ListType, Struct, Type, schema_of
from fakeapi.apiserver.validation.object_validation import pod_spec_errors


def merge_keys(shape: Type, path: str) -> Iterator[tuple[str, str]]:
    """Return the lists below a type that merge, by path, and by what."""
    if isinstance(shape, ListType):
        if shape.merge is not None:
            yield path, shape.merge.key
        yield from merge_keys(shape.element, path)
    elif isinstance(shape, Struct):
        for name, field in shape.fields.items():
            yield from merge_keys(field.type, f"{path}.{name}")


def test_lists_merge_by_the_same_keys() -> None:
    found = dict(merge_keys(schema_of(PODS), ""))
    parts = (".metadata.", ".spec.")
    assert {path: key for path, key in found.items() if path.startswith(parts)} == dict(MERGE_KEYS)


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        ({"containers": [{"name": "main", "image": "web:1"}]}, []),
        ({}, [("containers", "Required value", "")]),
        (
            {"containers": [{"name": "main", "image": "web:1"}], "restartPolicy": "Sometimes"},
            [
                (
                    "restartPolicy",
                    "Unsupported value",
                    'supported values: "Always", "OnFailure", "Never"',
                )
            ],
        ),
    ],
)
def test_the_rules_of_pods_apply_to_templates(
    spec: dict[str, object], faults: list[tuple[str, str, str]]
) -> None:
    assert list(pod_spec_errors({"spec": spec})) == faults


def test_a_template_of_wrong_types_breaks_one_rule() -> None:
    ((field, sort, rule),) = pod_spec_errors({"spec": {"containers": "main"}})
    assert (field, sort) == ("", "Invalid value")
    assert rule.startswith("failed to unmarshal: ")


def test_arguments_are_not_changed() -> None:
    pod: dict[str, object] = {"spec": {"containers": [{"name": "main"}]}}
    list(pod_spec_errors(pod))
    assert pod == {"spec": {"containers": [{"name": "main"}]}}
