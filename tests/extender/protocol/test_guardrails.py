"""The guardrails: answers that must not be sent."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from extender.protocol.preempt_verb import guardrail_violation
from policies.kubernetes.releases import NEWEST, RELEASES, Release
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.decision import VictimSet
from policies.preemption.guards.victim_guard import protected_pods
from policies.preemption.policy import KUBE_SCHEDULER, Policy, SchedulerRules
from policies.preemption.victim_units import victim_units
from tests.builders import holding, node, pod, pod_group, snapshot

PREEMPTOR = pod("vip", priority=10)
LOW = pod("low", on="node-1", priority=1)
MIDDLE = pod("middle", on="node-1", priority=5)
EQUAL = pod("equal", on="node-1", priority=10)
HIGHER = pod("higher", on="node-1", priority=11)
FAR = pod("far", on="node-2", priority=1)
CLUSTER = snapshot(node("node-1"), node("node-2"), LOW, MIDDLE, EQUAL, HIGHER, FAR)
GUARDED = Policy(
    "careful", victim_guards=(protected_pods("no lows", lambda each: each.name == "low"),)
)


def judge(
    *victims: Pod,
    on: str = "node-1",
    moment: Snapshot = CLUSTER,
    release: Release = NEWEST,
    policy: Policy = KUBE_SCHEDULER,
) -> str | None:
    rules, units = SchedulerRules(release, policy=policy), victim_units(moment, release)
    return guardrail_violation(on, VictimSet(victims), PREEMPTOR, units, rules)


@pytest.mark.parametrize(
    ("victims", "options"),
    [
        ([LOW], {}),
        ([MIDDLE, LOW], {}),
        ([FAR], {"on": "node-2"}),
        ([], {"release": RELEASES["1.38"]}),
        ([MIDDLE], {"policy": GUARDED}),
    ],
)
def test_a_valid_answer_passes(victims: list[Pod], options: dict[str, Any]) -> None:
    assert judge(*victims, **options) is None


@pytest.mark.parametrize(
    ("victims", "options", "problem"),
    [
        ([LOW], {"on": "node-9"}, "node node-9 is not known"),
        ([LOW], {"on": "node-2"}, "victim default/low (low) is not on node node-2"),
        ([EQUAL], {}, "victim default/equal has priority 10, not below 10"),
        ([HIGHER, LOW], {}, "victim default/higher has priority 11, not below 10"),
        ([LOW, MIDDLE], {}, "the victims on node node-1 are not ordered by importance"),
        ([MIDDLE, LOW], {"policy": GUARDED}, "victim default/low is protected by no lows"),
        (
            [],
            {"release": RELEASES["1.37"]},
            "node node-1 has no victims, which release 1.37 refuses",
        ),
    ],
)
def test_an_invalid_answer_is_refused_with_the_reason(
    victims: list[Pod], options: dict[str, Any], problem: str
) -> None:
    assert judge(*victims, **options) == problem


def test_a_victim_is_looked_up_by_uid_not_by_name() -> None:
    recreated = pod("low", on="node-1", priority=1, uid="another")
    assert judge(recreated) == "victim default/low (another) is not on node node-1"


def test_a_node_with_an_unreadable_pod_is_no_candidate() -> None:
    state = holding(node("node-1"), LOW, unreadable=["default/broken"])
    moment = Snapshot(nodes={"node-1": state})
    assert judge(LOW, moment=moment) == (
        "node node-1 holds a pod that could not be read: default/broken"
    )


def test_a_running_preemptor_is_not_named_even_if_its_group_has_a_lower_priority() -> None:
    running = replace(PREEMPTOR, node_name="node-1", group="crew")
    moment = snapshot(node("node-1"), running, groups=[pod_group("crew", "single", priority=0)])
    assert judge(running, moment=moment) == "victim default/vip is the preemptor itself"
