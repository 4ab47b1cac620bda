"""Upstream's own test tables of the scheduler.

Each case runs under the newest release and under 1.36, since upstream wrote most of them for that
one; where a rule has changed between, the case or the note beside the check here states it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import pytest

from extender.kube.decoders.cluster_objects import decode_budget, decode_node
from extender.kube.decoders.pods import decode_pod, epoch_ns
from extender.kube.decoders.storage import decode_claim, decode_volume
from policies import (
    PreemptionDecision,
    SchedulerRules,
    Snapshot,
    assemble,
    decide_preemption,
    post_filter,
)
from policies.kubernetes.releases import NEWEST, RELEASES, Release
from policies.kubernetes.snapshot import Pod
from policies.kubernetes.storage import Storage
from policies.preemption.decision import Candidate, VictimSet
from policies.preemption.disruption_budgets import BudgetCoverage, split_by_pdb_violation
from policies.preemption.filtering import IN_TREE, filters_named
from policies.preemption.filtering.status import Code, FilterDecision, Reason, Rejection
from policies.preemption.policy import (
    CANDIDATE_CRITERIA,
    DEFAULT_CANDIDATE_ORDER,
    DEFAULT_VICTIM_ORDER,
)
from policies.preemption.victim_units import victim_units
from policies.preemption.victims.victim_selection import ineligibility, is_terminating_by_preemption
from policies.testing.storage import build_storage
from tests.builders import encoded

CASES: list[dict[str, Any]] = msgspec.json.decode(
    (Path(__file__).parents[2] / "vectors" / "preemption.json").read_bytes()
)["cases"]

ELSEWHERE = {
    "extender-chain": "what kube-scheduler does with an extender's answer; nothing here plays it",
    "to-meta": "the wire format",
    "wire": "the wire format",
}
"""Kinds of cases for the extender's wire format or kube-scheduler's side of it."""


@dataclass(frozen=True)
class Case:
    """A case of the tables, decoded by the rules of one release."""

    data: Mapping[str, Any]
    release: Release

    @property
    def expect(self) -> Mapping[str, Any]:
        expect: Mapping[str, Any] = self.data["expect"]
        older: Mapping[str, Any] = expect.get(f"v{self.release.name}", {})
        return {**expect, **older}

    @property
    def rules(self) -> SchedulerRules:
        return SchedulerRules(self.release, filters_named(self.data["filters"]))

    @cached_property
    def preemptor(self) -> Pod:
        return decode_pod(encoded(self.data["preemptor"]), self.release)

    @cached_property
    def pods(self) -> list[Pod]:
        return [decode_pod(encoded(each), self.release) for each in self.data["pods"]]

    @cached_property
    def snapshot(self) -> Snapshot:
        return assemble(
            nodes=[decode_node(encoded(each)) for each in self.data["nodes"]],
            pods=self.pods,
            budgets=[decode_budget(encoded(each)) for each in self.data["pdbs"]],
            storage=self.storage,
        )

    @property
    def storage(self) -> Storage:
        extra = self.data.get("extraObjects", {})
        claims = [decode_claim(encoded(it)) for it in extra.get("persistentVolumeClaims", ())]
        volumes = [decode_volume(encoded(it)) for it in extra.get("persistentVolumes", ())]
        return build_storage([*claims, *volumes])

    @property
    def filtering(self) -> FilterDecision:
        """Return the statuses that the table injects.

        A node without a status is one that in-tree filters accepted, or never saw, and an extender
        refused without naming it: here, a feasible one.
        """
        statuses = {
            node: Rejection((), resolvable=status["code"] == "Unschedulable")
            for node, status in self.data["statuses"].items()
        }
        without = tuple(node for node in self.snapshot.nodes if node not in statuses)
        return FilterDecision(self.preemptor, without, statuses)


def dry_run(case: Case) -> None:
    decision = decide_preemption(case.preemptor, case.snapshot, case.rules, visited(case))
    assert candidates(decision) == case.expect["candidates"]


def visited(case: Case) -> list[str]:
    """Return the names of the nodes that upstream's dry run visits.

    Upstream stops once it has enough candidates; this engine looks at every node and has no such
    argument. So the sampling tables are run over the nodes that the sample takes: every node of
    them is a candidate, hence the first so many from the offset on, wrapping around.
    """
    nodes = list(case.snapshot.nodes)
    args = case.data.get("args")
    if args is None:
        return nodes
    percentage, least = args["minCandidateNodesPercentage"], args["minCandidateNodesAbsolute"]
    enough = min(max(len(nodes) * percentage // 100, least), len(nodes))
    return [nodes[(args["offset"] + i) % len(nodes)] for i in range(enough)]


def select(case: Case) -> None:
    decision = decide_preemption(case.preemptor, case.snapshot, case.rules, visited(case))
    assert candidates(decision) == case.expect["candidates"]
    assert chosen(decision.chosen) == (case.expect["node"], case.expect["victims"])


def preempt(case: Case) -> None:
    decision = post_filter(case.filtering, case.snapshot, case.rules)
    expect = case.expect
    assert candidates(decision) == (expect["candidates"] or {})
    assert sentence(decision) == outcome(case, decision)
    assert (decision.chosen is not None) == (expect["status"] == "Success")
    best = best_after_extenders(case, decision)
    assert chosen(best) == (expect["node"], expect["victims"])
    if "nominatedNodeName" in expect:
        assert (best.node if best else "") == expect["nominatedNodeName"]


def outcome(case: Case, decision: PreemptionDecision) -> str:
    """Return the expected message; since 1.37 a success has a sentence, too."""
    expected: str = case.expect["message"]
    if expected or case.release is not NEWEST or decision.chosen is None:
        return expected
    count = len(decision.chosen.victims.pods)
    return (
        "preemption: found a potential placement for pod on node "
        f"{decision.chosen.node}, preempting {count} victims"
    )


def best_after_extenders(case: Case, decision: PreemptionDecision) -> Candidate | None:
    """Choose among the candidates that the table's extenders keep."""
    left = dict(decision.candidates)
    for extender in case.data.get("extenders", ()):
        left = {node: left[node] for node in extender["behaviour"]["keepNodes"]}
    return next(iter(DEFAULT_CANDIDATE_ORDER.sort(left.values())), None)


