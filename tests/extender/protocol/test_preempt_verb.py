"""The preempt verb: our own choice, kube-scheduler's candidates, or nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from extender.kube.decoders.typed_decoder import Unreadable
from extender.protocol import preempt_verb
from extender.protocol.request_size import at_once
from extender.protocol.verb_context import CallContext, Search, VerbResult
from policies.kubernetes.releases import RELEASES
from policies.kubernetes.snapshot import Node, Pod, Snapshot
from policies.kubernetes.storage import StorageKind
from policies.preemption.consequences.criteria import CONSEQUENCE_CRITERIA
from policies.preemption.decision import PreemptionDecision
from policies.preemption.guards.victim_guard import protected_pods
from policies.preemption.policy import DEFAULT_RULES, KUBE_SCHEDULER, Policy, SchedulerRules
from policies.preemption.reference_engine import ReferenceEngine
from tests.builders import (
    LATE,
    MEASURED,
    budget,
    encoded,
    late_claim,
    node,
    pod,
    pod_json,
    snapshot,
)
from tests.extender.conftest import live_cluster, preempt_body
from tests.extender.go_decoder import Victims, preempted

VIP = pod_json("vip", cpu="1", priority=10)
CLAIMING = pod_json(
    "vip",
    cpu="1",
    priority=10,
    spec={"volumes": [{"persistentVolumeClaim": {"claimName": "data"}}]},
)
NOTHING = b'{"NodeNameToMetaVictims":{}}'
FULL_NODES = (
    node("node-1", cpu="1"),
    node("node-2", cpu="1"),
    pod("web", on="node-1", cpu="1", priority=5),
    pod("batch", on="node-2", cpu="1", priority=1),
    late_claim("data"),
    LATE,
    MEASURED,
)


def full_cluster(*more: Node | Pod) -> Snapshot:
    """Return the full nodes; the capacities of the claim's driver are unknown."""
    return snapshot(*FULL_NODES, *more, unknown=[StorageKind.CAPACITIES])


@dataclass(frozen=True)
class Outcome:
    """The answer as kube-scheduler reads it, and the answer itself."""

    entries: dict[str, Victims]
    answer: VerbResult


def ask(
    body: bytes,
    moment: Snapshot,
    *,
    rules: SchedulerRules = DEFAULT_RULES,
    search: Search = Search.OFFERED,
) -> Outcome:
    args = at_once(preempt_verb.decode(body, rules))
    answer = args.decide(CallContext(moment, ReferenceEngine(rules), search))
    return Outcome(preempted(answer.body, moment, rules.release), answer)


class TestOurOwnChoice:
    def test_is_the_best_of_the_offered_nodes_and_the_only_one_named(self) -> None:
        body = preempt_body(VIP, node_1=["web"], node_2=["batch"])
        assert ask(body, full_cluster()).entries == {"node-2": Victims(("batch",), 0)}

    def test_stays_within_the_offered_nodes(self) -> None:
        outcome = ask(preempt_body(VIP, node_1=["web"]), full_cluster())
        assert set(outcome.entries) == {"node-1"}

    def test_may_be_any_node_where_the_whole_cluster_is_searched(self) -> None:
        body = preempt_body(VIP, node_1=["web"])
        outcome = ask(body, full_cluster(), search=Search.CLUSTER)
        assert set(outcome.entries) == {"node-2"}

    def test_reprieves_pods_that_were_offered_needlessly(self) -> None:
        moment = snapshot(
            node("node-1", cpu="2"),
            pod("web", on="node-1", cpu="1", priority=5),
            pod("batch", on="node-1", cpu="1", priority=1),
        )
        outcome = ask(preempt_body(VIP, node_1=["web", "batch"]), moment)
        assert outcome.entries == {"node-1": Victims(("batch",), 0)}

    def test_names_the_most_important_victim_first(self) -> None:
        moment = snapshot(
            node("node-1", cpu="1"),
            pod("a", on="node-1", cpu="500m", priority=1),
            pod("b", on="node-1", cpu="500m", priority=5),
        )
        outcome = ask(preempt_body(VIP, node_1=["a", "b"]), moment)
        assert outcome.entries["node-1"].uids == ("b", "a")

    def test_counts_budgets_itself(self) -> None:
        moment = snapshot(
            node("node-1", cpu="1"),
            pod("web", on="node-1", cpu="1", labels={"app": "web"}),
            budget(match={"app": "web"}, allowed=0),
        )
        outcome = ask(preempt_body(VIP, node_1=["web"]), moment)
        assert outcome.entries == {"node-1": Victims(("web",), 1)}

    def test_breaks_ties_by_node_name(self) -> None:
        moment = snapshot(
            *(node(name, cpu="1") for name in ("node-2", "node-1")),
            pod("a", on="node-2", cpu="1"),
            pod("b", on="node-1", cpu="1"),
        )
        outcome = ask(preempt_body(VIP, node_2=["a"], node_1=["b"]), moment)
        assert set(outcome.entries) == {"node-1"}

    def test_skips_unknown_nodes_with_a_note(self) -> None:
        outcome = ask(preempt_body(VIP, node_1=["web"], node_9=["x"]), full_cluster())
        assert set(outcome.entries) == {"node-1"}
        assert outcome.answer.notes == ("node node-9 was offered but is not known",)


