"""What an engine keeps between questions changes none of its decisions."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec import structs

from policies.kubernetes.selectors import LabelSelector, SpreadConstraint, equals_all
from policies.kubernetes.snapshot import AffinityTerm, NodeState, Pod, Snapshot
from policies.preemption.vectorized import VectorizedEngine
from policies.preemption.vectorized.row_results import MOST_KINDS, KnownResults, kind_of
from policies.testing.strategies import (
    NAMESPACES,
    preemptors,
    residents,
    rich_budgets,
    rich_nodes,
    rich_residents,
)
from tests.builders import budget, node, pod, snapshot
from tests.properties.changing_clusters import ClusterState
from tests.properties.engines import assert_agreement

PLACES = ("n1", "n2", "n3", "n4", "n5")
_places = st.sampled_from(PLACES)
_numbers = st.integers(0, 15)


class ChangingCluster(RuleBasedStateMachine):
    """Questions of a few kinds about a cluster that changes between them."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = ClusterState()
        self.engine = VectorizedEngine()
        self.kinds: list[Pod] = []
        self.asked = count()

    @initialize(data=st.data(), kinds=st.lists(preemptors(PLACES), min_size=1, max_size=3))
    def fill(self, data: st.DataObject, kinds: list[Pod]) -> None:
        self.kinds = kinds
        self.cluster.nodes = {name: data.draw(rich_nodes(name)) for name in PLACES}
        self.cluster.pods = {n: data.draw(residents(n, PLACES)) for n in range(10)}
        self.cluster.namespaces = {name: {"team": "red"} for name in NAMESPACES}

    @rule(name=_places, data=st.data())
    def put_node(self, name: str, data: st.DataObject) -> None:
        self.cluster.nodes[name] = data.draw(rich_nodes(name))

    @rule(name=_places)
    def delete_node(self, name: str) -> None:
        self.cluster.nodes.pop(name, None)

    @rule(number=_numbers, data=st.data())
    def put_pod(self, number: int, data: st.DataObject) -> None:
        self.cluster.pods[number] = data.draw(rich_residents(number, PLACES))

    @rule(number=_numbers)
    def delete_pod(self, number: int) -> None:
        self.cluster.pods.pop(number, None)

    @rule(data=st.data(), number=st.integers(0, 3))
    def put_budgets(self, data: st.DataObject, number: int) -> None:
        drawn = (data.draw(rich_budgets(f"budget-{each}")) for each in range(number))
        self.cluster.budgets = tuple(drawn)

    @rule(allowed=st.integers(0, 2), place=st.integers(0, 2))
    def change_budget(self, allowed: int, place: int) -> None:
        self.cluster.budgets = tuple(
            replace(each, allowed=allowed) if number == place else each
            for number, each in enumerate(self.cluster.budgets)
        )

    @rule(name=st.sampled_from(NAMESPACES), team=st.sampled_from(["red", "blue"]))
    def label_namespace(self, name: str, team: str) -> None:
        self.cluster.namespaces = {**self.cluster.namespaces, name: {"team": team}}

    @rule(number=st.integers(20, 22), place=_places, kind=st.integers(0, 2))
    def nominate_one_of_a_kind(self, number: int, place: str, kind: int) -> None:
        preemptor = self.kinds[kind % len(self.kinds)]
        self.cluster.pods[number] = structs.replace(
            preemptor, name=f"asked-{number}", uid=f"asked-{number}", nominated_node=place
        )

    @rule(kind=st.integers(0, 2), number=st.integers(20, 25))
    def ask(self, kind: int, number: int) -> None:
        preemptor = self.kinds[kind % len(self.kinds)]
        preemptor = structs.replace(preemptor, name=f"asked-{number}", uid=f"asked-{number}")
        assert_agreement(preemptor, self.cluster.seen(), engine=self.engine)

    @rule(kind=st.integers(0, 2), names=st.sets(_places))
    def ask_about_some_nodes(self, kind: int, names: set[str]) -> None:
        preemptor, now = self.kinds[kind % len(self.kinds)], self.cluster.seen()
        among = sorted(names)
        fresh = VectorizedEngine()
        assert self.engine.filter_nodes(preemptor, now, among) == fresh.filter_nodes(
            preemptor, now, among
        )
        assert self.engine.preempt(preemptor, now, among, among) == fresh.preempt(
            preemptor, now, among, among
        )

    @invariant()
    def kinds_are_bounded(self) -> None:
        assert len(self.engine._known._kinds) <= MOST_KINDS


TestChangingCluster = ChangingCluster.TestCase


def test_the_kinds_that_were_asked_about_last_are_kept() -> None:
    known = KnownResults()
    kinds = [kind_of(pod(priority=each), {}, ()) for each in range(MOST_KINDS + 1)]
    first, *others = [known.of_kind(kind) for kind in kinds]
    assert known.of_kind(kinds[1]) is others[0]
    assert known.of_kind(kinds[0]) is not first


