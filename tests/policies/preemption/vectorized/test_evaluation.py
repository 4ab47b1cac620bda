"""Pods and rows that columns cannot represent are evaluated by the reference engine."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from policies import SchedulerRules
from policies.kubernetes.releases import RELEASES, Release
from policies.kubernetes.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    SpreadConstraint,
    equals_all,
)
from policies.kubernetes.snapshot import Pod, Resources
from policies.preemption.filtering import node_affinity
from policies.preemption.filtering.status import Code, unresolvable
from policies.preemption.vectorized import VectorizedEngine
from tests.builders import node, on_nodes, pod, snapshot
from tests.properties.engines import assert_agreement

every_release = pytest.mark.parametrize("release", RELEASES.values(), ids=list(RELEASES))
ON_N1 = on_nodes("n1")


def asking(memory: int = 0, **fields: object) -> Pod:
    requests = Resources(memory=memory)
    return replace(pod("asking", priority=5), requests=requests, **fields)


# Limits


@every_release
def test_a_node_that_is_not_named_is_not_examined(release: Release) -> None:
    now = snapshot(node("n1"), node("n2"))
    daemon = asking(node_affinity=ON_N1)
    assert_agreement(daemon, now, SchedulerRules(release))
    found = VectorizedEngine(SchedulerRules(release)).filter_nodes(daemon, now).rejected
    assert found == {"n2": unresolvable(Code.NOT_EXAMINED, "NodeAffinity")}


@every_release
def test_the_nominated_node_is_examined_whatever_the_pod_names(release: Release) -> None:
    now = snapshot(node("n1"), node("n2"), node("n3"))
    daemon = asking(node_affinity=ON_N1, nominated_node="n2")
    assert_agreement(daemon, now, SchedulerRules(release))
    found = VectorizedEngine(SchedulerRules(release)).filter_nodes(daemon, now).rejected
    assert found["n2"] == node_affinity.REFUSAL
    assert_agreement(replace(daemon, nominated_node="unknown"), now, SchedulerRules(release))


@every_release
def test_a_cordoned_node_with_another_name_is_refused_by_the_first_filter(release: Release) -> None:
    now = snapshot(node("n1"), node("n2", unschedulable=True))
    assert_agreement(asking(node_name="n1", nominated_node="n2"), now, SchedulerRules(release))


@every_release
def test_a_pod_that_names_its_node_limits_where_the_release_does(release: Release) -> None:
    now = snapshot(node("n1"), node("n2"), node("n3"))
    assert_agreement(asking(node_name="n1"), now, SchedulerRules(release))
    assert_agreement(
        asking(node_name="n1", nominated_node="n2", node_affinity=ON_N1),
        now,
        SchedulerRules(release),
    )


def test_a_contradictory_pod_fits_nowhere() -> None:
    both = ON_N1.terms[0].fields + on_nodes("n2").terms[0].fields
    contradiction = NodeSelector((NodeSelectorTerm(fields=both),))
    assert_agreement(asking(node_affinity=contradiction), snapshot(node("n1"), node("n2")))


# Amounts out of all range


@pytest.mark.parametrize("count", [54, 55, 56, 57, 62, 63, 64, 100])
@every_release
def test_a_pod_may_request_any_number_of_resources(count: int, release: Release) -> None:
    others = {f"example.com/{number:03}": "1" for number in range(count)}
    last = {f"example.com/{count - 1:03}": "1"}
    now = snapshot(
        node("n1"), node("n2", others=others), pod("a", on="n2", others=last), node("n3")
    )
    assert_agreement(pod("asking", priority=5, others=others), now, SchedulerRules(release))


@pytest.mark.parametrize("memory", [-(2**70), -(2**45), -1, 2**52, 2**52 + 1, 2**70])
def test_a_nominated_pod_may_request_any_amount(memory: int) -> None:
    nominated = replace(asking(memory), name="b", uid="b", priority=9, nominated_node="n1")
    assert_agreement(asking(2**40), snapshot(node("n1", memory="0"), nominated))
    assert_agreement(
        asking(2**30), snapshot(node("n1"), nominated, pod("c", on="n1", memory="900Gi"))
    )


@pytest.mark.parametrize("memory", [-(2**70), -1, 2**52, 2**52 + 1, 2**70])
def test_any_pod_may_request_any_amount(memory: int) -> None:
    odd = replace(asking(memory), name="b", uid="b", priority=0, node_name="n1")
    now = snapshot(node("n1"), node("n2"), odd, pod("c", on="n1", memory="1Ti"))
    assert_agreement(asking(2**40), now)
    assert_agreement(asking(memory), now)


@pytest.mark.parametrize("skew", [-(2**70), 0, 2**31 - 1, 2**63 - 1, 2**70])
@pytest.mark.parametrize("domains", [1, 2**70])
def test_a_skew_may_have_any_value(skew: int, domains: int) -> None:
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
    assert_agreement(pod("asking", cpu="1", priority=5, labels=web, spread=(constraint,)), now)
