"""InterPodAffinity: affinity, anti-affinity, and victims that change them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from policies import SchedulerRules, decide_filter, decide_preemption
from policies.kubernetes.selectors import LabelSelector, equals_all
from policies.kubernetes.snapshot import AffinityTerm, Pod, Snapshot
from policies.preemption.filtering import filters_named
from tests.builders import node, pod, snapshot
from tests.properties.engines import fit_by_node, victims_by_node

RULES = SchedulerRules(filters=filters_named(["InterPodAffinity"]))
ZONE, HOST = "zone", "host"

NO_AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
REPELLED = "node(s) didn't satisfy existing pods anti-affinity rules"


def near(
    key: str = ZONE,
    *,
    namespaces: tuple[str, ...] = ("default",),
    namespace_labels: Mapping[str, str] | None = None,
    **labels: str,
) -> AffinityTerm:
    """Build a term for pods with ``labels`` within one value of ``key``."""
    selected = None if namespace_labels is None else LabelSelector(equals_all(namespace_labels))
    return AffinityTerm(LabelSelector(equals_all(labels)), frozenset(namespaces), selected, key)


def cluster(*pods: Pod, namespaces: Mapping[str, Mapping[str, str]] | None = None) -> Snapshot:
    """Build nodes a1 and a2 in zone a, b1 in zone b, and ``bare`` without labels."""
    return snapshot(
        node("a1", labels={ZONE: "a", HOST: "a1"}),
        node("a2", labels={ZONE: "a", HOST: "a2"}),
        node("b1", labels={ZONE: "b", HOST: "b1"}),
        node("bare"),
        *pods,
        namespaces=namespaces,
    )


def everywhere(reason: str, **others: str) -> dict[str, str]:
    return {**dict.fromkeys(("a1", "a2", "b1", "bare"), reason), **others}


DB = {"app": "db"}

CASES = {
    "without terms on either side it fits everywhere": (
        pod(),
        (pod("db", on="a1", labels=DB),),
        everywhere("fits"),
    ),
    "affinity requires the zone of a matching pod": (
        pod(affinity=(near(app="db"),)),
        (pod("db", on="a1", labels=DB),),
        everywhere("fits", b1=NO_AFFINITY, bare=NO_AFFINITY),
    ),
    "affinity by host requires the node itself": (
        pod(affinity=(near(HOST, app="db"),)),
        (pod("db", on="a1", labels=DB),),
        everywhere(NO_AFFINITY, a1="fits"),
    ),
    "one pod must match all affinity terms, not one for each": (
        pod(affinity=(near(app="db"), near(tier="front"))),
        (pod("db", on="a1", labels=DB), pod("front", on="a1", labels={"tier": "front"})),
        everywhere(NO_AFFINITY),
    ),
    "terms of two keys require the domains of both": (
        pod(affinity=(near(app="db"), near(HOST, app="db"))),
        (pod("db", on="a1", labels=DB),),
        everywhere(NO_AFFINITY, a1="fits"),
    ),
    "the first of a group may go wherever the label is": (
        pod(labels=DB, affinity=(near(app="db"),)),
        (),
        everywhere("fits", bare=NO_AFFINITY),
    ),
    "the second of a group must follow the first": (
        pod(labels=DB, affinity=(near(app="db"),)),
        (pod("db", on="b1", labels=DB),),
        everywhere(NO_AFFINITY, b1="fits"),
    ),
    "a match on a node without the label is in no domain and does not count": (
        pod(labels=DB, affinity=(near(app="db"),)),
        (pod("db", on="bare", labels=DB),),
        everywhere("fits", bare=NO_AFFINITY),
    ),
    "another namespace's pods do not count": (
        pod(affinity=(near(app="db"),)),
        (pod("db", on="a1", labels=DB, namespace="other"),),
        everywhere(NO_AFFINITY),
    ),
    "unless the term names it": (
        pod(affinity=(near(app="db", namespaces=("other",)),)),
        (pod("db", on="a1", labels=DB, namespace="other"),),
        everywhere("fits", b1=NO_AFFINITY, bare=NO_AFFINITY),
    ),
    "or selects it by its labels": (
        pod(affinity=(near(app="db", namespaces=(), namespace_labels={"team": "red"}),)),
        (pod("db", on="a1", labels=DB, namespace="other"),),
        everywhere("fits", b1=NO_AFFINITY, bare=NO_AFFINITY),
    ),
    "anti-affinity rejects the zone of a matching pod": (
        pod(anti_affinity=(near(app="db"),)),
        (pod("db", on="a1", labels=DB),),
        everywhere("fits", a1=ANTI_AFFINITY, a2=ANTI_AFFINITY),
    ),
    "any anti-affinity term is enough": (
        pod(anti_affinity=(near(app="none"), near(HOST, app="db"))),
        (pod("db", on="a1", labels=DB),),
        everywhere("fits", a1=ANTI_AFFINITY),
    ),
    "a pod that runs keeps others from its zone": (
        pod(labels=DB),
        (pod("repelling", on="a1", anti_affinity=(near(app="db"),)),),
        everywhere("fits", a1=REPELLED, a2=REPELLED),
    ),
    "but not pods that its term does not match": (
        pod(labels={"app": "web"}),
        (pod("repelling", on="a1", anti_affinity=(near(app="db"),)),),
        everywhere("fits"),
    ),
    "affinity is evaluated before anti-affinity": (
        pod(affinity=(near(app="db"),), anti_affinity=(near(app="db"),)),
        (pod("db", on="a1", labels=DB),),
        everywhere(NO_AFFINITY, a1=ANTI_AFFINITY, a2=ANTI_AFFINITY),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_terms_decide_where_a_pod_fits(case: str) -> None:
    preemptor, others, expected = CASES[case]
    moment = cluster(*others, namespaces={"other": {"team": "red"}})
    assert fit_by_node(preemptor, moment, RULES) == expected


@pytest.mark.parametrize(
    ("preemptor", "resolvable"),
    [
        (pod(affinity=(near(app="none"),)), False),
        (pod(anti_affinity=(near(app="db"),)), True),
        (pod(labels={"app": "web"}), True),
    ],
)
def test_only_missing_affinity_is_not_resolvable(preemptor: Pod, *, resolvable: bool) -> None:
    moment = cluster(pod("db", on="a1", labels=DB, anti_affinity=(near(app="web"),)))
    assert decide_filter(preemptor, moment, RULES).rejected["a1"].resolvable is resolvable


def test_anti_affinity_of_a_nominated_pod_counts_if_the_filter_runs() -> None:
    nominated = pod(
        "nominated", priority=5, nominated_node="a1", labels=DB, anti_affinity=(near(app="db"),)
    )
    asking = pod(labels=DB, anti_affinity=(near(app="web"),))
    assert fit_by_node(asking, cluster(nominated), RULES)["a1"] == REPELLED
    # Upstream skips the filter before it looks at nominated pods.
    assert fit_by_node(pod(labels=DB), cluster(nominated), RULES)["a1"] == "fits"


class TestPreemption:
    def test_only_the_pod_in_the_way_is_a_victim(self) -> None:
        preemptor = pod(priority=10, anti_affinity=(near(HOST, app="db"),))
        moment = cluster(pod("db", on="a1", labels=DB), pod("web", on="a1", labels={"app": "web"}))
        decision = decide_preemption(preemptor, moment, RULES, ["a1"])
        candidate = decision.candidates["a1"]
        assert [each.name for each in candidate.victims.pods] == ["db"]
        assert [each.name for each in candidate.spared] == ["web"]

    def test_a_pod_elsewhere_in_the_zone_is_no_victim(self) -> None:
        preemptor = pod(priority=10, anti_affinity=(near(app="db"),))
        moment = cluster(pod("db", on="a1", labels=DB), pod("web", on="a2"))
        decision = decide_preemption(preemptor, moment, RULES, ["a2"])
        assert str(decision.rejected["a2"]) == ANTI_AFFINITY

    def test_a_repelling_pod_is_a_victim_too(self) -> None:
        moment = cluster(pod("repelling", on="a1", anti_affinity=(near(app="db"),)))
        decision = decide_preemption(pod(priority=10, labels=DB), moment, RULES, ["a1"])
        assert [each.name for each in decision.candidates["a1"].victims.pods] == ["repelling"]

    def test_a_pod_that_affinity_requires_is_no_victim(self) -> None:
        preemptor = pod(priority=10, affinity=(near(HOST, app="db"),))
        moment = cluster(pod("db", on="a1", labels=DB))
        decision = decide_preemption(preemptor, moment, RULES, ["a1"])
        assert str(decision.rejected["a1"]) == NO_AFFINITY

    def test_a_dry_run_on_one_node_does_not_change_the_counts_of_the_next(self) -> None:
        preemptor = pod(priority=10, anti_affinity=(near(app="db"),))
        moment = cluster(pod("db-a", on="a1", labels=DB), pod("db-b", on="b1", labels=DB))
        decision = decide_preemption(preemptor, moment, RULES, ["a1", "b1"])
        assert victims_by_node(decision) == {"a1": ["db-a"], "b1": ["db-b"]}
