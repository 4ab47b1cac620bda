"""Reasons word for word, and whole descriptions of decisions."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from textwrap import dedent

import pytest

from policies.kubernetes.snapshot import Snapshot
from policies.kubernetes.storage import StorageKind
from policies.preemption.decision import PreemptionDecision, no_preemption_needed
from policies.preemption.filtering.status import (
    Code,
    FilterDecision,
    Reason,
    Rejection,
    fit_message,
    refused,
    unresolvable,
)
from policies.preemption.guards.victim_guard import protected_pods
from policies.preemption.policy import Policy, SchedulerRules
from policies.preemption.reference_engine import filter_nodes, preempt
from policies.testing.storage import build_storage
from tests.builders import LATE, MEASURED, budget, claim, late_claim, node, pod, snapshot

WEB = {"app": "web"}


def text(decision: FilterDecision | PreemptionDecision) -> str:
    return "\n".join(decision.describe())


def pinned(golden: str) -> str:
    return dedent(golden).strip("\n")


def test_a_reason_contains_its_detail() -> None:
    assert str(Reason(Code.INSUFFICIENT, "cpu")) == "Insufficient cpu"
    assert str(Reason(Code.UNTOLERATED_TAINT, "gpu: yes")) == (
        "node(s) had untolerated taint {gpu: yes}"
    )
    assert str(Reason(Code.NO_VICTIM_NEEDED, "node-1")) == (
        'expected at least one victim pod on node "node-1"'
    )


def test_a_detail_may_contain_braces() -> None:
    assert str(Reason(Code.UNREADABLE_POD, "{0} {x}")).endswith(": {0} {x}")


def test_a_rejection_has_all_its_reasons() -> None:
    reasons = (Reason(Code.TOO_MANY_PODS), Reason(Code.INSUFFICIENT, "cpu"))
    both = Rejection(reasons, resolvable=True)
    assert str(both) == "Too many pods, Insufficient cpu"


def test_only_refused_nodes_are_resolvable() -> None:
    assert refused(Code.HOST_PORTS).resolvable
    assert not unresolvable(Code.UNSCHEDULABLE).resolvable


@pytest.mark.parametrize(
    ("nodes", "reasons", "message"),
    [
        (0, [], "0/0 nodes are available:"),
        (2, [], "0/2 nodes are available:"),
        (1, [Reason(Code.TOO_MANY_PODS)], "0/1 nodes are available: 1 Too many pods."),
        (
            12,
            [Reason(Code.TOO_MANY_PODS)] * 2 + [Reason(Code.INSUFFICIENT, "cpu")] * 10,
            "0/12 nodes are available: 10 Insufficient cpu, 2 Too many pods.",
        ),
        (
            3,
            [Reason(Code.INSUFFICIENT, "memory"), Reason(Code.INSUFFICIENT, "cpu")],
            "0/3 nodes are available: 1 Insufficient cpu, 1 Insufficient memory.",
        ),
    ],
)
def test_reasons_are_counted_and_sorted_as_texts(
    nodes: int, reasons: list[Reason], message: str
) -> None:
    assert fit_message(nodes, Counter(reasons)) == message


@pytest.fixture
def cluster() -> Snapshot:
    """Return two candidates, and one node for each reason against a candidate."""
    return snapshot(
        node("cordoned", unschedulable=True),
        node("full", cpu="4"),
        node("roomy", cpu="2"),
        node("small", cpu="1"),
        node("web-a", cpu="4"),
        node("web-b", cpu="4"),
        pod("owner", on="full", cpu="4", priority=2000),
        pod("web-0", on="web-a", cpu="2", priority=10, labels=WEB, started=1),
        pod("web-1", on="web-a", cpu="1", priority=10, labels=WEB, started=2),
        pod("batch", on="web-a", cpu="1", priority=5),
        pod("api", on="web-b", cpu="3", priority=10, started=3),
        pod("tiny", on="web-b", cpu="1", priority=7),
        pod("light", on="roomy", cpu="500m"),
        budget("web", match=WEB),
    )


def test_the_description_of_a_choice(cluster: Snapshot) -> None:
    decision = preempt(pod("job", cpu="3", priority=1000), cluster)
    assert text(decision) == pinned(
        """
        default/job preempts pods on web-b, decided by fewest PDB violations
          web-a: candidate, violates 1 budget(s)
            victim    default/web-0 (priority 10)
            victim    default/batch (priority 5)
            reprieved default/web-1 (priority 10)
          web-b: candidate
            victim    default/api (priority 10)
            reprieved default/tiny (priority 7)
          cordoned: node(s) were unschedulable (eviction cannot help)
          full: No preemption victims found for incoming pod (eviction cannot help)
          roomy: Insufficient cpu (eviction cannot help)
          small: Insufficient cpu (eviction cannot help)
        """
    )


def test_the_description_of_an_only_candidate(cluster: Snapshot) -> None:
    decision = preempt(pod("job", cpu="3", priority=1000), cluster, potential=["web-b"])
    assert text(decision).startswith("default/job preempts pods on web-b, the only candidate\n")


def test_the_description_without_candidates() -> None:
    cluster = snapshot(node("node-1", cpu="2"), pod("peer", on="node-1", cpu="1", priority=5))
    decision = preempt(pod("job", cpu="2", priority=5), cluster)
    assert text(decision) == pinned(
        """
        default/job: preemption is not helpful on any node
          node-1: No preemption victims found for incoming pod (eviction cannot help)
        """
    )


def test_the_description_of_a_pod_that_may_not_preempt() -> None:
    cluster = snapshot(node("node-1", cpu="2"), pod("peer", on="node-1", cpu="1"))
    decision = preempt(pod("job", cpu="2", priority=5, preempts=False), cluster)
    assert text(decision) == pinned(
        """
        default/job may not preempt: not eligible due to preemptionPolicy=Never.
          node-1: Insufficient cpu
        """
    )


def test_the_description_of_a_pod_that_needs_no_victims(cluster: Snapshot) -> None:
    decision = no_preemption_needed(filter_nodes(pod("job", cpu="1"), cluster))
    lines = text(decision).splitlines()
    assert lines[0] == "default/job: the pod fits without preemption"
    assert "  roomy: the pod fits without preemption" in lines
    assert (decision.chosen, decision.candidates) == (None, {})
    assert decision.rejected["roomy"] == unresolvable(Code.FEASIBLE)


def test_the_description_of_a_filtering(cluster: Snapshot) -> None:
    asking = pod("job", cpu="1500m", volumes=["data"])
    unseen = replace(
        cluster, storage=build_storage([claim("data", "pv")], unknown=[StorageKind.VOLUMES])
    )
    filters = "NodeVolumeLimits, VolumeBinding, VolumeZone"
    assert text(filter_nodes(asking, unseen)) == pinned(
        f"""
        default/job fits 1 of 6 nodes
          roomy: fits
          cordoned: node(s) were unschedulable (eviction cannot help)
          full: Insufficient cpu
          small: Insufficient cpu (eviction cannot help)
          web-a: Insufficient cpu
          web-b: Insufficient cpu
        not evaluated, so the result may be too optimistic: {filters}
        """
    )


def test_a_decision_names_the_filters_that_were_not_evaluated() -> None:
    asking = pod("job", cpu="2", priority=1, volumes=["data"])
    full = node("node-1", cpu="2"), pod("low", on="node-1", cpu="1")
    cluster = snapshot(*full, late_claim("data"), LATE, MEASURED, unknown=[StorageKind.CAPACITIES])
    assert text(preempt(asking, cluster)) == pinned(
        """
        default/job preempts pods on node-1, the only candidate
          node-1: candidate
            victim    default/low (priority 0)
        not evaluated, so the result may be too optimistic: VolumeBinding
        """
    )


def test_protected_pods_are_neither_victims_nor_reprieved() -> None:
    careful = Policy(
        "careful", victim_guards=(protected_pods("web pods", lambda each: each.labels == WEB),)
    )
    cluster = snapshot(
        node("node-1", cpu="2"),
        pod("web", on="node-1", cpu="1", labels=WEB),
        pod("low", on="node-1", cpu="1"),
    )
    decision = preempt(pod("job", cpu="1", priority=1), cluster, SchedulerRules(policy=careful))
    assert text(decision) == pinned(
        """
        default/job preempts pods on node-1, the only candidate
          node-1: candidate
            victim    default/low (priority 0)
        """
    )