class TestNothing:
    @pytest.mark.parametrize(
        ("spec", "reason"),
        [
            ({"preemptionPolicy": "Never"}, "not eligible due to preemptionPolicy=Never."),
            ({"priority": 1}, "deferred: no own candidate"),
        ],
    )
    def test_a_pod_that_may_not_preempt_gets_no_candidates(
        self, spec: dict[str, Any], reason: str
    ) -> None:
        body = preempt_body(pod_json("vip", cpu="1", priority=10, spec=spec), node_2=["batch"])
        outcome = ask(body, full_cluster())
        assert outcome.answer.body == NOTHING
        assert outcome.answer.named_candidate is None
        assert outcome.answer.notes[0] == reason

    def test_a_pod_whose_earlier_victims_terminate_gets_no_candidates(self) -> None:
        waiting = pod_json("vip", cpu="1", priority=10, status={"nominatedNodeName": "node-3"})
        leaving = pod("old", on="node-3", cpu="1", terminating=True, preempted=True)
        moment = full_cluster(node("node-3", cpu="1"), leaving)
        outcome = ask(preempt_body(waiting, node_1=["web"]), moment)
        assert outcome.answer.body == NOTHING
        assert outcome.answer.notes == (
            "not eligible due to a terminating pod on the nominated node.",
        )

    def test_without_offers_and_resolvable_nodes_there_are_no_candidates(self) -> None:
        too_large = pod_json("vip", cpu="99", priority=10)
        assert ask(preempt_body(too_large), full_cluster()).answer.body == NOTHING

    def test_an_unimplemented_filter_without_offers_gets_the_fallback(self) -> None:
        outcome = ask(preempt_body(CLAIMING), full_cluster(), search=Search.CLUSTER)
        assert outcome.answer.body == NOTHING

    @pytest.mark.parametrize("entries", [None, {}, {"node-1": None}])
    def test_null_offers_are_no_offers(self, entries: Any) -> None:
        body = encoded({"Pod": VIP, "NodeNameToVictims": {}, "NodeNameToMetaVictims": entries})
        assert ask(body, full_cluster()).answer.body == NOTHING


