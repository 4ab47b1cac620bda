"""The verbs for pods of pod groups: answers that neither stop a gang nor evict half of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pytest
from msgspec import structs

from extender.kube.decoders.pods import decode_pod
from extender.protocol import filter_verb
from extender.protocol.extender_v1 import CandidateVictims
from extender.protocol.preempt_verb import PreemptArgs, guardrail_violation
from extender.protocol.request_size import at_once
from extender.protocol.verb_context import CallContext, Search, VerbResult
from policies import SchedulerRules
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.decision import VictimSet
from policies.preemption.engine import Engine
from policies.preemption.reference_engine import ReferenceEngine
from policies.preemption.vectorized import VectorizedEngine
from policies.preemption.victim_units import victim_units
from tests.builders import encoded, node, pod, pod_group, snapshot
from tests.vectors.podgroups import of, release_of, snapshot_of

Case = Mapping[str, Any]
engines = pytest.mark.parametrize("engine_of", [ReferenceEngine, VectorizedEngine])

ON_1_36 = {"GenericWorkload": True, "GangScheduling": True, "WorkloadAwarePreemption": True}
ON_1_37 = {"GenericWorkload": True}
GATES = {"1.36": ON_1_36, "1.37": ON_1_37, "1.38": {}}


def refused(body: Mapping[str, Any], moment: Snapshot, engine: Engine) -> set[str]:
    args = at_once(filter_verb.decode(encoded(body), engine.rules))
    answer = msgspec.json.decode(args.decide(CallContext(moment, engine)).body)
    return {*answer["FailedNodes"], *answer["FailedAndUnresolvableNodes"]}


@engines
@pytest.mark.parametrize("version", GATES)
@pytest.mark.parametrize("case", of("filter-in-group-cycle"))
def test_a_member_is_not_refused_for_what_lower_pods_cause(
    case: Case, version: str, engine_of: Callable[[SchedulerRules], Engine]
) -> None:
    engine = engine_of(SchedulerRules(release_of({"gates": GATES[version]}, version)))
    moment = snapshot_of(case)
    assert refused(case["request"], moment, engine).isdisjoint(case["expect"]["mustNotRefuse"])
    sent = {**case["request"], "NodeNames": None, "Nodes": {"items": case["nodes"]}}
    assert refused(sent, moment, engine).isdisjoint(case["expect"]["mustNotRefuse"])


MEMBER = pod("member", cpu="2", priority=100, group="g")
GROUP = pod_group("g", "single", priority=100)


@engines
@pytest.mark.parametrize(
    ("occupant", "fits"),
    [
        (pod("x", on="n", cpu="4", priority=99), True),
        (pod("x", on="n", cpu="4", priority=100), False),
        (pod("x", on="n", cpu="4", priority=99, group="high"), False),
        (pod("x", on="n", cpu="4", priority=200, group="low"), True),
        (pod("x", on="n", cpu="4", priority=200, group="missing"), True),
    ],
    ids=["lower", "equal", "lower in a higher group", "higher in a lower group", "group missing"],
)
def test_the_priority_of_a_group_decides_which_pods_may_be_removed(
    occupant: Pod, *, fits: bool, engine_of: Callable[[SchedulerRules], Engine]
) -> None:
    groups = [GROUP, pod_group("high", priority=200), pod_group("low", priority=1)]
    moment = snapshot(node("n", cpu="4"), occupant, groups=groups)
    engine = engine_of(SchedulerRules(release_of({"gates": ON_1_37})))
    assert bool(engine.filter_with_terminating_pods(MEMBER, moment, ["n"]).feasible) is fits


@engines
def test_a_pod_without_a_group_is_judged_by_all_pods(
    engine_of: Callable[[SchedulerRules], Engine],
) -> None:
    moment = snapshot(node("n", cpu="4"), pod("x", on="n", cpu="4", priority=1))
    plain = pod("plain", cpu="2", priority=100)
    assert (
        not engine_of(SchedulerRules()).filter_with_terminating_pods(plain, moment, ["n"]).feasible
    )


@engines
def test_without_the_gate_a_member_is_judged_by_all_pods(
    engine_of: Callable[[SchedulerRules], Engine],
) -> None:
    moment = snapshot(node("n", cpu="4"), pod("x", on="n", cpu="4", priority=1), groups=[GROUP])
    engine = engine_of(SchedulerRules(release_of({"gates": {}}, "1.37")))
    assert not engine.filter_with_terminating_pods(MEMBER, moment, ["n"]).feasible


def offers_of(entries: Mapping[str, Any]) -> dict[str, CandidateVictims]:
    return {
        name: CandidateVictims(tuple(each["UID"] for each in entry["Pods"]), 0)
        for name, entry in entries.items()
    }


def entries_in(body: bytes) -> dict[str, set[str]]:
    named = msgspec.json.decode(body)["NodeNameToMetaVictims"]
    return {name: {each["UID"] for each in entry["Pods"]} for name, entry in named.items()}


@dataclass(frozen=True)
class Asked:
    """A preempt call of a case, with the answers of the verb."""

    args: PreemptArgs
    rules: SchedulerRules
    moment: Snapshot

    def decided(self, engine: Engine, search: Search = Search.OFFERED) -> dict[str, set[str]]:
        return entries_in(self.args.decide(CallContext(self.moment, engine, search)).body)

    def echoed(self) -> dict[str, set[str]]:
        return entries_in(self.args.pass_through(self.rules, self.moment))


def asked(case: Case) -> Asked:
    rules = SchedulerRules(release_of(case))
    preemptor = decode_pod(encoded(case["preemptor"]), rules.release)
    offer = case.get("offer") or case["expect"]["candidates"]
    return Asked(PreemptArgs(preemptor, offers_of(offer)), rules, snapshot_of(case))


@engines
@pytest.mark.parametrize("case", of("extender-answer"))
def test_a_unit_over_several_nodes_is_neither_named_nor_halved(
    case: Case, engine_of: Callable[[SchedulerRules], Engine]
) -> None:
    call = asked(case)
    assert call.echoed() == {}
    for search in Search:
        assert call.decided(engine_of(call.rules), search) == {}


@pytest.mark.parametrize("case", of("extender-answer"))
def test_the_guardrails_refuse_every_answer_that_kube_scheduler_must_not_get(case: Case) -> None:
    call = asked(case)
    pods = {pod.uid: pod for state in call.moment.nodes.values() for pod in state.pods}
    for name, offer in offers_of(case["answer"]).items():
        victims = VictimSet(tuple(pods[uid] for uid in offer.uids))
        rules, preemptor = call.rules, call.args.pod
        units = victim_units(call.moment, rules.release)
        violation = guardrail_violation(name, victims, preemptor, units, rules)
        assert violation is not None


@engines
@pytest.mark.parametrize("case", of("units-on-node"))
def test_only_candidates_on_one_node_are_answered(
    case: Case, engine_of: Callable[[SchedulerRules], Engine]
) -> None:
    if case["guarded"]:
        return  # the guard belongs to a policy
    call, expect = asked(case), case["expect"]
    whole = {
        name: {pod["UID"] for pod in entry["Pods"]}
        for name, entry in expect["candidates"].items()
        if expect["confirmable"][name]
    }
    assert call.echoed() == whole
    answer = call.decided(engine_of(call.rules))
    assert answer.items() <= whole.items()
    assert len(answer) == min(len(whole), 1)


VIP = pod("vip", cpu="2", priority=100)
NODES = (node("n1", cpu="4"), node("n2", cpu="4"))
G1 = pod("g1", on="n1", cpu="2", priority=10, group="g")
G2 = pod("g2", on="n1", cpu="2", priority=10, group="g")
X = pod("x", on="n2", cpu="4", priority=90)
RULES = SchedulerRules(release_of({"gates": ON_1_37}))


def preempting(moment: Snapshot, **offers: tuple[str, ...]) -> VerbResult:
    offered = {name: CandidateVictims(uids, 0) for name, uids in offers.items()}
    args = PreemptArgs(VIP, offered)
    return args.decide(CallContext(moment, VectorizedEngine(RULES)))


def test_a_unit_on_one_node_is_named_as_a_whole() -> None:
    moment = snapshot(*NODES, G1, G2, X, groups=[pod_group("g", priority=10)])
    assert entries_in(preempting(moment, n1=("g1", "g2")).body) == {"n1": {"g1", "g2"}}


def test_half_a_unit_that_is_offered_is_not_passed_on() -> None:
    moment = snapshot(*NODES, G1, G2, X, groups=[pod_group("g", priority=100)])
    answer = preempting(moment, n1=("g1",))
    assert entries_in(answer.body) == {}


def test_a_node_with_a_pod_of_an_unknown_group_is_left_to_kube_scheduler() -> None:
    moment = snapshot(*NODES, G1, G2, X)
    elsewhere = preempting(moment, n1=("g1",), n2=("x",))
    assert entries_in(elsewhere.body) == {"n2": {"x"}}
    assert "left out: PodGroup default/g of g1" in elsewhere.notes[0].replace("default/g1", "g1")
    deferred = preempting(moment, n1=("g1", "g2"))
    assert entries_in(deferred.body) == {"n1": {"g1", "g2"}}


@pytest.mark.parametrize(
    ("members", "named", "problem"),
    [
        ([G1, G2], [G1], "default/g2 of group default/g is not among the victims on node n1"),
        ([G1, G2], [G1, G2], None),
        (
            [G1, structs.replace(G2, node_name="n2")],
            [G1],
            "default/g2 of group default/g is not among",
        ),
    ],
)
def test_the_guardrails_require_whole_units(
    members: list[Pod], named: list[Pod], problem: str | None
) -> None:
    moment = snapshot(*NODES, *members, groups=[pod_group("g", priority=10)])
    units = victim_units(moment, RULES.release)
    violation = guardrail_violation("n1", VictimSet(tuple(named)), VIP, units, RULES)
    assert (violation or "").startswith(problem or "")
    assert (violation is None) is (problem is None)


def test_the_guardrails_compare_the_priority_of_the_root_group() -> None:
    moment = snapshot(*NODES, G1, groups=[pod_group("g", "single", priority=100)])
    units = victim_units(moment, RULES.release)
    violation = guardrail_violation("n1", VictimSet((G1,)), VIP, units, RULES)
    assert violation == "victim default/g1 has priority 100, not below 100"


def test_the_higher_priority_counts_if_the_gate_is_not_certain() -> None:
    member = structs.replace(G1, priority=100)
    moment = snapshot(*NODES, member, groups=[pod_group("g", "single", priority=10)])
    rules = replace(RULES, assumed_gates=RULES.release.gates)
    units = victim_units(moment, RULES.release)
    assert guardrail_violation("n1", VictimSet((member,)), VIP, units, RULES) is None
    violation = guardrail_violation("n1", VictimSet((member,)), VIP, units, rules)
    assert violation == "victim default/g1 has priority 100, not below 100"


@pytest.mark.parametrize("order", [("n1", "n2"), ("n2", "n1")])
def test_a_pending_member_counts_on_the_node_that_it_is_nominated_to(
    order: tuple[str, ...],
) -> None:
    pending = structs.replace(G2, node_name=None, nominated_node="n2")
    moment = snapshot(
        *NODES, structs.replace(G1, requests=X.requests), pending, groups=[pod_group("g")]
    )
    args = PreemptArgs(VIP, {name: CandidateVictims(("g1", "g2"), 0) for name in order})
    context = CallContext(moment, VectorizedEngine(RULES), pending_pods={pending.uid: pending})
    assert entries_in(args.decide(context).body) == {}
