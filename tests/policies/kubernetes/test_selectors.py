"""Label selectors, node selectors, taints and tolerations, as upstream matches them."""

from __future__ import annotations

import pytest

from policies.kubernetes.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Requirement,
    SelectorError,
    Toleration,
    equals_all,
    field_requirement,
    label_requirement,
    node_requirement,
    untolerated,
)
from tests.builders import taint, toleration

ZONE = {"zone": "a", "cores": "8"}


@pytest.mark.parametrize(
    ("operator", "key", "values", "matches"),
    [
        ("In", "zone", ["a", "b"], True),
        ("In", "zone", ["b"], False),
        ("In", "absent", ["a"], False),
        ("NotIn", "zone", ["a", "b"], False),
        ("NotIn", "zone", ["b"], True),
        ("NotIn", "absent", ["a"], True),
        ("Exists", "zone", [], True),
        ("Exists", "absent", [], False),
        ("DoesNotExist", "zone", [], False),
        ("DoesNotExist", "absent", [], True),
    ],
)
def test_label_requirements(operator: str, key: str, values: list[str], *, matches: bool) -> None:
    assert label_requirement(key, operator, values).matches(ZONE) is matches
    assert node_requirement(key, operator, values).matches(ZONE) is matches


def test_an_empty_value_is_a_value() -> None:
    assert label_requirement("role", "In", [""]).matches({"role": ""})
    assert not label_requirement("role", "In", [""]).matches({})


@pytest.mark.parametrize(
    ("operator", "bound", "label", "matches"),
    [
        ("Gt", "7", "8", True),
        ("Gt", "8", "8", False),
        ("Lt", "9", "8", True),
        ("Lt", "8", "8", False),
        ("Gt", "0", "-1", False),
        ("Gt", "7", "+8", True),
        ("Gt", "7", "0000000000000000000000008", True),
        ("Gt", "7", "eight", False),
        ("Lt", "7", "", False),
        ("Lt", "7", "1.5", False),
        ("Lt", "7", "1_0", False),
        ("Lt", "7", "٣", False),
        ("Gt", "7", "9223372036854775807", True),
        ("Gt", "7", "9223372036854775808", False),
    ],
)
def test_numeric_requirements_of_nodes(
    operator: str, bound: str, label: str, *, matches: bool
) -> None:
    requirement = node_requirement("cores", operator, [bound])
    assert requirement.matches({"cores": label}) is matches


@pytest.mark.parametrize("operator", ["Gt", "Lt"])
def test_a_numeric_requirement_fails_on_a_node_without_the_label(operator: str) -> None:
    assert not node_requirement("cores", operator, ["0"]).matches({})


@pytest.mark.parametrize(
    ("key", "operator", "values"),
    [
        ("zone", "Near", ["a"]),
        ("zone", "", ["a"]),
        ("zone", "in", ["a"]),
        ("zone", "In", []),
        ("zone", "NotIn", []),
        ("zone", "Exists", ["a"]),
        ("zone", "DoesNotExist", ["a"]),
        ("zone", "In", ["white space"]),
        ("zone", "In", ["-dash"]),
        ("zone", "In", ["a" * 64]),
        ("", "Exists", []),
        ("a b", "Exists", []),
        ("/name", "Exists", []),
        ("UPPER.case/name", "Exists", []),
        ("example.com/", "Exists", []),
        ("a" * 64, "Exists", []),
        (f"{'a' * 254}/name", "Exists", []),
    ],
)
def test_a_malformed_requirement_is_refused(key: str, operator: str, values: list[str]) -> None:
    with pytest.raises(SelectorError):
        label_requirement(key, operator, values)
    with pytest.raises(SelectorError):
        node_requirement(key, operator, values)


@pytest.mark.parametrize("key", ["a", "A-b_c.d", "example.com/name", f"{'a' * 63}", "9"])
def test_well_formed_keys(key: str) -> None:
    assert label_requirement(key, "Exists", []).matches({key: ""})


@pytest.mark.parametrize("values", [[], ["1", "2"], ["many"], ["1.5"]])
def test_numeric_requirements_need_exactly_one_integer(values: list[str]) -> None:
    with pytest.raises(SelectorError, match="integer"):
        node_requirement("cores", "Gt", values)


def test_label_selectors_have_no_numeric_operators() -> None:
    with pytest.raises(SelectorError, match="'Gt'"):
        label_requirement("cores", "Gt", ["1"])


def test_a_label_selector_requires_all_its_requirements() -> None:
    selector = LabelSelector(
        (Requirement("zone", "In", ("a",)), Requirement("cores", "In", ("4",)))
    )
    assert selector.matches({"zone": "a", "cores": "4"})
    assert not selector.matches(ZONE)


def test_an_empty_label_selector_matches_everything() -> None:
    assert LabelSelector().matches({})


def test_a_plain_map_requires_every_pair_without_validation() -> None:
    requirements = equals_all({"a b": "white space", "zone": "a"})
    assert all(each.matches({"a b": "white space", "zone": "a"}) for each in requirements)
    assert not all(each.matches({"zone": "a"}) for each in requirements)


