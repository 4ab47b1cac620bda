"""Policies by name or file: what they decide."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from extender.config.policy_file import ALL_CANDIDATE_CRITERIA
from extender.config.preemption_policy import (
    PreemptionPolicy,
    find_policy,
    load_policy_file,
    policy_of,
)
from extender.config.strict_decoding import ConfigError
from policies import decide_preemption
from policies.kubernetes.default_selector import PodOwner
from policies.kubernetes.snapshot import Snapshot
from policies.preemption.costs.candidate_criteria import CostCriterion
from policies.preemption.costs.catalog import DELETION_COST
from policies.preemption.policy import KUBE_SCHEDULER, Policy, SchedulerRules
from tests.builders import SECOND, node, pod, snapshot

HEAD = "apiVersion: reprieve.dev/v1alpha1\nkind: PreemptionPolicy\nmetadata: {name: own}\n"
NOW_NS = 7200 * SECOND
CHECKPOINT = "example.com/checkpoint-time"
LOST = "{lostWork: {amount: 399, per: seconds}"


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    return str(path)


def policy_with(tmp_path: Path, fields: str) -> Policy:
    """Return the policy of a file with one rule."""
    return find_policy(written(tmp_path, f"{HEAD}rules: [{{name: all, {fields}}}]\n")).default


@pytest.fixture
def moment() -> Snapshot:
    """Return a cluster whose nodes are full: two hours ago, only the database ran."""
    cluster = snapshot(
        node("node-1", cpu="2"),
        pod("db", on="node-1", cpu="2", priority=5, labels={"role": "db"}, started=0),
        node("node-2", cpu="2"),
        pod("a", on="node-2", cpu="1", priority=1, owner=PodOwner("Job", "a"), started=7000),
        pod("b", on="node-2", cpu="1", priority=1, namespace="batch", started=7000),
    )
    return replace(cluster, now_ns=NOW_NS)


def chosen(policy: PreemptionPolicy, moment: Snapshot, **preemptor: Any) -> str:
    """Return the node for a pod of priority 10, "" for none."""
    rules = SchedulerRules(policy=policy.default, policy_rules=policy.rules)
    decision = decide_preemption(pod("vip", cpu="2", priority=10, **preemptor), moment, rules)
    return "" if decision.chosen is None else decision.chosen.node


@pytest.mark.parametrize(
    ("order", "victim"),
    [
        ("[highest priority, earliest start]", "low"),
        ("[highest deletion cost]", "cheap"),
        ("[fewest restarts, highest priority]", "restarting"),
        ("[highest cost]", "light"),
    ],
)
def test_the_order_in_which_pods_are_reprieved(tmp_path: Path, order: str, victim: str) -> None:
    cluster = snapshot(
        node("node-1", cpu="4"),
        pod("low", on="node-1", cpu="1", priority=1, annotations={DELETION_COST: "9"}),
        pod("cheap", on="node-1", cpu="1", priority=2, annotations={DELETION_COST: "-9"}),
        pod("restarting", on="node-1", cpu="1", priority=2, restarts=7),
        pod("light", on="node-1", cpu="1", priority=2, labels={"weight": "-1"}),
    )
    weight = "'weight' in pod.labels ? int(pod.labels['weight']) : 0"
    policy = policy_with(tmp_path, f'victims: {order}, cost: {{expression: "{weight}"}}')
    decision = decide_preemption(
        pod("vip", cpu="1", priority=10), cluster, SchedulerRules(policy=policy)
    )
    assert decision.chosen is not None
    assert [each.name for each in decision.chosen.victims.pods] == [victim]


def test_the_built_in_policy_is_found_by_its_name() -> None:
    assert find_policy("kube-scheduler") == PreemptionPolicy("kube-scheduler", KUBE_SCHEDULER)


def test_the_built_in_policy_is_shown_as_a_file_would_have_it() -> None:
    built = policy_of(load_policy_file("kube-scheduler"))
    assert built.default == replace(KUBE_SCHEDULER, victims=built.default.victims)
    assert built.default.victims.criteria == KUBE_SCHEDULER.victims.criteria


@pytest.mark.parametrize(
    ("fields", "node_name"),
    [
        ("", "node-2"),
        ("candidates: [fewest victims]", "node-1"),
        ("candidates: [fewest owners]", "node-1"),
        ("candidates: [fewest namespaces]", "node-1"),
        ("candidates: [least run time]", "node-2"),
        ("candidates: [least lost work], lostWork: {weights: {cpu: 0.5}}", "node-2"),
        ("guards: {protect: [{name: x, namespaces: [batch]}]}", "node-1"),
        ("guards: {protect: [{name: x, owners: [Job]}]}", "node-1"),
        ("guards: {protect: [{name: x, labels: {matchLabels: {role: db}}}]}", "node-2"),
        (
            (
                "guards: {protect: [{name: x, labels: {matchExpressions: [{key: a, operator: In, "
                "values: [b]}]}}]}"
            ),
            "node-2",
        ),
        ("guards: {protect: [{name: x, namespaces: [batch], owners: [Job]}]}", "node-2"),
        ("guards: {minRuntime: [{for: 10m}]}", "node-1"),
        ("guards: {minRuntime: [{for: 10m, labels: {matchLabels: {role: db}}}]}", "node-2"),
        ("guards: {minRuntime: [{for: 3h}]}", ""),
        ("guards: {priorityGap: 6}", "node-2"),
        ("guards: {priorityGap: 10}", ""),
        ("guards: {maxVictims: 1}", "node-1"),
        ("victims: {strategy: cheapest, by: fewest victims}", "node-1"),
        ("victims: {strategy: cheapest, by: least run time}", "node-2"),
        # The pods of node-2 have run for 200 seconds, the database for 7200.
        (
            "guards: {maxLostWork: {amount: 399, per: seconds}}, lostWork: {weights: {cpu: 1}}",
            "",
        ),
        (
            (
                "guards: {maxLostWork: {amount: 1, per: seconds, namespaces: [batch]}}, "
                "lostWork: {weights: {cpu: 1}}, candidates: [least run time]"
            ),
            "node-1",
        ),
        (
            "guards: {maxLostWork: {amount: 6.67, per: minutes}}, lostWork: {weights: {cpu: 1}}",
            "node-2",
        ),
        (
            (
                "guards: {maxLostWork: {amount: 4, per: hours}}, lostWork: {weights: {cpu: 1}}, "
                "candidates: [fewest victims]"
            ),
            "node-1",
        ),
        (f"guards: {{limits: [{LOST}, per: 24h}}]}}, lostWork: {{weights: {{cpu: 1}}}}", ""),
        (
            (
                f"guards: {{limits: [{LOST}, per: 1h, by: namespace}}]}}, "
                "lostWork: {weights: {cpu: 1}}"
            ),
            "node-2",
        ),
    ],
)
def test_a_rule_decides(tmp_path: Path, moment: Snapshot, fields: str, node_name: str) -> None:
    path = written(tmp_path, f"{HEAD}rules: [{{name: all, {fields}}}]\n")
    assert chosen(find_policy(path), moment) == node_name


@pytest.mark.parametrize(
    ("preemptor", "node_name"),
    [
        ({"namespace": "team-a"}, "node-1"),
        ({"labels": {"tier": "gold"}}, ""),
        ({"namespace": "team-a", "labels": {"tier": "gold"}}, "node-1"),
        ({}, "node-2"),
    ],
)
def test_the_first_rule_whose_preemptors_match_applies(
    tmp_path: Path, moment: Snapshot, preemptor: dict[str, Any], node_name: str
) -> None:
    rules = """
