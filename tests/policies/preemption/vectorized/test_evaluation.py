"""What columns cannot answer goes to the reference engine: whole pods, or rows by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from policies import SchedulerRules, Snapshot
from policies.kubernetes.releases import RELEASES, Release
from policies.kubernetes.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    equals_all,
    field_requirement,
)
from policies.kubernetes.snapshot import Pod, Resources, SpreadConstraint
from policies.preemption.filtering import node_affinity
from policies.preemption.filtering.status import Code, unresolvable
from policies.preemption.reference_engine import filter_nodes, preempt
from policies.preemption.vectorized import VectorizedEngine
from tests.builders import node, pod, snapshot

every_release = pytest.mark.parametrize("release", RELEASES.values(), ids=list(RELEASES))
ON_N1 = NodeSelector(
    (NodeSelectorTerm(fields=(field_requirement("metadata.name", "In", ["n1"]),)),)
)


def agree(asking: Pod, now: Snapshot, release: Release | None = None) -> None:
    rules = SchedulerRules() if release is None else SchedulerRules(release)
    assert VectorizedEngine(rules).filter_nodes(asking, now) == filter_nodes(asking, now, rules)
    assert VectorizedEngine(rules).preempt(asking, now) == preempt(asking, now, rules)


def asking(memory: int = 0, **fields: object) -> Pod:
    requests = Resources(memory=memory)
    return replace(pod("asking", priority=5), requests=requests, **fields)  # type: ignore[arg-type]


# Limits


@every_release
def test_a_node_that_is_not_named_is_not_examined(release: Release) -> None:
    now = snapshot(node("n1"), node("n2"))
    daemon = asking(node_affinity=ON_N1)
    agree(daemon, now, release)
    found = VectorizedEngine(SchedulerRules(release)).filter_nodes(daemon, now).rejected
    assert found == {"n2": unresolvable(Code.NOT_EXAMINED, "NodeAffinity")}


@every_release
def test_the_nominated_node_is_examined_whatever_the_pod_names(release: Release) -> None:
    now = snapshot(node("n1"), node("n2"), node("n3"))
    daemon = asking(node_affinity=ON_N1, nominated_node="n2")
    agree(daemon, now, release)
    found = VectorizedEngine(SchedulerRules(release)).filter_nodes(daemon, now).rejected
    assert found["n2"] == node_affinity.REFUSAL
    agree(replace(daemon, nominated_node="unknown"), now, release)


@every_release
def test_a_pod_that_names_its_node_limits_where_the_release_does(release: Release) -> None:
    now = snapshot(node("n1"), node("n2"), node("n3"))
    agree(asking(node_name="n1"), now, release)
    agree(asking(node_name="n1", nominated_node="n2", node_affinity=ON_N1), now, release)


def test_a_pod_that_contradicts_itself_fits_nowhere() -> None:
    both = (*ON_N1.terms[0].fields, field_requirement("metadata.name", "In", ["n2"]))
    contradiction = NodeSelector((NodeSelectorTerm(fields=both),))
    agree(asking(node_affinity=contradiction), snapshot(node("n1"), node("n2")))


# Amounts out of all range


@pytest.mark.parametrize("count", [54, 55, 56, 57, 62, 63, 64, 100])
@every_release
def test_a_pod_may_ask_for_any_number_of_resources(count: int, release: Release) -> None:
    others = {f"example.com/{number:03}": "1" for number in range(count)}
    last = {f"example.com/{count - 1:03}": "1"}
    now = snapshot(
        node("n1"), node("n2", others=others), pod("a", on="n2", others=last), node("n3")
    )
    agree(pod("asking", priority=5, others=others), now, release)


@pytest.mark.parametrize("memory", [-(2**70), -(2**45), -1, 2**52, 2**52 + 1, 2**70])
def test_a_pod_that_is_promised_to_a_node_may_ask_for_any_amount(memory: int) -> None:
    promised = replace(asking(memory), name="b", uid="b", priority=9, nominated_node="n1")
    agree(asking(2**40), snapshot(node("n1", memory="0"), promised))
    agree(asking(2**30), snapshot(node("n1"), promised, pod("c", on="n1", memory="900Gi")))


@pytest.mark.parametrize("memory", [-(2**70), -1, 2**52, 2**52 + 1, 2**70])
def test_any_pod_may_ask_for_any_amount(memory: int) -> None:
    odd = replace(asking(memory), name="b", uid="b", priority=0, node_name="n1")
    now = snapshot(node("n1"), node("n2"), odd, pod("c", on="n1", memory="1Ti"))
    agree(asking(2**40), now)
    agree(asking(memory), now)


@pytest.mark.parametrize("skew", [-(2**70), 0, 2**31 - 1, 2**63 - 1, 2**70])
@pytest.mark.parametrize("domains", [1, 2**70])
def test_a_skew_may_be_of_any_size(skew: int, domains: int) -> None:
    web = {"app": "web"}
    selector = LabelSelector(equals_all(web))
    constraint = SpreadConstraint(skew, "zone", selector, min_domains=domains)
    now = snapshot(
        node("n1", cpu="1", labels={"zone": "a"}),
        node("n2", cpu="1", labels={"zone": "b"}),
        node("n3", cpu="1"),
        pod("a", on="n1", cpu="1", labels=web),
        pod("b", on="n2", cpu="1"),
    )
    agree(pod("asking", cpu="1", priority=5, labels=web, spread=(constraint,)), now)
