"""Explanations: the specified JSON documents, and the readable tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from extender.explain.decisions import (
    UnknownNodeError,
    explain_preempt,
    filter_document,
    preempt_document,
    require_known_nodes,
    scale_down_document,
)
from extender.terminal.output import TableRows
from extender.terminal.tables import filter_table, preempt_table, scale_down_table
from policies import decide_filter
from policies.kubernetes.snapshot import Snapshot
from policies.kubernetes.storage import StorageKind
from policies.preemption.guards.victim_guard import protected_pods
from policies.preemption.policy import (
    DEFAULT_RULES,
    Policy,
    SchedulerRules,
)
from policies.replicaset import decide_scale_down
from policies.testing.storage import build_storage
from tests.builders import LATE, MEASURED, budget, late_claim, node, pod, snapshot
from tests.builders.devices import GPU, gpu, gpu_claim, gpus, held_by, uses
from tests.builders.replicas import NOW_NS, replica
from tests.commands import rendered

VIP = pod("vip", cpu="2", priority=10)
CLUSTER = snapshot(
    node("node-1", cpu="2"),
    pod("web", on="node-1", cpu="1", priority=5, labels={"app": "web"}),
    pod("tiny", on="node-1", cpu="0", priority=1),
    node("node-2", cpu="2"),
    pod("a", on="node-2", cpu="1", priority=2),
    pod("b", on="node-2", cpu="1", priority=3),
    node("node-3", cpu="1"),
    budget("web", match={"app": "web"}),
)
ROOMY = snapshot(node("node-1", cpu="4"), node("node-2", cpu="1"))


def test_a_filter_document() -> None:
    assert filter_document(decide_filter(VIP, CLUSTER)) == {
        "feasible": [],
        "rejected": {
            "node-1": {"reason": "Insufficient cpu", "resolvable": True},
            "node-2": {"reason": "Insufficient cpu", "resolvable": True},
            "node-3": {"reason": "Insufficient cpu", "resolvable": False},
        },
        "unjudged": [],
    }


def test_a_preempt_document() -> None:
    web = {"namespace": "default", "name": "web", "uid": "web", "priority": 5}
    tiny = {
        "namespace": "default",
        "name": "tiny",
        "uid": "tiny",
        "priority": 1,
        "because": "default/vip fits node-1 without its eviction",
    }
    a = {"namespace": "default", "name": "a", "uid": "a", "priority": 2}
    b = {"namespace": "default", "name": "b", "uid": "b", "priority": 3}
    assert preempt_document(explain_preempt(VIP, CLUSTER, DEFAULT_RULES, None)) == {
        "eligible": True,
        "reason": "",
        "node": "node-2",
        "victims": [b, a],
        "numPDBViolations": 0,
        "decidedBy": "fewest PDB violations",
        "candidates": {
            "node-1": {
                "victims": [web],
                "numPDBViolations": 1,
                "violatedPDBs": ["default/web"],
                "spared": [tiny],
            },
            "node-2": {"victims": [b, a], "numPDBViolations": 0},
        },
        "rejected": {"node-3": {"reason": "Insufficient cpu", "resolvable": False}},
        "message": (
            "0/3 nodes are available: 3 Insufficient cpu. preemption: found a potential "
            "placement for pod on node node-2, preempting 2 victims"
        ),
        "unjudged": [],
        "feasible": [],
        "spared": [],
        "units": [],
    }


def test_the_reprieved_pods_of_the_chosen_node_are_listed() -> None:
    running = [pod(name, on="node-1", cpu="2", priority=2) for name in ("a", "b")]
    cluster = snapshot(node("node-1", cpu="4"), *running)
    document = preempt_document(explain_preempt(VIP, cluster, DEFAULT_RULES, None))
    assert [each["name"] for each in document["victims"]] == ["b"]
    assert document["spared"] == [
        {
            "namespace": "default",
            "name": "a",
            "uid": "a",
            "priority": 2,
            "because": "default/vip fits node-1 without its eviction",
        }
    ]


def test_a_bound_pod_needs_no_preemption() -> None:
    bound = pod("vip", cpu="2", priority=10, on="node-1")
    document = preempt_document(explain_preempt(bound, CLUSTER, DEFAULT_RULES, None))
    assert (document["eligible"], document["node"]) == (False, None)
    assert document["reason"] == "the pod is bound to node node-1"


def test_given_nodes_replace_the_potential_ones() -> None:
    document = preempt_document(explain_preempt(VIP, CLUSTER, DEFAULT_RULES, ["node-1"]))
    assert (document["node"], document["decidedBy"]) == ("node-1", None)
    assert set(document["candidates"]) == {"node-1"}


@pytest.mark.parametrize("names", [[], ["node-2"], ["node-2", "node-1"]])
def test_nodes_of_the_cluster_are_known(names: list[str]) -> None:
    assert require_known_nodes(names, CLUSTER, "cluster.yaml") == names


def test_a_node_outside_the_cluster_is_named() -> None:
    with pytest.raises(UnknownNodeError) as raised:
        require_known_nodes(["node-1", "nope"], CLUSTER, "cluster.yaml")
    assert str(raised.value) == "--nodes: no node 'nope' in cluster.yaml"


def test_a_pod_that_fits_needs_no_victims() -> None:
    document = preempt_document(explain_preempt(VIP, ROOMY, DEFAULT_RULES, None))
    assert document["eligible"]
    assert document["reason"] == "the pod fits without preemption"
    assert (document["node"], document["victims"], document["candidates"]) == (None, [], {})
    assert (document["feasible"], set(document["rejected"])) == (["node-1"], {"node-2"})


def test_a_pod_that_may_not_preempt() -> None:
    meek = pod("vip", cpu="2", priority=10, preempts=False)
    document = preempt_document(explain_preempt(meek, CLUSTER, DEFAULT_RULES, None))
    assert not document["eligible"]
    assert document["reason"] == "not eligible due to preemptionPolicy=Never."
    assert document["message"].endswith("preemption: not eligible due to preemptionPolicy=Never.")


def test_unevaluated_filters_are_named() -> None:
    claiming = pod("vip", cpu="2", priority=10, volumes=["data"])
    storage = build_storage([late_claim("data"), LATE, MEASURED], [StorageKind.CAPACITIES])
    moment = replace(CLUSTER, storage=storage)
    decision = explain_preempt(claiming, moment, DEFAULT_RULES, None)
    assert preempt_document(decision)["unjudged"] == ["VolumeBinding"]
    assert "not evaluated, so the result may be too optimistic" in rendered(
        preempt_table(decision, TableRows.LIMITED)
    )


GPUS = gpus("node-1", gpu("gpu-0")), gpus("node-2", gpu("odd", others={"unsupported": "x"}))
WAITING = pod("training", cpu="1", devices=uses("wanted"), priority=10)
TWO_NODES = node("node-1", cpu="1"), node("node-2", cpu="1"), GPU, gpu_claim("wanted"), *GPUS
WHY = "claim default/wanted, request gpus: needs 1 of 1 matching device(s): 1 in use"
NOT_EVALUATED = "devices not evaluated: x of device odd (claim default/wanted)"


def test_the_device_request_that_fails_is_named() -> None:
    moment = snapshot(*TWO_NODES[:1], *TWO_NODES[2:], held_by("other", "node-1", "gpu-0"))
    explanation = explain_preempt(WAITING, moment, DEFAULT_RULES, None)
    document = preempt_document(explanation)
    reason = "cannot allocate all claims"
    assert document["rejected"]["node-1"] == {"reason": reason, "resolvable": False, "detail": WHY}
    assert f"1 {reason}." in document["message"]
    assert f"  node-1: {reason} ({WHY}) (eviction cannot help)" in explanation.decision.describe()
    assert "claim default/wanted" in rendered(preempt_table(explanation, TableRows.LIMITED))


def test_nodes_that_pass_without_being_evaluated_are_listed() -> None:
    decision = decide_filter(WAITING, snapshot(*TWO_NODES))
    document = filter_document(decision)
    assert document["feasible"] == ["node-1", "node-2"]
    assert document["undecided"] == {"node-2": NOT_EVALUATED}
    assert f"passes: {NOT_EVALUATED}" in rendered(filter_table(decision, TableRows.LIMITED))
    assert f"  node-2: {NOT_EVALUATED}" in decision.describe()
    preempting = explain_preempt(WAITING, snapshot(*TWO_NODES), DEFAULT_RULES, None)
    assert str(preempting.decision.rejected["node-2"]) == NOT_EVALUATED


def test_a_preempt_table_ranks_candidates_and_groups_rejections() -> None:
    explanation = explain_preempt(VIP, CLUSTER, DEFAULT_RULES, None)
    text = rendered(preempt_table(explanation, TableRows.LIMITED))
    lines = text.splitlines()
    assert lines[0] == "default/vip preempts pods on node-2, decided by fewest PDB violations"
    chosen = next(line for line in lines if line.startswith("→"))
    assert chosen.split() == ["→", "node-2", "default/b", "(3)", "0"]
    assert "default/tiny (1)" in text
    assert "1 (default/web)" in text
    assert "cannot help" in text


def test_a_preempt_table_says_where_eviction_was_tried() -> None:
    refused = explain_preempt(pod("vip", cpu="9", priority=10), CLUSTER, DEFAULT_RULES, None)
    asked = explain_preempt(VIP, CLUSTER, DEFAULT_RULES, ["node-1"])
    for explanation, eviction in ((refused, "cannot help"), (asked, "may help")):
        table = preempt_table(explanation, TableRows.LIMITED)
        assert eviction in rendered(table)


def test_protected_pods_are_named_with_their_rule() -> None:
    spare_web = protected_pods("reports", lambda each: each.name == "web")
    rules = SchedulerRules(policy=Policy("p", victim_guards=(spare_web,)))
    explanation = explain_preempt(VIP, CLUSTER, rules, None)
    web = {"namespace": "default", "name": "web", "uid": "web", "priority": 5}
    assert preempt_document(explanation).get("protected") == [
        {**web, "node": "node-1", "because": "protected by reports"}
    ]
    text = rendered(preempt_table(explanation, TableRows.LIMITED))
    assert "protected by reports: default/web on node-1" in text.splitlines()
    assert "does not help" in text


def test_a_filter_table_groups_nodes_by_reason() -> None:
    text = rendered(filter_table(decide_filter(VIP, CLUSTER), TableRows.LIMITED))
    assert text.startswith("default/vip fits 0 of 3 nodes")
    assert "may help" in text
    assert "cannot help" in text
    assert "fits 1 of 2 nodes" in rendered(
        filter_table(decide_filter(VIP, ROOMY), TableRows.LIMITED)
    )


def test_long_lists_are_shortened() -> None:
    many = snapshot(
        *(node(f"node-{index}", cpu="2") for index in range(9)),
        *(pod(f"pod-{index}", on=f"node-{index}", cpu="2") for index in range(9)),
    )
    explanation = explain_preempt(VIP, many, DEFAULT_RULES, None)
    assert "and 4 more" in rendered(preempt_table(explanation, TableRows.LIMITED))
    wide = rendered(preempt_table(explanation, TableRows.ALL))
    assert "and 4 more" not in wide
    assert all(candidate in wide for candidate in explanation.decision.candidates)
    assert "and 3 more" in rendered(filter_table(decide_filter(VIP, many), TableRows.LIMITED))


def test_an_empty_cluster_has_no_node_for_the_pod() -> None:
    document = preempt_document(explain_preempt(VIP, Snapshot(), DEFAULT_RULES, None))
    assert (document["node"], document["rejected"]) == (None, {})


THREE = [replica("calm"), replica("restless", restarts=3), replica("lost", node="")]


def test_a_scale_down_document() -> None:
    assert scale_down_document(decide_scale_down(THREE, {}, 1, NOW_NS)) == {
        "delete": ["lost"],
        "order": ["lost", "restless", "calm"],
        "because": [
            {"pod": "lost", "ahead_of": "restless", "criterion": "unscheduled"},
            {"pod": "restless", "ahead_of": "calm", "criterion": "restarts"},
        ],
    }


def test_a_scale_down_table_marks_the_pods_to_delete() -> None:
    text = rendered(
        scale_down_table(decide_scale_down(THREE, {}, 2, NOW_NS), "default/web", TableRows.LIMITED)
    )
    lines = [line.split() for line in text.splitlines()]
    assert lines[0] == ["default/web:", "2", "of", "3", "pods", "are", "deleted"]
    assert lines[2:] == [
        ["→", "lost", "unscheduled"],
        ["→", "restless", "node-1", "restarts"],
        ["calm", "node-1"],
    ]


def test_a_long_scale_down_is_shortened() -> None:
    many = [replica(f"pod-{index:02}") for index in range(40)]
    text = rendered(
        scale_down_table(decide_scale_down(many, {}, 22, NOW_NS), "default/web", TableRows.LIMITED)
    )
    assert "→  and 2 more" in text
    assert "   and 13 more" in text
