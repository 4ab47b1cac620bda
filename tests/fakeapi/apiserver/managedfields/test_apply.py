"""Server-side apply: laws that hold for any configurations, and its rules one by one."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import assume, given, settings

from fakeapi.apiserver.endpoints import StatusError
from fakeapi.apiserver.managedfields import (
    AppliedConfiguration,
    FieldManager,
    apply,
    track_create,
    track_update,
)
from fakeapi.apiserver.managedfields.entries import Owner, read_entries
from fakeapi.apiserver.managedfields.field_set import (
    FieldSet,
    describe,
    difference,
    intersection,
    paths,
    set_of,
)
from fakeapi.apiserver.managedfields.typed_value import to_field_set
from tests.fakeapi.apiserver.managedfields.example_kind import DOCUMENT, THINGS, specs, thing
from tests.properties.sampling import examples

Spec = dict[str, Any]

law = settings(max_examples=examples(40))

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def applied(live: Any, spec: Spec, manager: str = "me", time: str = "1", **how: Any) -> Any:
    force = how.pop("force", False)
    config = AppliedConfiguration(thing(spec, **how), force)
    return apply(THINGS, live, config, FieldManager(manager, time))


def forced(live: Any, spec: Spec, manager: str = "me") -> Any:
    return applied(live, spec, manager, force=True)


def owners(document: Any) -> dict[str, FieldSet]:
    entries = document["metadata"].get("managedFields") or ()
    return {owner.manager: owned.fields for owner, owned in read_entries(entries).items()}


def owned(document: Any, manager: str) -> list[str]:
    return [describe(path) for path in paths(owners(document).get(manager, {}))]


def below(fields: FieldSet, path: tuple[str, ...]) -> bool:
    for element in path:
        fields = fields[element]
    return bool(fields)


@law
@given(specs, specs)
def test_applying_again_changes_nothing(before: Spec, spec: Spec) -> None:
    once = forced(applied({}, before, "other"), spec)
    assert applied(once, spec) == once


@law
@given(specs, specs)
def test_the_live_object_holds_the_applied_fields(before: Spec, spec: Spec) -> None:
    live = forced(applied({}, before, "other"), spec)
    assert not difference(to_field_set(DOCUMENT, thing(spec)), to_field_set(DOCUMENT, live))
    assert forced(live, spec, "third").get("spec") == live.get("spec")


@law
@given(specs, specs)
def test_force_makes_the_manager_the_owner_of_changed_fields(before: Spec, spec: Spec) -> None:
    first = applied({}, before, "other")
    live = forced(first, spec)
    mine = owners(live).get("me", {})
    assert mine == {"f:spec": to_field_set(DOCUMENT, thing(spec))["f:spec"]} if spec else not mine
    kept = owners(live).get("other", {})
    assert not difference(kept, owners(first).get("other", {}))
    assert intersection(kept, mine) == intersection(kept, to_field_set(DOCUMENT, thing(spec)))


@law
@given(specs, specs)
def test_managers_of_different_fields_never_conflict(one: Spec, other: Spec) -> None:
    assume(not one.keys() & other.keys())
    live = applied(applied({}, one, "one"), other, "other")
    assert live.get("spec", {}) == one | other


@law
@given(specs, specs)
def test_a_field_no_longer_applied_is_removed_without_another_owner(
    before: Spec, spec: Spec
) -> None:
    assume(before and not before.keys() & spec.keys())
    with_mine = applied(applied({}, before, "other"), spec)
    assert applied(with_mine, {}).get("spec") == before
    assert "me" not in owners(applied(with_mine, {}))


@law
@given(specs, specs)
def test_a_conflict_names_the_owners_of_fields_that_would_change(before: Spec, spec: Spec) -> None:
    assume(
        "free" not in spec
    )  # an untyped object that becomes a scalar is removed without conflict
    live = applied({}, before, "other")
    taken = set(owned(live, "other")) - set(owned(forced(live, spec), "other"))
    if not taken:
        assert applied(live, spec) == forced(live, spec)
        return
    with pytest.raises(StatusError) as refused:
        applied(live, spec)
    assert refused.value.code == 409
    assert refused.value.details is not None
    assert {cause["field"] for cause in refused.value.details["causes"]} == taken


@law
@given(specs, specs)
def test_an_apply_does_not_change_its_arguments(before: Spec, spec: Spec) -> None:
    live = applied({}, before, "other")
    config = AppliedConfiguration(thing(spec), force=True)
    copies = deepcopy((live, config.document))
    apply(THINGS, live, config, FieldManager("me", "2"))
    assert (live, config.document) == copies


@law
@given(specs, specs, specs)
def test_every_owner_owns_existing_fields_only(one: Spec, two: Spec, three: Spec) -> None:
    live = forced(forced(applied({}, one, "one"), two, "two"), three, "one")
    present = to_field_set(DOCUMENT, live)
    for fields in owners(live).values():
        assert not difference(leaves(fields), present)


def leaves(fields: FieldSet) -> FieldSet:
    """Return the members of a set that have none below them."""
    return set_of(*(path for path in paths(fields) if not below(fields, path)))


def test_lists_keep_the_order_of_the_configuration_and_the_place_of_other_items() -> None:
    def names(document: Any) -> str:
        return "".join(item["name"] for item in document["spec"]["items"])

    def listed(order: str) -> Spec:
        return {"items": [{"name": name} for name in order]}

    live = applied({}, listed("abc"), "one")
    assert names(applied(live, listed("ca"), "two")) == "bca"
    assert names(applied(live, listed("xb"), "two")) == "axbc"
    assert names(applied(live, listed("bx"), "two")) == "abcx"


def test_conflicts_have_upstreams_words() -> None:
    live = applied(applied({}, {"size": 1}, "one"), {"tags": {"a": "x"}}, "two")
    with pytest.raises(StatusError) as single:
        applied(live, {"size": 2})
    assert single.value.message == 'Apply failed with 1 conflict: conflict with "one": .spec.size'
    with pytest.raises(StatusError) as double:
        applied(live, {"size": 2, "tags": {"a": "y"}})
    assert double.value.message == (
        "Apply failed with 2 conflicts: "
        'conflicts with "one":\n- .spec.size\nconflicts with "two":\n- .spec.tags.a'
    )
    assert double.value.reason == "Conflict"
    assert str(Owner("u", "Update", "v1", "status")) == '"u" with subresource "status" using v1'


def test_a_value_of_two_owners_stays_until_both_release_it() -> None:
    both = applied(applied({}, {"size": 1}, "one"), {"size": 1}, "two")
    assert owned(both, "one") == owned(both, "two") == [".spec.size"]
    one_left = applied(both, {}, "two")
    assert one_left["spec"] == {"size": 1}
    assert "size" not in applied(one_left, {}, "one").get("spec", {})


def test_the_time_of_an_entry_is_that_of_the_last_change_it_made() -> None:
    def times(document: Any) -> list[str]:
        return [entry.get("time", "none") for entry in document["metadata"]["managedFields"]]

    first = applied({}, {"size": 1}, "one", time="1")
    assert times(applied(first, {"size": 1}, "one", time="2")) == ["1"]
    assert times(applied(first, {"size": 1}, "two", time="2")) == ["none", "1"]
    assert times(forced(first, {"size": 2}, "one")) == ["1"]
    assert times(applied(first, {"size": 2}, "one", time="3")) == ["3"]


def test_items_that_the_live_list_has_twice_are_replaced_by_the_one_applied() -> None:
    doubled = [{"name": "a", "image": "x"}, {"name": "b"}, {"name": "a", "image": "y"}]
    live = thing({"items": doubled})
    track_create(THINGS, live, FieldManager("one", "1"))
    after = forced(live, {"items": [{"name": "a", "tags": {"k": "v"}}]})
    assert after["spec"]["items"] == [{"name": "a", "tags": {"k": "v"}}, {"name": "b"}]


def test_an_empty_object_is_removed() -> None:
    live = applied({}, {"inner": {"a": "x"}, "size": 1})
    assert applied(live, {"size": 1})["spec"] == {"size": 1}


def test_a_field_set_by_update_is_not_removed() -> None:
    live = applied({}, {"size": 1, "tags": {"a": "x"}})
    changed = deepcopy(live)
    changed["spec"]["tags"]["b"] = "y"
    track_update(THINGS, live, changed, FieldManager("updater", "2"))
    assert owned(changed, "updater") == [".spec.tags.b"]
    assert applied(changed, {"size": 1})["spec"] == {"size": 1, "tags": {"b": "y"}}


def test_fields_set_before_the_first_apply_get_an_owner() -> None:
    live = applied(thing({"size": 1}), {"tags": {"a": "x"}})
    assert owned(live, "before-first-apply") == [".spec.size"]
    assert owned(live, "me") == [".spec.tags.a"]


def test_kubectl_takes_over_fields_of_client_side_apply() -> None:
    text = '{"apiVersion":"v1","kind":"Thing","metadata":{"name":"x"},"spec":{"size":1}}'
    live = thing({"size": 1}, annotations={LAST_APPLIED: text})
    track_create(THINGS, live, FieldManager("kubectl-client-side-apply", "1"))
    with pytest.raises(StatusError):
        applied(live, {"size": 2}, "other")
    after = applied(live, {"size": 2}, "kubectl")
    assert after["spec"] == {"size": 2}
    assert '"spec":{"size":2}' in after["metadata"]["annotations"][LAST_APPLIED]
    live["spec"]["size"] = 5  # someone else has changed it since
    with pytest.raises(StatusError):
        applied(live, {"size": 2}, "kubectl")


@pytest.mark.parametrize(
    ("document", "code", "message"),
    [
        ({"kind": "Other"}, 400, "invalid object type: /v1, Kind=Other"),
        ({"apiVersion": "a/v2"}, 400, "invalid object type: a/v2, Kind=Thing"),
        ({"metadata": {"managedFields": []}}, 400, "metadata.managedFields must be nil"),
        ({"spec": {"nope": 1}}, 500, ".spec.nope: field not declared in schema"),
        ({"spec": {"size": "x"}}, 500, ".spec.size: expected numeric (int or float), got string"),
        ({"spec": {"items": [{"name": 1}]}}, 500, "items[name=1,protocol="),
        ({"spec": {"names": ["a", "a"]}}, 500, '.spec.names: duplicate entries for key [="a"]'),
        ({"spec": {"names": [{}]}}, 500, "element 0: associative list without keys"),
        ({"spec": {"items": "x"}}, 500, ".spec.items: expected list, got &{x}"),
        ({"spec": [1]}, 500, ".spec: expected map, got &{[1]}"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(
    document: Any, code: int, message: str
) -> None:
    config = {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "x"}, **document}
    with pytest.raises(StatusError) as refused:
        apply(THINGS, {}, AppliedConfiguration(config), FieldManager("me", "1"))
    assert refused.value.code == code
    assert message in refused.value.message
