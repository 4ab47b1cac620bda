"""The document of ``explain preempt -o html``: what it contains, and that it loads nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import pytest
from msgspec.structs import replace

from extender.explain.decisions import explain_preempt
from extender.ledger_page.explanation_view import (
    ExplanationView,
    explanation_document,
    explanation_view,
)
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.guards.victim_guard import protected_pods
from policies.preemption.policy import DEFAULT_RULES, Policy, SchedulerRules
from tests.builders import budget, node, pod, snapshot
from tests.extender.ledger_page.documents import text_of

EXAMPLE: Final = (
    "explain",
    "preempt",
    "--cluster",
    "docs/quick-start/cluster.yaml",
    "--pod",
    "docs/quick-start/urgent.yaml",
)
VIP: Final = pod("vip", cpu="2", priority=10)
CLUSTER: Final = snapshot(
    node("node-1", cpu="2"),
    pod("web", on="node-1", cpu="1", priority=5, labels={"app": "web"}),
    pod("tiny", on="node-1", cpu="0", priority=1),
    node("node-2", cpu="2"),
    pod("a", on="node-2", cpu="1", priority=2),
    pod("b", on="node-2", cpu="1", priority=3),
    node("node-3", cpu="1"),
    node("node-4", cpu="1"),
    budget("web", match={"app": "web"}),
)


def explained(
    cluster: Snapshot, preemptor: Pod = VIP, rules: SchedulerRules = DEFAULT_RULES
) -> ExplanationView:
    return explanation_view(explain_preempt(preemptor, cluster, rules, None), cluster, rules)


def test_the_winner_stands_beside_the_closest_rival() -> None:
    page = explained(CLUSTER)
    assert page.sentence == (
        "default/b and default/a were chosen for eviction from node-2 so that default/vip could"
        " run: fewest PDB violations separated node-2 from node-1."
    )
    chosen, rival = page.decision.chosen, page.decision.rival
    assert chosen is not None
    assert rival is not None
    assert [(each.role, each.node) for each in (chosen, rival)] == [
        ("chosen", "node-2"),
        ("closest rival", "node-1"),
    ]
    assert [each.kind for each in chosen.bars[0].before] == ["victim", "victim"]
    assert [each.kind for each in chosen.bars[0].after] == ["preemptor"]
    assert [each.key for each in rival.spared] == ["default/tiny"]
    assert rival.violated_budgets == ("default/web",)
    first = page.decision.criteria[0]
    assert (first.criterion, first.chosen, first.rival, first.effect) == (
        "fewest PDB violations",
        "0",
        "1",
        "decides",
    )


def test_nodes_are_grouped_by_the_reason_of_their_rejection() -> None:
    (group,) = explained(CLUSTER).rejected
    assert (group.reason, group.count, group.names) == (
        "Insufficient cpu (eviction cannot help)",
        2,
        ("node-3", "node-4"),
    )


def test_protected_pods_are_named_with_their_rule() -> None:
    spare_web = protected_pods("reports", lambda each: each.name == "web")
    page = explained(CLUSTER, rules=SchedulerRules(policy=Policy("p", victim_guards=(spare_web,))))
    (group,) = page.protected
    assert (group.reason, group.names) == ("protected by reports", ("default/web on node-1",))
    assert page.decision.rival is None


def test_the_best_of_many_candidates_have_bars_and_the_others_are_counted() -> None:
    many = snapshot(
        *(node(f"node-{number:02}", cpu="2") for number in range(30)),
        *(
            pod(f"pod-{number:02}", on=f"node-{number:02}", cpu="2", priority=number % 9)
            for number in range(30)
        ),
    )
    page = explained(many)
    shown = [page.decision.chosen, page.decision.rival, *page.decision.others]
    assert [each.node for each in shown if each is not None and each.bars] == [
        *("node-00", "node-09", "node-18", "node-27", "node-01", "node-10", "node-19", "node-28"),
        *("node-02", "node-11", "node-20", "node-29"),
    ]
    assert page.decision.candidates == 30


def test_long_groups_are_shortened() -> None:
    small = snapshot(*(node(f"node-{number:02}", cpu="1") for number in range(30)))
    text = text_of(
        explanation_document(explain_preempt(VIP, small, DEFAULT_RULES, None), small, DEFAULT_RULES)
    )
    assert "node-18, node-19 and 10 more" in text


@pytest.mark.parametrize(
    ("preemptor", "sentence"),
    [
        (pod("big", cpu="9", priority=10), "preemption is not helpful on any node."),
        (replace(VIP, node_name="node-1"), "may not preempt: the pod is bound to node node-1."),
        (pod("small", cpu="0", priority=10), "default/small: the pod fits without preemption."),
    ],
)
def test_a_pod_that_preempts_none_is_explained(preemptor: Pod, sentence: str) -> None:
    page = explained(CLUSTER, preemptor)
    assert sentence in page.sentence
    assert page.decision.chosen is None
    explanation = explain_preempt(preemptor, CLUSTER, DEFAULT_RULES, None)
    assert page.sentence in text_of(explanation_document(explanation, CLUSTER, DEFAULT_RULES))


def test_names_are_escaped() -> None:
    hostile = pod("<script>alert(1)</script>", cpu="2", priority=10)
    explanation = explain_preempt(hostile, CLUSTER, DEFAULT_RULES, None)
    document = explanation_document(explanation, CLUSTER, DEFAULT_RULES)
    assert "<script" not in document
    assert "&lt;script&gt;" in document


def test_the_command_prints_one_file_that_loads_nothing(
    command_line: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line(*EXAMPLE, "--now", "2026-01-02T15:04:05Z", "-o", "html") == 0
    document, errors = capsys.readouterr()
    assert errors == ""
    text = text_of(document)
    assert "Decided at 2026-01-02 15:04:05 UTC" in text
    assert "default/report was chosen for eviction from node-1" in text
    assert re.search(r"lowest priority of the first victim\s+100\s+200\s+← decides", text)
    assert "spared default/web-1 priority 500" in text


@pytest.mark.parametrize(
    "command",
    [
        ("explain", "filter", *EXAMPLE[2:]),
        ("policy", "show", "kube-scheduler"),
        ("advise", "eviction"),
    ],
)
def test_other_commands_print_no_page(
    command: tuple[str, ...],
    command_line: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command_line(*command, "-o", "html") == 2
    line = "-o html: the answer has no page; expected table, wide, json or yaml"
    assert capsys.readouterr() == ("", f"reprieve: {line}\n")
