"""Dotted paths into objects: keys, indexes, sums, and where they end."""

from __future__ import annotations

import pytest

from policies.workloadspread.targets import PathError, nested_integer, replicas_at

OBJECT = {"spec": {"replicas": 5, "groups": [1, {"replicas": 2}], "name": "x", "on": True}}


@pytest.mark.parametrize(
    ("paths", "total"),
    [
        ([], 0),
        ([""], 0),
        (["spec.replicas"], 5),
        (["spec.groups.0", "spec.groups.1.replicas", "spec.replicas"], 8),
        (["spec.groups.+1.replicas"], 2),
    ],
)
def test_numbers_add_up(paths: list[str], total: int) -> None:
    assert replicas_at(OBJECT, paths) == total


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("spec.nope", 'path "nope" not exists'),
        ("spec", "object type error"),
        ("spec.name", "object type error"),
        ("spec.on", "object type error"),
        ("spec.replicas.more", "object is not deep enough"),
        ("spec.groups.2", "index 2 out of range"),
        ("spec.groups.-1", "index -1 out of range"),
        ("spec.groups.x", 'parsing "x": invalid syntax'),
        ("spec..replicas", 'path "" not exists'),
    ],
)
def test_a_path_that_leads_nowhere_says_where_it_ends(path: str, problem: str) -> None:
    with pytest.raises(PathError, match=problem):
        nested_integer(OBJECT, path.split("."))


def test_no_steps_lead_to_the_thing_itself() -> None:
    assert nested_integer(7, []) == 7
