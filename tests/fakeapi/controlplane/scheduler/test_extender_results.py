"""Results of valid extender responses, as kube-scheduler takes them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from fakeapi.controlplane.scheduler.extender_results import (
    ExtenderVictims,
    check_filter,
    check_victims,
    find_victims,
)
from fakeapi.controlplane.scheduler.extender_v1 import (
    DecodedFilterResult,
    DecodedMetaVictims,
    ExtenderResponseError,
)
from policies.preemption.decision import VictimSet
from tests.builders import node, pod, snapshot

SENT = ("a", "b", "c")

FILTERED: dict[
    str, tuple[DecodedFilterResult, bool, tuple[str, ...], dict[str, str], list[str]]
] = {
    "all pass": (DecodedFilterResult(names=SENT), True, SENT, {}, []),
    "the answer's order counts": (
        DecodedFilterResult(names=("c", "a", "b")),
        True,
        ("c", "a", "b"),
        {},
        [],
    ),
    "reasons": (
        DecodedFilterResult(("a",), failed={"b": "full"}, unresolvable={"c": "broken"}),
        True,
        ("a",),
        {"b": "full?", "c": "broken"},
        [],
    ),
    "the unresolvable reason counts": (
        DecodedFilterResult(("a", "b"), failed={"c": "full"}, unresolvable={"c": "broken"}),
        True,
        ("a", "b"),
        {"c": "broken"},
        ["failed and unresolvable; the latter counts: c"],
    ),
    "left out without a reason": (
        DecodedFilterResult(names=("b",)),
        True,
        ("b",),
        {},
        ["left out without a reason, so preemption skips: a, c"],
    ),
    "neither names nor nodes": (
        DecodedFilterResult(),
        True,
        (),
        {},
        ["left out without a reason, so preemption skips: a, b, c"],
    ),
    "nodes from one that was sent names": (DecodedFilterResult(nodes=SENT), True, SENT, {}, []),
    "names from one that was sent nodes": (
        DecodedFilterResult(names=SENT),
        False,
        (),
        {},
        ["left out without a reason, so preemption skips: a, b, c"],
    ),
    "nodes that were not sent are taken": (
        DecodedFilterResult(nodes=(*SENT, "z")),
        False,
        (*SENT, "z"),
        {},
        ["not among the nodes sent: z"],
    ),
    "names count where there are nodes, too": (
        DecodedFilterResult(names=(), nodes=SENT, failed=dict.fromkeys(SENT, "full")),
        True,
        (),
        dict.fromkeys(SENT, "full?"),
        [],
    ),
    "kept and refused": (
        DecodedFilterResult(names=SENT, failed={"a": "full"}),
        True,
        SENT,
        {"a": "full?"},
        ["kept, and refused: a"],
    ),
    "named twice": (
        DecodedFilterResult(names=(*SENT, "a")),
        True,
        (*SENT, "a"),
        {},
        ["named more than once: a"],
    ),
}
"""Answer, nodeCacheCapable → nodes left, statuses (``?``: eviction may help), notes."""


@pytest.mark.parametrize("name", FILTERED)
def test_filter_results(name: str) -> None:
    answer, cached, left, statuses, notes = FILTERED[name]
    found = check_filter(answer, SENT, "http://x", cached=cached)
    shown = {n: f"{why}{'?' if why.resolvable else ''}" for n, why in found.statuses.items()}
    assert (found.left, shown, list(found.notes)) == (left, statuses, notes)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (DecodedFilterResult(names=SENT, error="out of order"), "out of order"),
        (
            DecodedFilterResult(names=("a", "z")),
            (
                'extender "http://x" claims a filtered node "z" which is not found in the input '
                "node list"
            ),
        ),
    ],
)
def test_invalid_filter_results(answer: DecodedFilterResult, problem: str) -> None:
    with pytest.raises(ExtenderResponseError) as caught:
        check_filter(answer, SENT, "http://x", cached=True)
    assert str(caught.value) == problem


VIP = pod("vip", priority=100)
CLUSTER = snapshot(
    node("a"),
    node("b"),
    pod("low", on="a", priority=1),
    pod("lower", on="a", priority=0),
    pod("equal", on="a", priority=100),
    pod("other", on="b", priority=1),
)
OFFERED = {"a": VictimSet((CLUSTER.nodes["a"].pods[0],))}


def victims_of(**nodes: tuple[str, ...]) -> ExtenderVictims:
    """Return the victims that an answer with these UIDs means."""
    answer = {name: DecodedMetaVictims(uids, 3) for name, uids in nodes.items()}
    return find_victims(answer, VIP, CLUSTER, "http://x")


def test_victims_are_found_by_uid_and_pdb_violations_are_accepted() -> None:
    victims = victims_of(a=("low", "lower"), b=("other",))
    assert {n: [p.name for p in v.pods] for n, v in victims.by_node.items()} == {
        "a": ["low", "lower"],
        "b": ["other"],
    }
    assert (victims.by_node["a"].violations, victims.notes) == (3, ())


NOT_FOUND = [
    ({"z": ("low",)}, 'nodeinfo not found for node name "z"'),
    (
        {"a": ("low", "other")},
        (
            "extender: http://x claims to preempt pod (UID: &{other}) on node: a, but the pod is "
            "not found on that node"
        ),
    ),
]


@pytest.mark.parametrize(("nodes", "problem"), NOT_FOUND)
def test_missing_victims_are_errors(nodes: Mapping[str, tuple[str, ...]], problem: str) -> None:
    with pytest.raises(ExtenderResponseError) as caught:
        victims_of(**nodes)
    assert str(caught.value) == problem


def test_silently_accepted_mistakes_are_noted() -> None:
    victims = victims_of(a=("lower", "equal"))
    assert victims.notes == (
        (
            "victim default/equal on node a has priority 100, not below the preemptor's 100; "
            "kube-scheduler deletes it all the same"
        ),
        (
            "the first victim on node a is not the most important; kube-scheduler takes its "
            "priority for the highest"
        ),
    )
    beyond = check_victims(victims_of(b=("other",)), OFFERED, (), ignorable=False)
    assert beyond.notes == ("node b was not offered; kube-scheduler takes it",)


def test_a_node_without_victims_is_an_error() -> None:
    with pytest.raises(ExtenderResponseError, match='expected at least one victim pod on node "a"'):
        check_victims(victims_of(a=()), OFFERED, (), ignorable=False)


def test_a_node_without_victims_is_dropped_if_the_extender_is_ignorable() -> None:
    checked = check_victims(victims_of(a=(), b=("other",)), OFFERED, (), ignorable=True)
    assert list(checked.by_node) == ["b"]
    assert checked.notes[0] == "node a is dropped, since it has no victims"


def test_a_node_that_was_sent_without_victims_is_passed_on() -> None:
    checked = check_victims(victims_of(a=()), {"a": VictimSet(())}, {"a"}, ignorable=False)
    assert checked.by_node == {"a": VictimSet((), 3)}