def potential_nodes(case: Case) -> None:
    """Return the nodes to try; one without pods is rejected because it has no victims."""
    decision = post_filter(case.filtering, case.snapshot, case.rules)
    tried = [
        node
        for node, rejection in decision.rejected.items()
        if rejection.reasons == (Reason(Code.NO_VICTIMS),)
    ]
    assert sorted(tried) == case.expect["potentialNodes"]


def eligible(case: Case) -> None:
    assert case.data["nominatedNodeStatus"] is None
    reason = ineligibility(case.preemptor, victim_units(case.snapshot, case.release), None)
    assert (reason is None, reason or "") == (case.expect["eligible"], case.expect["message"])


def pdb_groups(case: Case) -> None:
    groups = split_by_pdb_violation(case.pods, BudgetCoverage(case.snapshot.budgets, case.release))
    assert [pod.name for pod in groups.violating] == case.expect["violating"]
    assert [pod.name for pod in groups.others] == case.expect["nonViolating"]


def compare(case: Case) -> None:
    first, second = case.pods
    comes_first = DEFAULT_VICTIM_ORDER.key(first) < DEFAULT_VICTIM_ORDER.key(second)
    assert comes_first == case.expect["firstIsMoreImportant"]


def earliest_start(case: Case) -> None:
    criterion = CANDIDATE_CRITERIA["latest start of the most important victims"]
    earliest = datetime.fromisoformat(case.expect["earliestStartTime"])
    key = criterion.key(Candidate("node1", VictimSet(tuple(case.pods))))
    assert key == -epoch_ns(earliest)


def terminating(case: Case) -> None:
    (pod,) = case.pods
    assert is_terminating_by_preemption(pod) == case.expect["terminatingByPreemption"]


def priority(case: Case) -> None:
    (pod,) = case.pods
    assert pod.priority == case.expect["priority"]


def interested(case: Case) -> None:
    managed = frozenset(case.data["managedResources"])
    assert case.preemptor.requests_any_of(managed) == case.expect["interested"]


CHECKS: Mapping[str, Callable[[Case], None]] = {
    "dryrun": dry_run,
    "select": select,
    "postfilter": preempt,
    "preempt": preempt,
    "potential-nodes": potential_nodes,
    "eligible": eligible,
    "pdb-groups": pdb_groups,
    "compare": compare,
    "earliest-start": earliest_start,
    "terminating": terminating,
    "priority": priority,
    "interested": interested,
}

RUN = [data for data in CASES if data["kind"] in CHECKS]


@pytest.mark.parametrize("release", [RELEASES["1.36"], NEWEST], ids=lambda release: release.name)
@pytest.mark.parametrize("data", RUN, ids=lambda data: f"{data['id']}-{data['kind']}")
def test_upstream_asserts_the_same(data: dict[str, Any], release: Release) -> None:
    CHECKS[data["kind"]](Case(data, release))


def test_every_filter_that_a_case_needs_is_built() -> None:
    assert {name for data in CASES for name in data["filters"]} <= {each.name for each in IN_TREE}


def test_every_kind_of_case_is_run_here_or_named_as_belonging_elsewhere() -> None:
    assert {data["kind"] for data in CASES} == set(CHECKS) | set(ELSEWHERE)


def candidates(decision: PreemptionDecision) -> dict[str, dict[str, Any]]:
    return {
        node: {
            "victims": [pod.name for pod in candidate.victims.pods],
            "numPDBViolations": candidate.victims.violations,
        }
        for node, candidate in decision.candidates.items()
    }


def chosen(candidate: Candidate | None) -> tuple[str | None, list[str]]:
    if candidate is None:
        return None, []
    return candidate.node, [pod.name for pod in candidate.victims.pods]


def sentence(decision: PreemptionDecision) -> str:
    """Return the message's part about preemption."""
    before, prefix, after = decision.message.partition("preemption: ")
    assert before.startswith("0/")
    return prefix + after
