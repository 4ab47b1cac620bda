"""One engine on a cluster that changes: old decisions stay valid, new ones read the new state.

tests/policies/preemption/test_agreement.py compares single decisions with the reference engine's.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from policies import SchedulerRules, Snapshot
from policies.kubernetes.releases import NEWEST
from policies.preemption.filtering.status import Code, unresolvable
from policies.preemption.reference_engine import filter_nodes, filter_with_terminating_pods, preempt
from policies.preemption.vectorized import VectorizedEngine
from policies.testing.strategies import Cluster, rich_clusters
from tests.builders import budget, node, pod, snapshot
from tests.properties.engines import assert_agreement

RULES = SchedulerRules(NEWEST)
PREEMPTOR = pod("preemptor", cpu="1", priority=10)


def full(*names: str, priority: int = 0) -> Snapshot:
    """Return nodes of one core, each with one pod that uses all of it."""
    return snapshot(
        *(node(name, cpu="1") for name in names),
        *(pod(f"on-{name}", on=name, cpu="1", priority=priority) for name in names),
    )


# Decisions are values


@given(st.lists(rich_clusters(), min_size=2, max_size=3))
def test_a_decision_does_not_change_with_the_cluster(history: list[Cluster]) -> None:
    engine, pod = VectorizedEngine(RULES), history[0].preemptor
    first = history[0].snapshot
    filtered, decided = engine.filter_nodes(pod, first), engine.preempt(pod, first)
    for later in history[1:]:
        engine.preempt(later.preemptor, later.snapshot)
    engine.follow(Snapshot())
    assert filtered == filter_nodes(pod, first, RULES)
    assert decided == preempt(pod, first, RULES)
    assert [*decided.describe()] == [*preempt(pod, first, RULES).describe()]


def test_a_decision_does_not_change_when_its_nodes_move_to_other_rows() -> None:
    engine, first = VectorizedEngine(), full("n1", "n2", "n3")
    decided = engine.preempt(PREEMPTOR, first)
    engine.follow(full("n3", "n4", priority=11))
    assert sorted(decided.candidates) == ["n1", "n2", "n3"]
    assert decided.candidates["n1"].victims.pods == first.nodes["n1"].pods
    assert decided == preempt(PREEMPTOR, first)


def test_a_rejection_does_not_change_when_its_nodes_are_deleted() -> None:
    engine, first = VectorizedEngine(), full("n1", "n2", priority=11)
    decided = engine.preempt(PREEMPTOR, first)
    engine.follow(full("n3"))
    assert dict(decided.rejected) == {name: unresolvable(Code.NO_VICTIMS) for name in ("n1", "n2")}


# Snapshots


def test_an_engine_can_decide_on_an_unknown_snapshot() -> None:
    engine = VectorizedEngine()
    engine.follow(full("n1", "n2"))
    assert_agreement(PREEMPTOR, full("n2", "n3", priority=5), engine=engine)
    assert_agreement(PREEMPTOR, full("n1"), engine=engine)


def test_an_engine_can_decide_on_an_older_snapshot() -> None:
    engine, older, newer = VectorizedEngine(), full("n1", "n2"), full("n2", "n3", priority=11)
    for now in (older, newer, older, newer):
        assert_agreement(PREEMPTOR, now, engine=engine)


def test_an_engine_applies_a_list_of_changes() -> None:
    engine, first = VectorizedEngine(), full("n1", "n2", "n3")
    engine.follow(first)
    changed = full("n2", "n4", priority=11).nodes
    now = Snapshot({"n1": first.nodes["n1"], **changed})
    engine.follow(now, ["n2", "n3", "n4"])
    assert_agreement(PREEMPTOR, now, engine=engine)


def test_changes_are_followed_after_a_decision_on_another_snapshot() -> None:
    engine, first = VectorizedEngine(), full("n1", "n2", "n3")
    engine.follow(first)
    assert_agreement(PREEMPTOR, full("n1", "n4", priority=11), engine=engine)
    now = Snapshot({**first.nodes, "n2": full("n2", priority=11).nodes["n2"]})
    engine.follow(now, ["n2"])
    assert_agreement(PREEMPTOR, now, engine=engine)


def test_budgets_alone_may_change() -> None:
    engine = VectorizedEngine()
    base = snapshot(node("n1", cpu="1"), pod("web", on="n1", cpu="1", labels={"app": "web"}))
    for allowed in (1, 0):
        now = replace(base, budgets=(budget(match={"app": "web"}, allowed=allowed),))
        assert_agreement(PREEMPTOR, now, engine=engine)
        chosen = engine.preempt(PREEMPTOR, now).chosen
        assert chosen is not None
        assert chosen.victims.violations == 1 - allowed


def test_namespaces_alone_may_change() -> None:
    engine = VectorizedEngine(RULES)
    base = full("n1", "n2")
    for labels in ({}, {"team": "red"}):
        assert_agreement(PREEMPTOR, replace(base, namespaces={"default": labels}), engine=engine)


def test_in_a_cluster_without_nodes_no_pod_fits() -> None:
    engine = VectorizedEngine()
    assert_agreement(PREEMPTOR, Snapshot(), engine=engine)
    assert engine.filter_with_terminating_pods(PREEMPTOR, Snapshot(), ["n1"]).feasible == ()
    assert_agreement(PREEMPTOR, full("n1"), engine=engine)
    assert_agreement(PREEMPTOR, Snapshot(), engine=engine)


def test_nodes_without_pods_need_no_victims() -> None:
    now = snapshot(node("n1", cpu="1"), node("n2", cpu="0"))
    assert_agreement(PREEMPTOR, now)


def test_the_offered_nodes_may_be_none() -> None:
    now = full("n1", "n2")
    assert VectorizedEngine().filter_nodes(PREEMPTOR, now, []) == filter_nodes(
        PREEMPTOR, now, RULES, []
    )
    assert VectorizedEngine().preempt(PREEMPTOR, now, []) == preempt(PREEMPTOR, now, RULES, [])


def test_nodes_are_listed_in_the_order_of_the_snapshot_or_of_the_offers() -> None:
    engine = VectorizedEngine()
    engine.follow(snapshot(*map(node, ("n1", "n2", "n3"))))
    now = snapshot(*map(node, ("n4", "n3", "n2")))
    assert engine.filter_nodes(PREEMPTOR, now).feasible == ("n4", "n3", "n2")
    among = ["n2", "n4"]
    assert engine.filter_nodes(PREEMPTOR, now, among).feasible == ("n2", "n4")


# Many nodes: arrays grow, and rows are picked out of them


def test_decisions_follow_a_cluster_that_grows_and_shrinks() -> None:
    engine = VectorizedEngine()
    for count in (3, 40, 7, 100, 1):
        names = [f"n{number:03}" for number in range(count)]
        crowd = [
            pod(f"{name}-{n}", on=name, cpu="100m", priority=n % 12, labels={"app": str(n % 3)})
            for place, name in enumerate(names)
            for n in range(place % 20)
        ]
        budgets = [budget(str(n), match={"app": str(n)}, allowed=n) for n in range(3)]
        now = snapshot(*(node(name, cpu="1") for name in names), *crowd, *budgets)
        assert_agreement(PREEMPTOR, now, engine=engine)


# Terminating pods


def test_a_port_of_two_pods_is_free_once_one_of_them_terminates() -> None:
    asking = pod("asking", ports=[80])
    now = snapshot(
        node("n1"), pod("a", on="n1", ports=[80], terminating=True), pod("b", on="n1", ports=[80])
    )
    found = VectorizedEngine().filter_with_terminating_pods(asking, now, ["n1"])
    assert found == filter_with_terminating_pods(asking, now, RULES, ["n1"])
    assert found.feasible == ("n1",)