class TestDeferred:
    """Without a decision: the best of kube-scheduler's offers that passes the guardrails."""

    def test_picks_by_the_same_criteria_and_notes_the_reason(self) -> None:
        body = preempt_body(CLAIMING, node_1=["web"], node_2=["batch"])
        outcome = ask(body, full_cluster())
        assert outcome.entries == {"node-2": Victims(("batch",), 0)}
        note = "deferred: not evaluated: VolumeBinding; not known: csistoragecapacities"
        assert outcome.answer.notes == (note,)

    def test_a_node_that_cannot_be_evaluated_is_not_waited_for(self) -> None:
        status = {"nominatedNodeName": "node-3"}
        leaving = pod("old", on="node-3", cpu="1", terminating=True, preempted=True)
        moment = full_cluster(node("node-3", cpu="1"), leaving)
        outcome = ask(preempt_body({**CLAIMING, "status": status}, node_1=["web"]), moment)
        assert outcome.entries == {"node-1": Victims(("web",), 0)}

    def test_never_for_a_pod_that_may_not_preempt(self) -> None:
        never = {**CLAIMING, "spec": {**CLAIMING["spec"], "preemptionPolicy": "Never"}}
        outcome = ask(preempt_body(never, node_1=["web"]), full_cluster())
        assert outcome.answer.body == NOTHING

    def test_keeps_what_kube_scheduler_counted(self) -> None:
        entries = {"node-1": {"Pods": [{"UID": "web"}], "NumPDBViolations": 3}}
        body = encoded({"Pod": CLAIMING, "NodeNameToMetaVictims": entries})
        outcome = ask(body, full_cluster())
        assert outcome.entries == {"node-1": Victims(("web",), 3)}

    def test_nodes_that_our_view_finds_free_do_not_prevent_it(self) -> None:
        moment = snapshot(node("node-1", cpu="9"), pod("web", on="node-1", cpu="1"))
        outcome = ask(preempt_body(VIP, node_1=["web"]), moment)
        assert outcome.entries == {"node-1": Victims(("web",), 0)}
        assert outcome.answer.notes == ("deferred: no own candidate",)

    def test_orders_the_offered_victims_by_importance_and_names_each_once(self) -> None:
        moment = snapshot(
            node("node-1"), pod("a", on="node-1", priority=1), pod("b", on="node-1", priority=5)
        )
        outcome = ask(preempt_body(CLAIMING, node_1=["a", "b", "a"]), moment)
        assert outcome.entries["node-1"].uids == ("b", "a")

    @pytest.mark.parametrize(
        ("uids", "problem"),
        [
            (["gone"], "victim gone is not on node node-1"),
            (["batch"], "victim batch is not on node node-1"),
            (["web", "gone"], "victim gone is not on node node-1"),
            (["web", ""], "victim (without a UID) is not on node node-1"),
            (["equal"], "victim default/equal has priority 10, not below 10"),
        ],
    )
    def test_leaves_out_an_invalid_offer(self, uids: list[str], problem: str) -> None:
        moment = full_cluster(pod("equal", on="node-1", priority=10))
        outcome = ask(preempt_body(CLAIMING, node_1=uids, node_2=["batch"]), moment)
        assert set(outcome.entries) == {"node-2"}
        assert f"left out: {problem}" in outcome.answer.notes
        assert ask(preempt_body(CLAIMING, node_1=uids), moment).answer.body == NOTHING

    def test_a_null_victim_voids_its_offer(self) -> None:
        entries = {"node-1": {"Pods": [{"UID": "web"}, None], "NumPDBViolations": 0}}
        body = encoded({"Pod": CLAIMING, "NodeNameToMetaVictims": entries})
        assert ask(body, full_cluster()).answer.body == NOTHING

    def test_protected_pods_are_not_taken_from_offers(self) -> None:
        guard = protected_pods("web stays", lambda each: each.name == "web")
        rules = replace(DEFAULT_RULES, policy=Policy("careful", victim_guards=(guard,)))
        body = preempt_body(CLAIMING, node_1=["web"])
        outcome = ask(body, full_cluster(), rules=rules)
        assert outcome.answer.body == NOTHING
        assert "left out: victim default/web is protected by web stays" in outcome.answer.notes

    def test_a_node_without_victims_is_passed_on_only_if_there_is_no_other(self) -> None:
        moment = full_cluster()
        alone = ask(preempt_body(CLAIMING, node_1=[]), moment)
        assert alone.entries == {"node-1": Victims((), 0)}
        beside = ask(preempt_body(CLAIMING, node_1=[], node_2=["batch"]), moment)
        assert set(beside.entries) == {"node-2"}

    def test_of_several_nodes_without_victims_the_first_by_name_is_passed_on(self) -> None:
        outcome = ask(preempt_body(CLAIMING, node_2=[], node_1=[]), full_cluster())
        assert set(outcome.entries) == {"node-1"}

    def test_a_release_that_refuses_nodes_without_victims_gets_none(self) -> None:
        rules = replace(DEFAULT_RULES, release=RELEASES["1.37"])
        body = preempt_body(CLAIMING, node_1=[])
        assert ask(body, full_cluster(), rules=rules).answer.body == NOTHING

    def test_the_deciding_criterion_names_the_rival(self) -> None:
        body = preempt_body(CLAIMING, node_1=["web"], node_2=["batch"])
        decision = ask(body, full_cluster()).answer.decision
        assert (
            "vip preempts pods on node-2, decided by lowest priority of the first victim"
            in next(iter(decision.describe()))
        )

    def test_what_would_follow_is_not_counted_for_offers(self) -> None:
        criteria = (*CONSEQUENCE_CRITERIA.values(), *KUBE_SCHEDULER.candidates)
        rules = replace(DEFAULT_RULES, policy=Policy("looks ahead", candidates=criteria))
        body = preempt_body(CLAIMING, node_1=["web"], node_2=["batch"])
        decision = ask(body, full_cluster(), rules=rules).answer.decision
        assert isinstance(decision, PreemptionDecision)
        assert decision.consequences == {}
        assert decision.decided_by == "lowest priority of the first victim"


@pytest.mark.parametrize("search", Search)
@pytest.mark.parametrize("preemptor", [VIP, CLAIMING])
def test_an_unreadable_pod_is_no_victim_and_its_node_no_candidate(
    search: Search, preemptor: dict[str, Any]
) -> None:
    broken = Unreadable("Pod", "default", "broken", "broken", "node-2", "why")
    moment = live_cluster(*FULL_NODES, broken).snapshot()
    body = preempt_body(preemptor, node_1=["web"], node_2=["batch", "broken"])
    assert set(ask(body, moment, search=search).entries) == {"node-1"}
    body = preempt_body(preemptor, node_2=["batch"])
    assert "node-2" not in ask(body, moment, search=search).entries
