"""Upstream's tables of pod groups in preemption, and cases derived from its rules.

The cases of the extender's verbs are in ``tests/extender/protocol/test_pod_group_vectors.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from extender.kube.decoders.pod_groups import decode_pod_group
from extender.kube.decoders.pods import decode_pod
from policies import SchedulerRules
from policies.kubernetes.snapshot import Pod
from policies.preemption.decision import Candidate
from policies.preemption.disruption_budgets import BudgetCoverage, count_pdb_violations
from policies.preemption.filtering import filters_named
from policies.preemption.filtering.status import Rejection
from policies.preemption.guards.victim_guard import protected_pods
from policies.preemption.pod_group_preemption import (
    PodGroupPreemptor,
    is_preemption_ongoing,
    pod_group_ineligibility,
    start_dry_run,
)
from policies.preemption.policy import (
    DEFAULT_VICTIM_ORDER,
    KUBE_SCHEDULER,
    unit_order,
)
from policies.preemption.reference_engine import preempt
from policies.preemption.vectorized import VectorizedEngine
from policies.preemption.victim_units import (
    UnitKind,
    VictimUnit,
    units_for_pod_groups,
    victim_units,
)
from tests.builders import encoded
from tests.vectors.podgroups import of, release_of, snapshot_of

Case = Mapping[str, Any]

KINDS = {
    "Pod": UnitKind.POD,
    "PodGroup": UnitKind.POD_GROUP,
    "CompositePodGroup": UnitKind.COMPOSITE_POD_GROUP,
}


def units_document(units: tuple[VictimUnit, ...]) -> list[tuple[UnitKind, set[str]]]:
    return [(unit.kind, {pod.uid for pod in unit.pods}) for unit in units]


@pytest.mark.parametrize("case", of("unit-of"))
def test_the_unit_and_the_priority_of_a_pod(case: Case) -> None:
    release = release_of(case)
    pod = decode_pod(encoded(case["pod"]), release)
    units = victim_units(snapshot_of({**case, "pods": [case["pod"]]}), release)
    unit = units.unit_of(pod)
    assert units.priority_of(pod) == unit.priority == case["expect"]["priority"]
    expected = case["expect"]["unit"]
    named = None if expected is None else (KINDS[expected["type"]], f"default/{expected['name']}")
    assert ((unit.kind, unit.group) if unit.group else None) == named


def unit_from(document: Mapping[str, Any]) -> VictimUnit:
    start = document["start"]
    shape = {"metadata": {"name": "x"}, "spec": {}, "status": {"startTime": start}}
    member = decode_pod(encoded(shape), release_of({"gates": {}, "releases": "1.37"}))
    pods = tuple(structs.replace(member, uid=str(n)) for n in range(document["size"]))
    return VictimUnit(pods, document["priority"], KINDS[document["type"]])


@pytest.mark.parametrize("case", of("compare-units"))
def test_the_more_important_unit(case: Case) -> None:
    one, other = unit_from(case["one"]), unit_from(case["other"])
    key = unit_order(DEFAULT_VICTIM_ORDER).key
    assert (key(one)[0] < key(other)[0]) is case["expect"]["oneIsMoreImportant"]


@pytest.mark.parametrize("case", of("pdb-units"))
def test_pdb_violations_by_unit(case: Case) -> None:
    release = release_of(case)
    units = [
        [decode_pod(encoded(each), release) for each in unit["pods"]] for unit in case["units"]
    ]
    coverage = BudgetCoverage(snapshot_of(case).budgets, release)
    counted = list(zip(units, count_pdb_violations(units, coverage), strict=True))
    violating = [{"pods": uids(pods), "violations": count} for pods, count in counted if count]
    others = [uids(pods) for pods, count in counted if not count]
    assert {"violating": violating, "others": others} == case["expect"]


def uids(pods: list[Pod]) -> list[str]:
    return [pod.uid for pod in pods]


@pytest.mark.parametrize("case", of("units-on-node"))
def test_the_candidates_of_an_ordinary_pod(case: Case) -> None:
    release, expect = release_of(case), case["expect"]
    snapshot = snapshot_of(case)
    guarded = protected_pods("guarded", lambda pod: pod.uid in case["guarded"])
    policy = replace(KUBE_SCHEDULER, victim_guards=(guarded,))
    rules = SchedulerRules(release, filters_named(case["filters"]), policy)
    pod = decode_pod(encoded(case["preemptor"]), release)
    decision = preempt(pod, snapshot, rules, potential=list(snapshot.nodes))
    assert {name: document(each) for name, each in decision.candidates.items()} == {
        name: ({pod["UID"] for pod in each["Pods"]}, each["NumPDBViolations"])
        for name, each in expect["candidates"].items()
    }
    for name, units in expect["units"].items():
        groups = [
            (KINDS[unit["type"]], set(unit["pods"])) for unit in units if unit["type"] != "Pod"
        ]
        assert units_document(decision.candidates[name].groups) == groups
    for name, reason in expect["refused"].items():
        assert str(decision.rejected[name]) == reason
    confirmable = {name: not each.elsewhere for name, each in decision.candidates.items()}
    assert confirmable == expect["confirmable"]
    chosen = decision.chosen and decision.chosen.node
    if isinstance(expect["node"], str):
        assert chosen == expect["node"]
    else:
        assert chosen in (expect["node"] or confirmable)
    assert VectorizedEngine(rules).preempt(pod, snapshot, list(snapshot.nodes)) == decision


def document(candidate: Candidate) -> tuple[set[str], int]:
    return {pod.uid for pod in candidate.victims.pods}, candidate.victims.violations


def preemptor_of(case: Case) -> PodGroupPreemptor:
    members = [decode_pod(encoded(each), release_of(case)) for each in case["preemptorPods"]]
    return PodGroupPreemptor(
        decode_pod_group(encoded(case["preemptorGroup"])),
        tuple(pod for pod in members if pod.node_name is None),
    )


@pytest.mark.parametrize("case", of("podgroup"))
def test_the_victims_of_a_pod_group(case: Case) -> None:
    rules = SchedulerRules(release_of(case), filters_named(case["filters"]))
    expect, placement = case["expect"], case["placement"]

    units = units_for_pod_groups(snapshot_of(case), rules.release)
    dry_run = start_dry_run(preemptor_of(case), units, rules)
    if isinstance(dry_run, Rejection):
        assert expect["victims"] == []
        assert expect["status"] == "UnschedulableAndUnresolvable"
        assert expect["message"].endswith(str(dry_run))
        return
    if placement is None:  # the group does not fit even without them
        assert (expect["victims"], expect["status"]) == ([], "Unschedulable")
        return
    found = dry_run.reprieve(placement, rules)
    assert expect["status"] == "Success"
    victims = [pod.uid for unit in found.units for pod in unit.pods]
    assert set(victims) == set(expect["victims"])
    assert found.placement == expect["nominatedNodeNames"]
    if "units" in expect:  # upstream leaves the order of equal units open
        named = [(KINDS[unit["type"]], set(unit["pods"])) for unit in expect["units"]]
        assert sorted(units_document(found.units), key=str) == sorted(named, key=str)
        assert found.violations == expect["numPDBViolations"]


@pytest.mark.parametrize("case", of("podgroup-eligible"))
def test_whether_a_pod_group_may_preempt(case: Case) -> None:
    release, preemptor = release_of(case), preemptor_of(case)
    units = units_for_pod_groups(snapshot_of(case), release)
    reason = pod_group_ineligibility(preemptor, release)
    if case["expect"]["status"] == "Success":
        assert reason is None
        assert is_preemption_ongoing(preemptor, units)
    else:
        assert reason == case["expect"]["message"]
