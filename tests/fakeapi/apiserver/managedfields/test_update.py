"""Field ownership after creates, updates and patches."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given

from fakeapi.apiserver.managedfields import FieldManager, track_create, track_update
from fakeapi.apiserver.managedfields.entries import read_entries
from fakeapi.apiserver.managedfields.field_set import describe, difference, intersection, paths
from fakeapi.apiserver.managedfields.update import ignore_managed_fields_timestamps
from tests.fakeapi.apiserver.managedfields.example_kind import THINGS, specs, thing


def created(spec: dict[str, Any], manager: str = "one", **metadata: Any) -> Any:
    document = thing(deepcopy(spec), **metadata)
    track_create(THINGS, document, FieldManager(manager, "2026-01-01T00:00:00Z"))
    return document


def updated(
    old: Any, spec: dict[str, Any], manager: str = "two", second: int = 1, **metadata: Any
) -> Any:
    document = thing(deepcopy(spec), **metadata)
    track_update(THINGS, old, document, FieldManager(manager, f"2026-01-01T00:00:{second:02}Z"))
    return document


def managers(document: Any) -> dict[str, list[str]]:
    entries = document["metadata"].get("managedFields") or ()
    return {
        owner.manager: [describe(path).removeprefix(".spec") for path in paths(owned.fields)]
        for owner, owned in read_entries(entries).items()
    }


def test_a_new_object_belongs_to_its_creator_but_for_the_servers_metadata() -> None:
    document = created({"size": 1}, labels={"a": "b"})
    assert managers(document) == {"one": [".metadata.labels", ".metadata.labels.a", ".size"]}


def test_a_change_takes_ownership_and_a_removed_field_has_no_owner() -> None:
    old = created({"size": 1, "tags": {"a": "x"}, "inner": {"a": "b"}})
    new = updated(old, {"size": 2, "inner": {"a": "b"}})
    assert managers(new) == {"one": [".inner", ".inner.a"], "two": [".size"]}


def test_an_update_that_changes_nothing_changes_no_owner_and_no_time() -> None:
    old = created({"size": 1})
    assert updated(old, {"size": 1}) == old


@given(specs, specs)
def test_every_changed_field_has_one_owner(old: dict[str, Any], new: dict[str, Any]) -> None:
    document = updated(created(old), new)
    entries = document["metadata"].get("managedFields") or ()
    sets = [owned.fields for owned in read_entries(entries).values()]
    if len(sets) == 2:
        assert not intersection(*sets)
        assert difference(*sets) == sets[0]


@pytest.mark.parametrize("asked", [[], [{}]])
def test_clearing_the_entries_ends_tracking_until_the_next_apply(asked: Any) -> None:
    cleared = updated(created({"size": 1}), {"size": 2}, managedFields=asked)
    assert managers(cleared) == {}
    assert managers(updated(cleared, {"size": 3})) == {}


@pytest.mark.parametrize("entries", [None, [{"manager": "x"}], [{"operation": "Apply"}]])
def test_missing_or_invalid_entries_of_a_client_change_nothing(entries: Any) -> None:
    sent = {} if entries is None else {"managedFields": entries}
    new = updated(created({"size": 1}), {"size": 1}, **sent)
    assert managers(new) == {"one": [".size"]}


def test_a_client_may_send_entries_of_its_own() -> None:
    entry = {
        "manager": "gone",
        "operation": "Apply",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:size": {}}},
    }
    new = updated(created({"size": 1}), {"size": 1}, managedFields=[entry])
    assert managers(new) == {"gone": [".size"]}


def test_through_a_subresource_entries_are_not_taken_from_the_client() -> None:
    old = created({"size": 1})
    document = thing({"size": 1}, managedFields=[])
    track_update(THINGS, old, document, FieldManager("two", "t", subresource="status"))
    assert managers(document) == {"one": [".size"]}


def test_the_oldest_of_more_than_ten_updaters_become_one() -> None:
    document = created({"tags": {"a": "x"}}, "m00")
    for number in range(1, 13):
        tags = {**document["spec"]["tags"], f"t{number:02}": "x"}
        document = updated(document, {"tags": tags}, f"m{number:02}", number)
    found = managers(document)
    assert len(found) == 10
    assert found["ancient-changes"][-3:] == [".tags.t01", ".tags.t02", ".tags.t03"]
    assert "m03" not in found
    assert found["m04"] == [".tags.t04"]


def test_entries_of_another_version_are_kept_as_they_are() -> None:
    old = created({"size": 1})
    old["metadata"]["managedFields"][0]["apiVersion"] = "v0"
    new = updated(old, {"size": 2})
    assert managers(new) == {"one": [".size"], "two": [".size"]}


def test_a_difference_of_times_only_is_no_change() -> None:
    old = created({"size": 1})
    again = deepcopy(old)
    again["metadata"]["managedFields"][0]["time"] = "2030-01-01T00:00:00Z"
    assert ignore_managed_fields_timestamps(again, old) == old
    again["metadata"]["managedFields"][0]["manager"] = "other"
    assert ignore_managed_fields_timestamps(again, old) == again
