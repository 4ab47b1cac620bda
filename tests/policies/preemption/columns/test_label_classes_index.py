"""What may match is found by index: never too little, and nothing that is gone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.kubernetes.selectors import Labels, LabelSelector, equals_all, label_requirement
from policies.preemption.columns.label_classes import LabelIndex, SelectorIndex

SELECTORS = {
    "everything": LabelSelector(),
    "one label": LabelSelector(equals_all({"app": "web"})),
    "two labels": LabelSelector(equals_all({"app": "web", "tier": "front"})),
    "one of two": LabelSelector((label_requirement("app", "In", ["web", "db"]),)),
    "the same twice": LabelSelector((label_requirement("app", "In", ["web", "web"]),)),
    "not": LabelSelector((label_requirement("app", "NotIn", ["web"]),)),
    "has": LabelSelector((label_requirement("app", "Exists", []),)),
    "lacks": LabelSelector((label_requirement("app", "DoesNotExist", []),)),
    "one of two, but not": LabelSelector(
        (
            label_requirement("app", "In", ["web", "db"]),
            label_requirement("tier", "NotIn", ["front"]),
        )
    ),
    "contradiction": LabelSelector((*equals_all({"app": "web"}), *equals_all({"app": "db"}))),
}
LABELS: list[Labels] = [
    {},
    {"app": "web"},
    {"app": "db"},
    {"app": ""},
    {"tier": "front"},
    {"app": "web", "tier": "front"},
    {"app": "db", "tier": "back", "more": "of it"},
]


@pytest.mark.parametrize("labels", LABELS, ids=str)
def test_every_selector_that_matches_is_found_by_labels(labels: Labels) -> None:
    index: SelectorIndex[str] = SelectorIndex()
    for name, selector in SELECTORS.items():
        index.add(selector, name)
    found = list(index.may_match(labels))
    assert {name for name, each in SELECTORS.items() if each.matches(labels)} <= set(found)
    assert len(found) == len(set(found))


@pytest.mark.parametrize("name", SELECTORS)
def test_all_labels_that_match_are_found_by_selector(name: str) -> None:
    index: LabelIndex[int] = LabelIndex()
    for number, labels in enumerate(LABELS):
        index.add(labels, number)
    found = list(index.may_match(SELECTORS[name]))
    matching = {n for n, labels in enumerate(LABELS) if SELECTORS[name].matches(labels)}
    assert matching <= set(found)
    assert len(found) == len(set(found))


def test_terms_for_other_values_are_not_evaluated() -> None:
    selectors: SelectorIndex[str] = SelectorIndex()
    selectors.add(SELECTORS["one label"], "web")
    assert list(selectors.may_match({"app": "db"})) == []
    labels: LabelIndex[str] = LabelIndex()
    labels.add({"app": "db"}, "db")
    assert list(labels.may_match(SELECTORS["one label"])) == []


def test_the_requirement_with_the_fewest_values_is_the_one_that_is_looked_up() -> None:
    selector = LabelSelector(
        (label_requirement("app", "In", ["web", "db"]), *equals_all({"tier": "front"}))
    )
    index: LabelIndex[str] = LabelIndex()
    index.add({"app": "web", "tier": "back"}, "back")
    assert list(index.may_match(selector)) == []


@given(st.lists(st.sampled_from(list(SELECTORS)), unique=True), st.permutations(list(SELECTORS)))
def test_selectors_that_are_removed_leave_nothing_behind(
    names: list[str], order: list[str]
) -> None:
    index: SelectorIndex[str] = SelectorIndex()
    for name in names:
        index.add(SELECTORS[name], name)
    leaving = [name for name in order if name in names]
    for place, name in enumerate(leaving):
        index.remove(SELECTORS[name], name)
        left = set(leaving[place + 1 :])
        for labels in LABELS:
            assert set(index.may_match(labels)) <= left
            assert {n for n in left if SELECTORS[n].matches(labels)} <= set(index.may_match(labels))
    assert vars(index) == vars(SelectorIndex())


def test_labels_that_are_removed_leave_nothing_behind() -> None:
    index: LabelIndex[int] = LabelIndex()
    for number, labels in enumerate(LABELS):
        index.add(labels, number)
    for number, labels in reversed(list(enumerate(LABELS))):
        index.remove(labels, number)
        assert all(set(index.may_match(each)) <= set(range(number)) for each in SELECTORS.values())
    assert vars(index) == vars(LabelIndex())


@pytest.mark.parametrize("name", SELECTORS)
def test_removing_what_was_never_there_does_nothing(name: str) -> None:
    selectors: SelectorIndex[str] = SelectorIndex()
    selectors.remove(SELECTORS[name], name)
    assert vars(selectors) == vars(SelectorIndex())
