"""PodTopologySpread: counts by domain, the emptiest domain, and victims that change them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from policies import SchedulerRules, decide_filter, decide_preemption
from policies.kubernetes.releases import release
from policies.kubernetes.selectors import LabelSelector, SpreadConstraint, equals_all
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.filtering import filters_named
from tests.builders import node, pod, snapshot, toleration

RULES = SchedulerRules(filters=filters_named(["PodTopologySpread"]))
WEB = {"app": "web"}
SKEWED = "node(s) didn't match pod topology spread constraints"
NO_LABEL = f"{SKEWED} (missing required label)"


def spread(
    max_skew: int = 1, key: str = "zone", match: Mapping[str, str] | None = None, **policies: object
) -> SpreadConstraint:
    """Build a constraint for pods labelled ``match`` (by default web; {} is an empty selector)."""
    selector = LabelSelector(equals_all(WEB if match is None else match))
    return SpreadConstraint(max_skew, key, selector, **policies)  # type: ignore[arg-type]


def cluster(a: int = 0, b: int = 0, c: int = 0, *others: Pod) -> Snapshot:
    """Build a node in each of three zones with this many web pods, and one without a zone."""
    counts = {"a": a, "b": b, "c": c}
    return snapshot(
        *(node(name, labels={"zone": name, "host": name}) for name in counts),
        node("bare"),
        *(
            pod(f"{zone}-{index}", on=zone, labels=WEB)
            for zone, count in counts.items()
            for index in range(count)
        ),
        *others,
    )


def fits(preemptor: Pod, moment: Snapshot, rules: SchedulerRules = RULES) -> str:
    """Return the names of the nodes that the pod fits, as one text."""
    return " ".join(sorted(decide_filter(preemptor, moment, rules).feasible))


CASES = {
    "a further one may join the emptiest zone": (
        pod(labels=WEB, spread=(spread(),)),
        (3, 1, 2),
        "b",
    ),
    "equal zones are all open": (pod(labels=WEB, spread=(spread(),)), (2, 2, 2), "a b c"),
    "a larger skew opens more": (pod(labels=WEB, spread=(spread(2),)), (3, 1, 2), "b c"),
    "a pod that is not counted itself may also even out": (
        pod(spread=(spread(),)),
        (3, 1, 2),
        "b c",
    ),
    "with too few domains the emptiest counts as empty": (
        pod(labels=WEB, spread=(spread(2, min_domains=4),)),
        (2, 1, 1),
        "b c",
    ),
    "with enough domains it does not": (
        pod(labels=WEB, spread=(spread(2, min_domains=3),)),
        (2, 1, 1),
        "a b c",
    ),
    "every constraint must hold": (
        pod(labels=WEB, spread=(spread(5), spread(1, "host"))),
        (3, 1, 2),
        "b",
    ),
    "an empty selector counts only the pod": (
        pod(labels=WEB, spread=(spread(match={}),)),
        (3, 1, 2),
        "a b c",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_constraints_decide_where_a_pod_fits(case: str) -> None:
    preemptor, counts, expected = CASES[case]
    assert fits(preemptor, cluster(*counts)) == expected


def test_an_absent_selector_counts_no_pods() -> None:
    constraint = SpreadConstraint(1, "zone", None)
    assert fits(pod(labels=WEB, spread=(constraint,)), cluster(3, 1, 2)) == "a b c"


def test_a_node_without_the_label_is_unresolvable_and_a_skewed_one_is_not() -> None:
    rejected = decide_filter(pod(labels=WEB, spread=(spread(),)), cluster(1), RULES).rejected
    assert {name: (str(each), each.resolvable) for name, each in rejected.items()} == {
        "a": (SKEWED, True),
        "bare": (NO_LABEL, False),
    }


def test_terminating_pods_and_other_namespaces_are_not_counted() -> None:
    moment = cluster(
        0,
        0,
        0,
        pod("going", on="a", labels=WEB, terminating=True),
        pod("theirs", on="b", labels=WEB, namespace="other"),
    )
    assert fits(pod(labels=WEB, spread=(spread(),)), moment) == "a b c"


class TestCountedNodes:
    """Without zone c, b is the emptiest zone, and a has its maximum of pods."""

    def test_by_default_domains_are_those_that_the_affinity_allows(self) -> None:
        asking = pod(labels=WEB, spread=(spread(2),), node_selector=equals_all({"disk": "ssd"}))
        assert fits(asking, disks()) == "a b c"

    def test_all_domains_count_if_affinity_is_ignored(self) -> None:
        constraint = spread(2, honors_affinity=False)
        asking = pod(labels=WEB, spread=(constraint,), node_selector=equals_all({"disk": "ssd"}))
        assert fits(asking, disks()) == "b c"

    def test_taints_are_ignored_by_default(self) -> None:
        assert fits(pod(labels=WEB, spread=(spread(2),)), tainted()) == "b c"

    def test_taints_can_be_honoured(self) -> None:
        constraint = spread(2, honors_taints=True)
        assert fits(pod(labels=WEB, spread=(constraint,)), tainted()) == "a b c"

    def test_tolerated_taints_do_not_exclude_a_domain(self) -> None:
        asking = pod(
            labels=WEB,
            spread=(spread(2, honors_taints=True),),
            tolerations=(toleration(operator="Exists"),),
        )
        assert fits(asking, tainted()) == "b c"

    @pytest.mark.parametrize(("enabled", "fitting"), [(False, "a b c"), (True, "b c")])
    def test_numeric_tolerations_count_only_with_their_gate(
        self, *, enabled: bool, fitting: str
    ) -> None:
        asking = pod(
            labels=WEB,
            spread=(spread(2, honors_taints=True),),
            tolerations=(toleration("age", "Gt", "4"),),
        )
        gates = {"TaintTolerationComparisonOperators": enabled}
        rules = replace(RULES, release=release("1.37", gates))
        assert fits(asking, tainted("age=5:NoSchedule"), rules) == fitting


def disks() -> Snapshot:
    return snapshot(
        node("a", labels={"zone": "a", "disk": "ssd"}),
        node("b", labels={"zone": "b", "disk": "ssd"}),
        node("c", labels={"zone": "c", "disk": "hdd"}),
        *webs(),
    )


def tainted(taint: str = "gpu=yes:NoSchedule") -> Snapshot:
    return snapshot(
        node("a", labels={"zone": "a"}),
        node("b", labels={"zone": "b"}),
        node("c", labels={"zone": "c"}, taints=[taint]),
        *webs(),
    )


def webs() -> list[Pod]:
    return [
        *(pod(f"a-{index}", on="a", labels=WEB) for index in range(2)),
        pod("b-0", on="b", labels=WEB),
    ]


class TestPreemption:
    def victims(self, preemptor: Pod, moment: Snapshot, on: str) -> list[str]:
        found = decide_preemption(preemptor, moment, RULES, [on]).candidates.get(on)
        return [] if found is None else [each.name for each in found.victims.pods]

    def test_the_skew_decides_the_number_of_victims(self) -> None:
        preemptor = pod(priority=10, labels=WEB, spread=(spread(),))
        assert len(self.victims(preemptor, cluster(3, 1, 1), on="a")) == 2

    def test_pods_that_are_not_counted_are_no_victims(self) -> None:
        preemptor = pod(priority=10, labels=WEB, spread=(spread(),))
        moment = cluster(2, 1, 1, pod("batch", on="a"))
        assert "batch" not in self.victims(preemptor, moment, on="a")

    def test_eviction_from_the_emptiest_zone_lowers_the_minimum(self) -> None:
        # Only zone a is tried; its own count is what the minimum then becomes.
        preemptor = pod(priority=10, labels=WEB, spread=(spread(),))
        assert self.victims(preemptor, cluster(1, 1, 1), on="a") == []

    def test_a_terminating_pod_that_was_never_counted_still_lowers_the_count(self) -> None:
        # Zone a counts 2; removing the terminating pod as well makes it 0, so that putting back
        # the two counted ones in turn fits only once: upstream's own arithmetic.
        going = pod("going", on="a", labels=WEB, terminating=True, priority=-1)
        preemptor = pod(priority=10, labels=WEB, spread=(spread(),))
        moment = cluster(2, 0, 0, going)
        assert self.victims(preemptor, moment, on="a") == ["a-1", "going"]


def test_an_assumed_victim_counts_until_it_terminates() -> None:
    web = pod("web", on="a", labels=WEB, assumed_victim=True)
    assert fits(pod(labels=WEB, spread=(spread(),)), cluster(0, 0, 0, web)) == "b c"
    gone = pod("web", on="a", labels=WEB, terminating=True)
    assert fits(pod(labels=WEB, spread=(spread(),)), cluster(0, 0, 0, gone)) == "a b c"


def test_a_terminating_victim_may_not_help() -> None:
    """Its removal lowers a count that never included it, so the pod does not fit in fact."""

    def moment(*others: Pod) -> Snapshot:
        keeper = pod("keeper", on="a", labels=WEB, priority=50)
        return snapshot(node("a", cpu="1", labels={"zone": "a"}), keeper, *others)

    vip = pod("vip", cpu="1", labels=WEB, priority=9, spread=(spread(min_domains=2),))
    leaving = pod("leaving", on="a", cpu="1", labels=WEB, terminating=True)
    assert list(decide_preemption(vip, moment(leaving)).candidates) == ["a"]
    assert str(decide_filter(vip, moment()).rejected["a"]) == SKEWED
