"""The recipes of deploy/policies: each is valid, documented, and does what its page says."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

import pytest
from msgspec import structs

from extender.config.preemption_policy import find_policy
from policies.kubernetes.default_selector import PodOwner
from policies.kubernetes.policy_objects import PolicyObjects
from policies.kubernetes.snapshot import PastPreemption, Pod, Snapshot
from policies.preemption.decision import PreemptionDecision
from policies.preemption.explanation import explain_decision
from policies.preemption.policy import SchedulerRules
from policies.preemption.reference_engine import preempt
from policies.preemption.vectorized import VectorizedEngine
from policies.testing import check_policy
from tests.builders import SECOND, node, pod, snapshot
from tests.commands import ROOT, reprieve_json

RECIPES: Final = {path.stem: path for path in (ROOT / "deploy" / "policies").glob("*.yaml")}
PAGE: Final = (ROOT / "docs" / "policies.md").read_text()
ROWS: Final = dict(
    re.findall(r"^\| \[([\w-]+)\]\(../deploy/policies/.*\| `(gpu-\d)`.*\|$", PAGE, re.MULTILINE)
)
EXAMPLE: Final = (
    *("explain", "preempt", "--cluster", "docs/examples/gpu-cluster.yaml"),
    *("--pod", "docs/examples/pretrain.yaml", "--now", "2026-01-01T12:00:00Z"),
)
HOUR: Final = 3600 * SECOND
NOW: Final = 100 * HOUR


def test_every_recipe_has_its_outcome_on_the_page() -> None:
    assert set(ROWS) == set(RECIPES)


@pytest.mark.parametrize("name", RECIPES)
async def test_a_recipe_chooses_the_node_that_the_page_names(name: str) -> None:
    found = await reprieve_json(*EXAMPLE, "--policy", str(RECIPES[name]))
    assert found["node"] == ROWS[name]


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_named_as_its_file(name: str) -> None:
    assert find_policy(str(RECIPES[name])).name == name


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_obeys_the_laws(name: str) -> None:
    found = find_policy(str(RECIPES[name]))
    for policy in (found.default, *(rule.policy for rule in found.rules)):
        check_policy(policy)


def of(team: str, name: str, **fields: Any) -> Pod:
    """Return a pod of a team: its namespace, and the name of its Job."""
    owner = PodOwner("Job", team)
    return pod(name, uid=f"{team}-{name}", cpu="1", namespace=team, owner=owner, **fields)


def decided(recipe: str, preemptor: Pod, cluster: Snapshot) -> PreemptionDecision:
    """Return the decision of both engines."""
    policy = find_policy(str(RECIPES[recipe]))
    rules = SchedulerRules(policy=policy.default, policy_rules=policy.rules)
    cluster = replace(cluster, now_ns=NOW)
    decision = preempt(preemptor, cluster, rules)
    assert VectorizedEngine(rules).preempt(preemptor, cluster) == decision
    return decision


def node_of(decision: PreemptionDecision) -> str:
    """Return the chosen node, "" for none."""
    return "" if decision.chosen is None else decision.chosen.node


def full(*running: Pod) -> Snapshot:
    """Return nodes that a pod each fills."""
    names = [f"{each.namespace}-{each.name}" for each in running]
    placed = (
        structs.replace(each, node_name=name) for each, name in zip(running, names, strict=True)
    )
    return snapshot(*(node(name, cpu="1") for name in names), *placed)


def past(victim: Pod, preemptor: Pod | None, minutes: int) -> PastPreemption:
    return PastPreemption(NOW - minutes * 60 * SECOND, victim, preemptor)


@pytest.mark.parametrize(("victims", "node"), [(4, "a-run"), (5, "b-run")])
def test_five_an_hour_per_team(victims: int, node: str) -> None:
    cluster = full(of("a", "run", priority=1), of("b", "run", priority=2))
    recent = tuple(past(of("a", f"gone-{n}"), None, minutes=10) for n in range(victims))
    old = tuple(past(of("a", f"old-{n}"), None, minutes=61) for n in range(9))
    cluster = replace(cluster, preemptions=recent + old)
    decision = decided("five-an-hour-per-team", of("c", "new", priority=9), cluster)
    assert node_of(decision) == node


@pytest.mark.parametrize(("minutes", "node"), [(59, "b-run"), (60, "a-run")])
def test_no_ping_pong(minutes: int, node: str) -> None:
    cluster = full(of("a", "run", priority=1), of("b", "run", priority=2))
    cluster = replace(cluster, preemptions=(past(of("c", "gone"), of("a", "run"), minutes),))
    decision = decided("no-ping-pong", of("c", "new", priority=9), cluster)
    assert node_of(decision) == node


def test_small_disruptions_are_followed_by_rest() -> None:
    cluster = full(of("a", "run", priority=1), of("b", "run", priority=2))
    cluster = replace(cluster, preemptions=(past(of("a", "gone"), of("x", "y"), minutes=9),))
    decision = decided("small-disruptions", of("c", "new", priority=9), cluster)
    assert node_of(decision) == "b-run"
    refused = decided("small-disruptions", of("x", "new", priority=9), cluster)
    assert refused.eligible
    just = replace(cluster, preemptions=(past(of("a", "gone"), of("x", "y"), minutes=0),))
    assert decided("small-disruptions", of("x", "new", priority=9), just).reason == (
        "not eligible due to cooldown of the policy: x/Job/x has preempted, for another 1m0s."
    )


def test_kept_promises() -> None:
    promised = of("a", "run", priority=1, annotations={"example.com/promised": "true"})
    cluster = full(promised, of("b", "run", priority=2))
    for priority_class, node_name in (("", "b-run"), ("urgent", "a-run")):
        new = of("c", "new", priority=9, priority_class=priority_class)
        assert node_of(decided("kept-promises", new, cluster)) == node_name


def test_restarting_pods_first() -> None:
    cluster = full(of("a", "run"), of("b", "run", restarts=7), of("c", "run", restarts=2))
    decision = decided("restarting-pods-first", of("d", "new", priority=9), cluster)
    assert node_of(decision) == "b-run"


def test_gpu_defragmentation() -> None:
    one, two, four = ({"nvidia.com/gpu": count} for count in "124")
    cluster = snapshot(
        *(node(name, others=four) for name in "ab"),
        of("a", "two", on="a", priority=1, others=two),
        of("a", "other", on="a", priority=99, others=two),
        of("b", "one", on="b", priority=1, others=one),
        of("b", "other", on="b", priority=99, others=two),
        of("b", "third", on="b", priority=99, others=one),
    )
    new = of("c", "new", priority=9, others=one)
    decision = decided("gpu-defragmentation", new, cluster)
    assert (node_of(decision), decision.decided_by) == ("b", "least fragmentation")


def around_a_small_node(*running: Pod) -> Snapshot:
    """Return two nodes that the preemptor fits, and one that it does not."""
    sizes = (("a", "8Gi"), ("b", "8Gi"), ("small", "1Gi"))
    return snapshot(*(node(name, cpu="1", memory=memory) for name, memory in sizes), *running)


def test_victims_that_run_elsewhere() -> None:
    large, little = (
        of(name, "run", on=name, memory=size) for name, size in (("a", "4Gi"), ("b", "1Gi"))
    )
    new = of("c", "new", priority=9, memory="2Gi")
    decision = decided("victims-that-run-elsewhere", new, around_a_small_node(large, little))
    assert decision.consequences == {"most victims that can run elsewhere": {"a": 1, "b": 0}}
    assert node_of(decision) == "b"


def test_least_cascade() -> None:
    returns = of("a", "run", on="a", priority=2)
    alone = structs.replace(of("b", "run", on="b", priority=5), owner=None)
    cluster = around_a_small_node(returns, alone, of("d", "run", on="small", priority=1))
    decision = decided("least-cascade", of("c", "new", priority=9, memory="2Gi"), cluster)
    assert decision.consequences == {"least cascade": {"a": 2, "b": 1}}
    assert node_of(decision) == "b"


def test_interactive_before_batch() -> None:
    batch, interactive = {"tier": "batch"}, {"tier": "interactive"}
    cluster = full(
        of("a", "run", priority=1, labels=interactive),
        of("b", "run", priority=5, labels=batch),
        of("c", "run", priority=3),
    )
    decision = decided(
        "interactive-before-batch", of("d", "new", priority=9, labels=interactive), cluster
    )
    assert node_of(decision) == "b-run"
    waiting = of("e", "new", priority=9, labels=batch, waiting_since_ns=NOW - 30 * SECOND)
    assert decided("interactive-before-batch", waiting, cluster).reason == (
        "not eligible due to preemptionDelay of the policy: it waits for another 30s."
    )
    patient = structs.replace(waiting, waiting_since_ns=NOW - 60 * SECOND)
    found = decided("interactive-before-batch", patient, cluster)
    assert node_of(found) == "c-run"
    policy = find_policy(str(RECIPES["interactive-before-batch"]))
    rules = SchedulerRules(policy=policy.default, policy_rules=policy.rules)
    protected = explain_decision(found, replace(cluster, now_ns=NOW), rules).protected
    assert [each.because for each in protected] == ["protected by interactive"]


@pytest.mark.parametrize(("seconds", "left"), [(0, "2m0s"), (119, "1s"), (120, ""), (None, "")])
def test_the_autoscaler_is_first(seconds: int | None, left: str) -> None:
    new = of("b", "new", priority=9)
    announced = {} if seconds is None else {new.uid: NOW - seconds * SECOND}
    objects = PolicyObjects(announced_ns={**announced, "another": NOW})
    cluster = replace(full(of("a", "run")), policy_objects=objects)
    decision = decided("autoscaler-first", new, cluster)
    refusal = (
        "not eligible due to waitForAutoscaler of the policy: "
        f"it waits for an announced node, for another {left}."
    )
    assert (decision.reason, node_of(decision)) == ((refusal, "") if left else ("", "a-run"))


def test_a_clear_difference() -> None:
    cluster = full(
        of("kube-system", "dns", priority=1),
        of("a", "run", priority=950),
        of("b", "run", priority=900),
    )
    decision = decided("clear-difference", of("c", "new", priority=1000), cluster)
    assert node_of(decision) == "b-run"
