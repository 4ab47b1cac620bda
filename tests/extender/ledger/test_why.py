"""Why a pod was preempted: the sentences of its records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from extender.ledger.advice import advice
from extender.ledger.criterion_text import UNITS, criterion_text
from extender.ledger.entry import LedgerRecord, Outcome, State, format_id
from extender.ledger.why import WhyDocument, why_document
from policies.preemption.consequences.criteria import NOT_COUNTED
from policies.preemption.costs.catalog import cost_criteria, run_time
from policies.preemption.policy import CANDIDATE_CRITERIA
from tests.builders.ledgers import (
    at,
    bound,
    candidate,
    decision,
    example_records,
    gone,
    prioritized_pod,
)

URGENT = prioritized_pod("urgent", 1000)
WEB = prioritized_pod("web", 100)


def why(key: str, *records: LedgerRecord, uid: str = "") -> WhyDocument:
    found = why_document(key, uid, records)
    assert found is not None
    return found


def account(key: str, *records: LedgerRecord) -> Mapping[str, Sequence[str]]:
    """Return the texts of the newest decision by topic."""
    texts: dict[str, list[str]] = {}
    for line in why(key, *records)["decision"]["account"]:
        texts.setdefault(line["topic"], []).append(line["text"])
    return texts


def test_a_victim_has_its_preemptor_node_criterion_and_what_followed() -> None:
    record = example_records()[0]
    example_id, victim = format_id(record.entry.id), record.entry.victims[0]
    found = account(victim.key, record)
    assert found == {
        "at": ["2026-01-02T15:04:05Z"],
        "preemptor": ["default/urgent (priority 1000, high, team search)"],
        "victim": [
            "default/report (priority 100, low, Job/report, team finance, had run for 1h30m0s)"
        ],
        "node": ["node-1, the best of 3 candidates"],
        "decided by": [
            "lowest priority of the first victim: 100, and 200 on node-3, the runner-up"
        ],
        "why this pod": [
            "its priority 100 is below 1000 of default/urgent; below that of default/web-1 (500)"
        ],
        "spared there": ["default/web-1 (500)"],
        "followed": [
            (
                "default/report was gone after 12s; report-x7k2p took its place, bound to node-2 "
                "after 42s"
            ),
            "default/urgent was bound to node-1 after 14s",
        ],
        "advice": list(advice(victim, record)),
        "decision": [
            f"{example_id}, preempt, policy kube-scheduler, rules of 1.38",
        ],
    }


def test_a_preemptor_has_its_victims_and_what_became_of_each() -> None:
    other = prioritized_pod("other", 50)
    record = decision(
        0,
        URGENT,
        candidate("node-1", [WEB, other], violated=["default/web"]),
        outcome=Outcome(State.UNKNOWN, victims=(gone(1, "web-2"),)),
    )
    found = account("default/urgent", record)
    assert found["victim"] == ["default/web (priority 100)", "default/other (priority 50)"]
    assert found["budgets violated"] == ["default/web"]
    assert found["decided by"] == ["nothing: there was no other candidate"]
    assert found["followed"] == [
        "default/web was gone after 1s; web-2 took its place and is pending",
        "default/other was not seen to be deleted",
        "default/urgent was not bound until the ledger ceased to follow it",
    ]
    assert account("default/web", record)["also preempted"] == ["default/other (50)"]


@pytest.mark.parametrize(
    ("spared", "reasons"),
    [
        ([], ", and no pod that could be preempted stays on the node"),
        ([("a", 500)], "; below that of default/a (500)"),
        ([("a", 100)], "; equal to that of default/a (100), where the order of policy p decides"),
        ([("a", 50)], "; above that of default/a (50), which fit beside the preemptor"),
        (
            [("a", 500), ("b", 50), ("c", 50)],
            (
                "; below that of default/a (500)"
                "; above that of default/b (50), default/c (50), which fit beside the preemptor"
            ),
        ),
        (
            [(f"a{n}", 500) for n in range(6)],
            f"; below that of {', '.join(f'default/a{n} (500)' for n in range(5))}, 1 more",
        ),
    ],
)
def test_a_victim_is_compared_with_the_pods_that_stay(
    spared: Sequence[tuple[str, int]], reasons: str
) -> None:
    chosen = candidate("node-1", [WEB], spared=[prioritized_pod(*each) for each in spared])
    found = account("default/web", decision(0, URGENT, chosen, policy="p"))
    assert found["why this pod"] == [f"its priority 100 is below 1000 of default/urgent{reasons}"]


@pytest.mark.parametrize(
    ("fields", "summary"),
    [
        ({}, "no preemption makes room for default/urgent"),
        ({"fits": 1}, "default/urgent fits 1 node"),
        (
            {"fallback": "late: waited 0.5 s"},
            "no decision about default/urgent: late: waited 0.5 s",
        ),
        ({"node": "n", "kept": (candidate("n", []),)}, "default/urgent needs no victims on n"),
        ({"node": "n", "kept": (candidate("n", [WEB]),)}, "default/urgent preempts 1 pod on n"),
    ],
)
def test_a_decision_about_a_preemptor_is_a_sentence(fields: Any, summary: str) -> None:
    found = why("default/urgent", decision(0, URGENT, **fields))
    assert (found["decision"]["role"], found["decision"]["summary"]) == ("preemptor", summary)


def test_a_decision_without_a_node_has_its_reasons() -> None:
    record = decision(
        0,
        URGENT,
        message="0/3 nodes are available",
        rejected={"Too many pods": 1, "Insufficient cpu": 2},
        protected={"rule a protects them": 4},
        refused_attempt="too soon",
        refused_nodes={"over the limit": 1},
        notes=("deferred",),
    )
    found = account("default/urgent", record)
    assert found["message"] == ["0/3 nodes are available"]
    assert found["rejected"] == ["2 nodes: Insufficient cpu; 1 node: Too many pods"]
    assert found["protected"] == ["4 pods: rule a protects them"]
    assert found["refused"] == ["too soon", "1 node: over the limit"]
    assert found["note"] == ["deferred"]


def test_the_newest_preemption_is_in_full_and_other_decisions_are_a_line_each() -> None:
    records = [
        decision(n, URGENT, candidate(f"node-{n}", [WEB]), outcome=bound(n, "x", gone(n + 1)))
        for n in range(3)
    ]
    found = why("default/web", *records)
    assert found["decision"]["entry"] == records[2].entry
    assert [each["summary"] for each in found["others"]] == [
        "default/web was preempted on node-1 for default/urgent",
        "default/web was preempted on node-0 for default/urgent",
    ]


def test_a_preemption_comes_before_newer_decisions_without_victims() -> None:
    preemption = decision(0, URGENT, candidate("node-1", [WEB]))
    found = why("default/urgent", preemption, decision(9, URGENT, fits=1))
    assert found["decision"]["entry"] == preemption.entry
    assert [each["summary"] for each in found["others"]] == ["default/urgent fits 1 node"]


def test_a_victim_that_was_not_deleted_was_only_named() -> None:
    found = why("default/web", decision(0, URGENT, candidate("node-1", [WEB])))
    summary = "default/web was named as a victim on node-1 for default/urgent"
    assert (found["decision"]["role"], found["decision"]["summary"]) == ("victim", summary)


@pytest.mark.parametrize(
    ("key", "uid", "seconds"),
    [
        ("default/web", "", [2, 1]),
        ("default/web", "first", [1]),
        ("default/web", "second", [2]),
        ("default/web", "third", []),
        ("default/no", "", []),
    ],
)
def test_a_uid_selects_one_of_several_pods_of_a_name(
    key: str, uid: str, seconds: Sequence[int]
) -> None:
    records = [
        decision(n, URGENT, candidate("node-1", [msgspec.structs.replace(WEB, uid=each)]))
        for n, each in ((1, "first"), (2, "second"))
    ]
    found = why_document(key, uid, records)
    told = [] if found is None else [found["decision"]["at"], *(it["at"] for it in found["others"])]
    assert told == [f"2026-01-02T15:04:{5 + second:02}Z" for second in seconds]


def test_equal_candidates_are_decided_by_name() -> None:
    record = decision(
        0,
        URGENT,
        candidate("node-1", [WEB], (0, 100)),
        candidate("node-2", [WEB], (0, 100)),
        decided_by="node name",
    )
    text = "node name: node-2, the runner-up, is equal by all criteria"
    assert account("default/web", record)["decided by"] == [text]


@pytest.mark.parametrize(
    ("criterion", "key", "text"),
    [
        ("fewest PDB violations", 2, "2"),
        ("smallest sum of priorities", 2 * 2**31 + 300, "300"),
        ("latest start of the most important victims", -at(0), "2026-01-02T15:04:05Z"),
        ("latest start of the most important victims", 1 - 2**63, "not started"),
        ("least lost work", 9_000_000, "2.5 h"),
        ("least run time", 90, "1m30s"),
        ("most restarts", -3, "3"),
        ("highest quota usage", -875, "87.5%"),
        ("most victims that can run elsewhere", 1, "1 cannot"),
        ("least cascade", NOT_COUNTED, "not counted"),
    ],
)
def test_values_have_their_units(criterion: str, key: int, text: str) -> None:
    assert criterion_text(criterion, key, 2) == text


def test_the_criteria_with_units_are_those_of_policies() -> None:
    known = {*CANDIDATE_CRITERIA, *cost_criteria(run_time()), "most victims that can run elsewhere"}
    assert set(UNITS) <= known
