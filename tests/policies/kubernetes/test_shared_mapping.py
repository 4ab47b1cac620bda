"""Shared mappings: equal to dicts that are copied for each change."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from policies.kubernetes.shared_mapping import SharedMapping, replaced_keys, with_entries

ENTRIES = st.dictionaries(st.text("abc", max_size=2), st.integers(0, 9), max_size=4)


@given(ENTRIES, st.lists(ENTRIES))
def test_every_version_is_equal_to_a_copy_with_the_same_entries(
    first: dict[str, int], changes: list[dict[str, int]]
) -> None:
    versions, copies = [with_entries(first, {})], [first]
    for entries in changes:
        versions.append(with_entries(versions[-1], entries))
        copies.append({**copies[-1], **entries})
    for version, copy in zip(versions, copies, strict=True):
        assert (len(version), list(version)) == (len(copy), list(copy))
        assert (list(version.items()), list(version.values())) == (
            list(copy.items()),
            list(copy.values()),
        )
        assert {key: version[key] for key in version} == copy
        assert version == copy
        assert "absent" not in version
        assert version.get("absent") is None


def test_entries_are_copied_only_with_new_keys() -> None:
    first: SharedMapping[int] = with_entries({"a": 1, "b": 2}, {"a": 3})
    assert with_entries(first, {"b": 4}).shared is first.shared
    assert with_entries(first, {"c": 5}).replaced == {}


@given(ENTRIES, ENTRIES, ENTRIES)
def test_versions_that_share_their_entries_differ_in_replaced_ones(
    first: dict[str, int], one: dict[str, int], other: dict[str, int]
) -> None:
    versions = [with_entries(first, entries) for entries in (one, other)]
    replaced = replaced_keys(*versions)
    shares = one.keys() | other.keys() <= first.keys()
    assert replaced == (one.keys() | other.keys() if shares else None)


def test_a_version_shares_the_entries_of_its_first_mapping() -> None:
    first = {"a": 1, "b": 2}
    assert replaced_keys(first, with_entries(first, {"a": 3})) == {"a"}
    assert replaced_keys(first, dict(first)) is None
