"""Classes of pods with equal labels, and indexes of selectors and labels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from policies.kubernetes.selectors import Labels, LabelSelector, equals_all, label_requirement
from policies.kubernetes.snapshot import AffinityTerm, HostPort, Pod
from policies.kubernetes.storage import ClaimVolume, PodStorage
from policies.preemption.columns.label_classes import (
    InternTable,
    LabelClasses,
    LabelIndex,
    PodTraits,
    SelectorIndex,
)
from tests.builders import host_port, pod

WEB, DB = LabelSelector(equals_all({"app": "web"})), LabelSelector(equals_all({"app": "db"}))


def web(name: str = "web", namespace: str = "default") -> Pod:
    return pod(name, labels={"app": "web"}, namespace=namespace)


def db(name: str = "db") -> Pod:
    return pod(name, labels={"app": "db"})


def term(selector: LabelSelector | None, key: str = "zone") -> AffinityTerm:
    return AffinityTerm(selector, frozenset(["default"]), None, key)


def claiming(by: Pod, *claims: str) -> Pod:
    return replace(by, storage=PodStorage(tuple(ClaimVolume(each) for each in claims)))


def anything(_: object) -> bool:
    return True


def names(pods: list[Pod | None]) -> list[str | None]:
    return [None if each is None else each.name for each in pods]


# Interned


def test_equal_keys_share_a_number_and_number_zero_is_unused() -> None:
    interned = InternTable(lambda each: each.priority)
    assert interned.acquire(pod("a", priority=7)) == (1, True)
    assert interned.acquire(pod("b", priority=7)) == (1, False)
    assert interned.acquire(pod("c", priority=8)) == (2, True)
    assert names(interned.samples) == [None, "a", "c"]


def test_a_number_is_free_when_its_last_user_releases_it() -> None:
    interned = InternTable(lambda each: each.priority)
    interned.acquire(pod("a", priority=7))
    interned.acquire(pod("b", priority=7))
    assert interned.release(1) is None
    assert interned.acquire(pod("c", priority=8)) == (2, True)
    gone = interned.release(1)
    assert gone is not None
    assert gone.priority == 7
    assert interned.acquire(pod("d", priority=9)) == (1, True)
    assert names(interned.samples) == [None, "d", "c"]


def test_a_released_key_is_new_when_it_is_acquired_again() -> None:
    interned = InternTable(lambda each: each.priority)
    interned.acquire(pod("a", priority=7))
    interned.release(1)
    assert interned.acquire(pod("b", priority=7)) == (1, True)
    assert names(interned.samples) == [None, "b"]


def test_numbers_are_reused() -> None:
    interned = InternTable(lambda each: each.name)
    for count in range(1000):
        number, new = interned.acquire(pod(f"pod-{count}"))
        assert (number, new) == (1, True)
        interned.release(number)
    assert len(interned) == 2
    assert names(interned.samples) == [None, None]


# Labels


def test_a_namespace_and_labels_make_a_class() -> None:
    classes = LabelClasses()
    assert classes.acquire(web("a")) == (1, True)
    assert classes.acquire(web("b")) == (1, False)
    assert classes.acquire(web("c", namespace="other")) == (2, True)
    assert classes.acquire(db()) == (3, True)


def test_a_lookup_combines_selector_and_predicate() -> None:
    classes = LabelClasses()
    for each in (web(), web("elsewhere", namespace="other"), db()):
        classes.acquire(each)
    in_default = classes.lookup(WEB, lambda each: each.namespace == "default")
    assert in_default.tolist() == [False, True, False, False]
    assert classes.lookup(LabelSelector(), anything).tolist() == [False, True, True, True]
    assert classes.lookup(None, anything).tolist() == [False] * 4


def test_a_lookup_of_a_selector_without_values_evaluates_every_class() -> None:
    classes = LabelClasses()
    for each in (web(), db(), pod("bare")):
        classes.acquire(each)
    selector = LabelSelector((label_requirement("app", "NotIn", ["web"]),))
    found = classes.lookup(selector, lambda each: selector.matches(each.labels))
    assert found.tolist() == [False, False, True, True]


def test_lookups_follow_a_reused_number() -> None:
    classes = LabelClasses()
    classes.acquire(web())
    assert classes.release(1)
    assert classes.lookup(WEB, anything).tolist() == [False, False]
    assert classes.acquire(db()) == (1, True)
    assert classes.lookup(WEB, anything).tolist() == [False, False]
    assert classes.lookup(DB, anything).tolist() == [False, True]


def test_released_classes_leave_no_labels() -> None:
    classes = LabelClasses()
    for count in range(100):
        number, _ = classes.acquire(pod(labels={"unique": str(count)}))
        assert classes.release(number)
    assert len(classes) == 2
    assert list(classes.may_match(LabelSelector())) == []
    assert not any(vars(classes._index).values())


# Traits


def conflicting(traits: PodTraits, port: HostPort) -> list[bool]:
    return [bool(each) for each in traits.conflicting(lambda other: port in other.host_ports)]


def test_a_pod_without_traits_has_number_zero() -> None:
    traits = PodTraits()
    assert traits.acquire(web()) == 0
    traits.release(0)
    assert traits.acquire(pod(ports=[80])) == 1


def test_pods_with_the_same_ports_and_terms_share_a_number() -> None:
    traits = PodTraits()
    anti_affinity = (term(WEB),)
    assert traits.acquire(pod("a", ports=[80])) == 1
    assert traits.acquire(pod("b", ports=[80])) == 1
    assert traits.acquire(pod("c", ports=[80], anti_affinity=anti_affinity)) == 2
    assert traits.acquire(pod("d", anti_affinity=anti_affinity)) == 3
    assert conflicting(traits, host_port(80)) == [False, True, True, False]


def test_terms_are_counted_by_topology_key_and_number() -> None:
    traits = PodTraits()
    traits.acquire(pod("a", anti_affinity=(term(WEB), term(LabelSelector()), term(WEB, "host"))))
    traits.acquire(pod("b", anti_affinity=(term(DB), term(None))))
    found = traits.anti_affinity_counts({"app": "web"}, lambda each: each.selector is not None)
    assert {key: counts.tolist() for key, counts in found.items()} == {
        "zone": [0, 2, 0],
        "host": [0, 1, 0],
    }
    assert traits.anti_affinity_counts({"app": "web"}, lambda _: False) == {}


def test_volumes_are_counted_by_number() -> None:
    traits = PodTraits()
    assert traits.acquire(claiming(pod("a"), "data")) == 1
    assert traits.acquire(pod("b", ports=[80])) == 2
    assert traits.acquire(claiming(pod("c"), "data", "logs")) == 3
    assert traits.acquire(claiming(pod("d"), "data")) == 1
    assert traits.storage_counts(lambda storage: len(storage.volumes)).tolist() == [0, 1, 0, 2]
    traits.release(3)
    assert traits.acquire(pod("e", ports=[443])) == 3
    assert traits.storage_counts(lambda storage: len(storage.volumes)).tolist() == [0, 1, 0, 0]


def test_a_number_that_is_used_again_has_only_the_new_pods_traits() -> None:
    traits = PodTraits()
    assert traits.acquire(pod("a", ports=[80], anti_affinity=(term(WEB), term(WEB)))) == 1
    traits.release(1)
    assert traits.acquire(pod("b", ports=[443], anti_affinity=(term(DB),))) == 1
    assert conflicting(traits, host_port(80)) == [False, False]
    assert conflicting(traits, host_port(443)) == [False, True]
    assert traits.anti_affinity_counts({"app": "web"}, anything) == {}
    assert list(traits.anti_affinity_counts({"app": "db"}, anything)) == ["zone"]


def test_released_traits_leave_no_data() -> None:
    traits = PodTraits()
    pods = [
        claiming(
            pod(str(count), ports=[count], anti_affinity=(term(WEB), term(None, str(count)))),
            "data",
        )
        for count in range(1, 50)
    ]
    for number in [traits.acquire(each) for each in pods]:
        traits.release(number)
    assert not traits._with_ports
    assert not traits._with_storage
    assert not any(vars(traits._repelling).values())
    assert not traits._interned._number_of
    assert conflicting(traits, host_port(1)) == [False] * 50


# Indexes


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
def test_removed_selectors_leave_no_data(names: list[str], order: list[str]) -> None:
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


def test_removed_labels_leave_no_data() -> None:
    index: LabelIndex[int] = LabelIndex()
    for number, labels in enumerate(LABELS):
        index.add(labels, number)
    for number, labels in reversed(list(enumerate(LABELS))):
        index.remove(labels, number)
        assert all(set(index.may_match(each)) <= set(range(number)) for each in SELECTORS.values())
    assert vars(index) == vars(LabelIndex())


@pytest.mark.parametrize("name", SELECTORS)
def test_removing_an_unknown_entry_does_nothing(name: str) -> None:
    selectors: SelectorIndex[str] = SelectorIndex()
    selectors.remove(SELECTORS[name], name)
    assert vars(selectors) == vars(SelectorIndex())