rules:
- name: team-a
  preemptors: {namespaces: [team-a]}
  candidates: [fewest victims]
- name: gold
  preemptors: {labels: {matchLabels: {tier: gold}}}
  guards: {priorityGap: 100}
- name: others
"""
    policy = find_policy(written(tmp_path, HEAD + rules))
    assert chosen(policy, moment, **preemptor) == node_name
    names = [rule.policy.name for rule in policy.rules]
    assert (policy.name, names) == ("own", ["own/team-a", "own/gold"])
    assert policy.default.name == "own"


def test_a_file_in_json_is_a_policy(tmp_path: Path, moment: Snapshot) -> None:
    text = (
        '{"apiVersion": "reprieve.dev/v1alpha1", "kind": "PreemptionPolicy",\n'
        '"metadata": {"name": "own"}, "rules": [{"name": "all", "guards": {"maxVictims": 1}}]}'
    )
    assert chosen(find_policy(written(tmp_path, text)), moment) == "node-1"


def test_a_pod_waits_before_it_preempts(tmp_path: Path, moment: Snapshot) -> None:
    policy = policy_with(tmp_path, "guards: {preemptionDelay: 30s}")
    waits = pod("vip", waiting_since_ns=NOW_NS - 10 * SECOND)
    assert "it waits for another 20s" in (policy.refusal(waits, moment) or "")
    assert policy.refusal(pod("vip", waiting_since_ns=NOW_NS - 30 * SECOND), moment) is None


def test_strict_budgets_are_chosen(tmp_path: Path) -> None:
    assert policy_with(tmp_path, "guards: {pdb: strict}").strict_budgets
    assert not policy_with(tmp_path, "guards: {pdb: prefer}").strict_budgets


@pytest.mark.parametrize("name", ALL_CANDIDATE_CRITERIA)
def test_every_criterion_has_its_name(tmp_path: Path, name: str) -> None:
    [criterion] = policy_with(tmp_path, f"candidates: [{name}]").candidates
    assert criterion.name == name


def test_weights_are_thousandths_and_have_defaults(tmp_path: Path) -> None:
    pods = pod("train", cpu="2", others={"nvidia.com/gpu": "4"}, started=0)
    for fields, hourly in (("", 4040), ("lostWork: {weights: {cpu: 0.125}}, ", 250)):
        policy = policy_with(tmp_path, f"{fields}candidates: [least lost work]")
        [criterion] = policy.candidates
        assert isinstance(criterion, CostCriterion)
        assert criterion.cost.at(pods, 3600 * SECOND) == hourly * 3600


@pytest.mark.parametrize(
    ("fields", "annotation", "value", "protected"),
    [
        ("candidates: [lowest deletion cost]", DELETION_COST, "much", True),
        ("candidates: [lowest deletion cost]", DELETION_COST, "5", False),
        ("candidates: [most restarts]", DELETION_COST, "much", False),
        (
            f"candidates: [least lost work], lostWork: {{checkpoint: {CHECKPOINT}}}",
            CHECKPOINT,
            "today",
            True,
        ),
        (
            (
                "guards: {maxLostWork: {amount: 1, per: hours}}, "
                f"lostWork: {{checkpoint: {CHECKPOINT}}}"
            ),
            CHECKPOINT,
            "today",
            True,
        ),
        (
            f"guards: {{limits: [{LOST}, per: 1h}}]}}, lostWork: {{checkpoint: {CHECKPOINT}}}",
            CHECKPOINT,
            "today",
            True,
        ),
        (
            f"candidates: [least lost work], lostWork: {{checkpoint: {CHECKPOINT}}}",
            CHECKPOINT,
            "2026-01-01T00:00:00Z",
            False,
        ),
        (f"lostWork: {{checkpoint: {CHECKPOINT}}}", CHECKPOINT, "today", False),
    ],
)
def test_pods_of_an_unknown_cost_are_protected(
    tmp_path: Path, fields: str, annotation: str, value: str, *, protected: bool
) -> None:
    policy = policy_with(tmp_path, fields)
    web = pod("web", annotations={annotation: value}, started=0)
    assert policy.may_evict(web, NOW_NS) is not protected


def test_a_policy_is_a_name_or_a_file() -> None:
    with pytest.raises(ConfigError) as raised:
        find_policy("kube")
    assert str(raised.value) == "policy 'kube': no such file or built-in policy (kube-scheduler)"
