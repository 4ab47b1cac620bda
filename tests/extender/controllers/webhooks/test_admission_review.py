"""The change to an object as a JSON patch: applied, it gives the intended object."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import jsonpatch
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.controllers.webhooks.admission_review import create_json_patch

KEYS = st.sampled_from(["a", "b", "a/b", "m~n", "~1", ""])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a", "/", "~1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=4)


def carried_out(document: Any, operations: Any) -> Any:
    return jsonpatch.apply_patch(deepcopy(document), deepcopy(operations))


def exactly(document: Any) -> bytes:
    """Return JSON, which distinguishes true from 1."""
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


@given(DOCUMENTS, DOCUMENTS)
def test_it_makes_one_of_the_other(before: Any, after: Any) -> None:
    operations = create_json_patch(before, after)
    assert exactly(carried_out(before, operations)) == exactly(after)


@given(DOCUMENTS)
def test_equal_values_give_no_patch_operations(document: Any) -> None:
    assert create_json_patch(document, deepcopy(document)) == []


@pytest.mark.parametrize(
    ("before", "after", "operations"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, [("add", "/a/c", 2)]),
        ({"a": [1]}, {"a": [1, 2]}, [("replace", "/a", [1, 2])]),
        ({"x/y": 1, "m~n": 1}, {"x/y": 2}, [("replace", "/x~1y", 2), ("remove", "/m~0n", None)]),
        ({"a": 1}, {"a": True}, [("replace", "/a", True)]),
        ({"a": [{"b": 0}]}, {"a": [{"b": False}]}, [("replace", "/a", [{"b": False}])]),
    ],
)
def test_members_are_patched_one_by_one_and_other_values_as_a_whole(
    before: Any, after: Any, operations: Any
) -> None:
    found = [
        (each["op"], each["path"], each.get("value")) for each in create_json_patch(before, after)
    ]
    assert found == operations