def named(operator: str, name: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(fields=(field_requirement("metadata.name", operator, [name]),))


IN_ZONE_A = NodeSelectorTerm(labels=(Requirement("zone", "In", ("a",)),))
IN_ZONE_B = NodeSelectorTerm(labels=(Requirement("zone", "In", ("b",)),))


@pytest.mark.parametrize(
    ("terms", "matches"),
    [
        ((), False),
        ((NodeSelectorTerm(),), False),
        ((IN_ZONE_A,), True),
        ((IN_ZONE_B,), False),
        ((IN_ZONE_B, IN_ZONE_A), True),
        ((NodeSelectorTerm(), IN_ZONE_A), True),
        ((named("In", "node-1"),), True),
        ((named("In", "node-2"),), False),
        ((named("NotIn", "node-1"),), False),
        ((named("NotIn", "node-2"),), True),
        ((NodeSelectorTerm(IN_ZONE_A.labels, named("In", "node-1").fields),), True),
        ((NodeSelectorTerm(IN_ZONE_B.labels, named("In", "node-1").fields),), False),
        ((NodeSelectorTerm(IN_ZONE_A.labels, named("In", "node-2").fields),), False),
    ],
)
def test_node_selectors_or_their_terms_and_and_their_requirements(
    terms: tuple[NodeSelectorTerm, ...], *, matches: bool
) -> None:
    assert NodeSelector(terms).matches("node-1", ZONE) is matches


def both(first: str, second: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(fields=(*named("In", first).fields, *named("In", second).fields))


@pytest.mark.parametrize(
    ("terms", "names"),
    [
        ((), None),
        ((IN_ZONE_A,), None),
        ((named("In", "node-1"),), {"node-1"}),
        ((named("NotIn", "node-1"),), None),
        ((named("In", "node-1"), named("In", "node-2")), {"node-1", "node-2"}),
        ((named("In", "node-1"), IN_ZONE_A), None),
        ((both("node-1", "node-1"),), {"node-1"}),
        ((both("node-1", "node-2"),), set()),
        ((both("node-1", "node-2"), named("In", "node-3")), {"node-3"}),
    ],
)
def test_terms_that_all_name_nodes_limit_the_nodes(
    terms: tuple[NodeSelectorTerm, ...], names: set[str] | None
) -> None:
    assert NodeSelector(terms).named() == names


@pytest.mark.parametrize(
    ("operator", "values"),
    [("Exists", []), ("Gt", ["1"]), ("In", []), ("In", ["a", "b"]), ("NotIn", [])],
)
def test_a_malformed_field_requirement_is_refused(operator: str, values: list[str]) -> None:
    with pytest.raises(SelectorError):
        field_requirement("metadata.name", operator, values)


@pytest.mark.parametrize(
    ("given", "tolerated"),
    [
        (toleration("gpu", "Equal", "yes", "NoSchedule"), True),
        (toleration("gpu", "", "yes", "NoSchedule"), True),
        (toleration("gpu", "Equal", "no", "NoSchedule"), False),
        (toleration("gpu", "Equal", "", "NoSchedule"), False),
        (toleration("gpu", "Exists", "", "NoSchedule"), True),
        (toleration("gpu", "Exists", "", ""), True),
        (toleration("gpu", "Exists", "", "NoExecute"), False),
        (toleration("cpu", "Exists", "", ""), False),
        (toleration("", "Exists", "", ""), True),
        (toleration("", "Exists", "", "NoSchedule"), True),
        (toleration("", "Equal", "yes", ""), True),
        (toleration("", "", "no", ""), False),
        (toleration("gpu", "Gt", "1", ""), False),
        (toleration("gpu", "Lt", "9", ""), False),
    ],
)
def test_tolerations(given: Toleration, *, tolerated: bool) -> None:
    assert given.tolerates(taint("gpu=yes:NoSchedule")) is tolerated


@pytest.mark.parametrize(
    ("operator", "bound", "value", "tolerated"),
    [
        ("Gt", "4", "5", True),
        ("Gt", "5", "5", False),
        ("Lt", "5", "5", False),
        ("Lt", "5", "-6", True),
        ("Lt", "1", "0", True),
        ("Gt", "", "5", False),
        ("Gt", "4", "", False),
        ("Gt", "4", "yes", False),
        ("Gt", "4", "+5", False),
        ("Gt", "04", "5", False),
        ("Lt", "1", "-0", False),
        ("Lt", "9223372036854775808", "5", False),
        ("Gt", "4", "9223372036854775808", False),
        ("Gt", "4", "9223372036854775807", True),
    ],
)
def test_numeric_tolerations_compare_canonical_integers(
    operator: str, bound: str, value: str, *, tolerated: bool
) -> None:
    given = toleration("age", operator, bound)
    assert given.tolerates(taint(f"age={value}:NoSchedule")) is tolerated


def test_the_first_taint_that_forbids_and_is_not_tolerated_is_the_one_named() -> None:
    taints = [
        taint("soft=x:PreferNoSchedule"),
        taint("gpu=yes:NoSchedule"),
        taint("disk=slow:NoSchedule"),
        taint("dying:NoExecute"),
    ]
    assert untolerated(taints, []) == taints[1]
    assert untolerated(taints, [toleration("gpu", "Exists")]) == taints[2]
    spared = [toleration("gpu", "Exists"), toleration("disk", "Exists")]
    assert untolerated(taints, spared) == taints[3]
    assert untolerated(taints, [toleration(operator="Exists")]) is None