def test_pods_that_differ_in_what_no_filter_reads_are_of_one_kind() -> None:
    one = kind_of(pod("one", labels={"job": "1"}), {}, ())
    assert one == kind_of(pod("other", labels={"job": "2"}, nominated_node="n1"), {}, ())
    assert one != kind_of(pod("one", cpu="1"), {}, ())


APP, OTHER_APP = {"app": "a"}, {"app": "b"}
RED, BLUE = ({"default": {"team": team}} for team in ("red", "blue"))


def repelling(name: str, priority: int, app: dict[str, str], team: str) -> Pod:
    """Return a pod that repels an app of the namespaces of a team from its host."""
    namespaces = LabelSelector(equals_all({"team": team}))
    term = AffinityTerm(LabelSelector(equals_all(app)), frozenset(), namespaces, "host")
    return structs.replace(pod(name, on="n1", priority=priority), anti_affinity=(term,))


# On n1 one pod repels the preemptor each time, but only one of the two may be evicted.
BY_LABELS = [repelling("high", 9, APP, "red"), repelling("low", 1, OTHER_APP, "red")]
BY_TEAM = [repelling("high", 9, APP, "red"), repelling("low", 1, APP, "blue")]
SPREAD = structs.replace(
    pod("preemptor", labels=APP, cpu="1", priority=5),
    spread=(SpreadConstraint(1, "zone", LabelSelector(equals_all(APP))),),
)
ZONES = [
    node(name, labels={"host": name, "zone": zone}, cpu="4")
    for name, zone in zip(PLACES, "aabbb", strict=True)
]
TWO_MORE = [pod(f"more-{each}", on="n1", labels=APP, priority=9) for each in range(2)]

Question = tuple[Pod, Snapshot]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            (pod("one", priority=5, labels=APP), snapshot(*ZONES, *BY_LABELS, namespaces=RED)),
            (
                pod("two", priority=5, labels=OTHER_APP),
                snapshot(*ZONES, *BY_LABELS, namespaces=RED),
            ),
            id="other labels, which a term of another pod selects",
        ),
        pytest.param(
            (pod("one", priority=5, labels=APP), snapshot(*ZONES, *BY_TEAM, namespaces=RED)),
            (pod("one", priority=5, labels=APP), snapshot(*ZONES, *BY_TEAM, namespaces=BLUE)),
            id="other labels of the namespace",
        ),
        pytest.param(
            (SPREAD, snapshot(*ZONES)),
            (SPREAD, snapshot(*ZONES, *TWO_MORE)),
            id="more pods on other nodes of the zone",
        ),
    ],
)
def test_the_next_question_differs_from_the_first_one(first: Question, second: Question) -> None:
    engine, nodes = VectorizedEngine(), first[1].nodes
    kept = {
        name: nodes[name] if _are_equal(nodes[name], state) else state
        for name, state in second[1].nodes.items()
    }
    questions = first, (second[0], replace(second[1], nodes=kept))
    decisions = [engine.preempt(*each) for each in questions]
    assert decisions == [VectorizedEngine().preempt(*each) for each in questions]
    assert decisions[0].candidates != decisions[1].candidates or (
        decisions[0].rejected != decisions[1].rejected
    )


def _are_equal(one: NodeState, other: NodeState) -> bool:
    return (one.node, one.pods) == (other.node, other.pods)


def test_a_second_question_evaluates_only_the_row_that_changed() -> None:
    states = [node(name, cpu="4") for name in PLACES]
    before = snapshot(*states, *(pod(name, on=name, cpu="1") for name in PLACES))
    engine, preemptor = VectorizedEngine(), pod("preemptor", cpu="4", priority=5)
    engine.preempt(preemptor, before)
    changed = snapshot(states[0], pod("other", on="n1", cpu="2")).nodes
    after = replace(before, nodes={**before.nodes, **changed})
    engine.follow(after, ["n1"])
    results = engine._known._kinds[0][1]
    results.follow(engine._columns, (), np.zeros(0, np.int64))
    assert (~results.is_tried).nonzero()[0].tolist() == [engine._columns.index["n1"]]


def test_a_budget_that_changes_concerns_only_rows_with_its_pods() -> None:
    pods = [pod(name, on=name, labels={"app": name}) for name in PLACES]
    budgets = [budget(name, match={"app": name}, allowed=1) for name in PLACES]
    before = snapshot(*map(node, PLACES), *pods, *budgets)
    engine = VectorizedEngine()
    engine.follow(before, None)
    version = engine._columns.versions().max()
    after = replace(before, budgets=(replace(before.budgets[0], allowed=0), *before.budgets[1:]))
    engine.follow(after, [])
    changed = engine._columns.versions() > version
    assert [engine._columns.names[row] for row in changed.nonzero()[0]] == ["n1"]
