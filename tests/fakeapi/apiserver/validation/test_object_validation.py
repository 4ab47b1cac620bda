"""Warnings of writes, and the rules of pods that need no server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from extender.kube.workloadspread.pod_injection import MERGE_KEYS
from fakeapi.apiserver.endpoints import Api
from fakeapi.apiserver.kinds.builtin import PODS
from fakeapi.apiserver.kinds.structural_types import ListType, Struct, Type, schema_of
from fakeapi.apiserver.validation.object_validation import pod_spec_errors
from tests.builders.definitions import DEFINITIONS, NAME, TEXT, WIDGETS, definition, widget
from tests.fakeapi.api_requests import send


def warned(api: Api, method: str, path: str, body: Any) -> tuple[int, tuple[str, ...]]:
    """Send a request; return the status and the warnings."""
    answer = send(api, method, path, body)
    return answer.status, answer.warnings


def test_an_unknown_format_has_one_warning(api: Api) -> None:
    made = definition(spec={"size": {**TEXT, "format": "roman"}})
    assert warned(api, "POST", DEFINITIONS, made) == (201, ('unrecognized format "roman"',))
    change = {"spec": {"names": {"shortNames": ["wd"]}}}
    assert warned(api, "PATCH", f"{DEFINITIONS}/{NAME}", change) == (200, ())


def test_a_set_of_objects_has_a_warning(api: Api) -> None:
    items = {"type": "object", "x-kubernetes-map-type": "atomic"}
    sizes = {"type": "array", "x-kubernetes-list-type": "set", "items": items}
    status, [warning] = warned(api, "POST", DEFINITIONS, definition(spec={"sizes": sizes}))
    assert (status, warning) == (
        201,
        (
            'x-kubernetes-list-type: set for items of type "object" is not supported by '
            "server-side apply or CEL validation rules"
        ),
    )


def test_a_finalizer_without_a_domain_has_a_warning(api: Api) -> None:
    warned(api, "POST", DEFINITIONS, definition())
    held = widget()
    held["metadata"]["finalizers"] = ["tidy", "foregroundDeletion"]
    status, warnings = warned(api, "POST", WIDGETS, held)
    assert (status, len(warnings)) == (201, 1)
    assert warnings[0].startswith('metadata.finalizers: "tidy": prefer a domain-qualified')
    assert warned(api, "PATCH", f"{WIDGETS}/one", {"spec": {"a": 1}}) == (200, ())


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
    ("spec", "errors"),
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
    spec: dict[str, object], errors: list[tuple[str, str, str]]
) -> None:
    assert list(pod_spec_errors({"spec": spec})) == errors


def test_a_template_of_wrong_types_breaks_one_rule() -> None:
    ((field, sort, rule),) = pod_spec_errors({"spec": {"containers": "main"}})
    assert (field, sort) == ("", "Invalid value")
    assert rule.startswith("failed to unmarshal: ")


def test_arguments_are_not_changed() -> None:
    pod: dict[str, object] = {"spec": {"containers": [{"name": "main"}]}}
    list(pod_spec_errors(pod))
    assert pod == {"spec": {"containers": [{"name": "main"}]}}
