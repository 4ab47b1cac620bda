"""Trees of templates in workloads, beyond the recorded histories."""

from __future__ import annotations

from typing import Any

from fakeapi.apiserver.validation.pod_groups import workload_changes, workload_errors


def group(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "schedulingPolicy": {"gang": {"minCount": 2}}, **fields}


def composite(name: str, *children: dict[str, Any], groups: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "name": name,
        "schedulingPolicy": {"basic": {}},
        "podGroupTemplates": [group(each) for each in groups],
        "compositePodGroupTemplates": list(children),
    }


def workload(*templates: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"compositePodGroupTemplates": list(templates)}}


def errors(document: dict[str, Any]) -> list[tuple[str, str]]:
    return [(cause.field, cause.detail or cause.message) for cause in workload_errors(document, "")]


def test_a_tree_has_at_most_four_levels_with_its_pod_groups() -> None:
    three = composite("a", composite("b", composite("c", groups=("g",))))
    assert not errors(workload(three))
    four = composite("root", three)
    where = "spec.compositePodGroupTemplates[0]"
    assert errors(workload(four)) == [(where, "maximum template hierarchy depth is 4")]


def test_names_are_unique_in_the_whole_tree() -> None:
    where = "spec.compositePodGroupTemplates"
    tree = workload(composite("a", groups=("g",)), composite("b", groups=("g", "a")))
    assert errors(tree) == [
        (f"{where}[1].podGroupTemplates[0].name", 'Duplicate value: "g"'),
        (f"{where}[1].podGroupTemplates[1].name", 'Duplicate value: "a"'),
    ]


def test_all_templates_of_a_tree_have_one_priority() -> None:
    child = composite("a", groups=("g",)) | {"priority": 5}
    detail = "all priority and priorityClassName values must be identical, detected multiple values"
    assert errors(workload(child)) == [("spec", detail)]


def test_nested_templates_are_as_immutable_as_the_outer_ones() -> None:
    old = workload(composite("a", groups=("g",)))
    new = workload(composite("a", groups=("h",)))
    where = "spec.compositePodGroupTemplates[0].podGroupTemplates"
    assert [(cause.field, cause.detail) for cause in workload_changes(new, old)] == [
        (f"{where}[0]", "item may not be added"),
        (where, "item may not be removed"),
    ]
