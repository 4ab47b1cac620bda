"""Whether a pod group may still fit, and which groups are not scheduled at all."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from policies.kubernetes.pod_groups import PodGroup
from policies.kubernetes.releases import release
from policies.kubernetes.snapshot import Pod
from policies.preemption.pod_group_cycle import PodGroupProgress, queue_order, validation_error
from tests.builders import pod, pod_group

GATES = {"GenericWorkload": True}
GANG = pod_group("gang", priority=5, min_count=2)
MEMBER = pod("member", priority=5, group="gang")
SAME = "all pods in a single pod group should have the same"
GROUP_POLICY = "preemption policy as the pod group's preemption policy"


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ("", "minCount (3) is not yet satisfied: 1 scheduled, 4 remaining"),
        ("--", "minCount (3) is not yet satisfied: 1 scheduled, 2 remaining"),
        ("---", "minCount (3) cannot be satisfied: 1 scheduled, 1 remaining"),
        ("+", "minCount (3) is not yet satisfied: 2 scheduled, 3 remaining"),
        ("++", ""),
        ("++--", ""),
    ],
)
def test_a_group_fits_once_enough_members_have_nodes(steps: str, message: str) -> None:
    progress = PodGroupProgress(3, scheduled=1, remaining=4)
    for step in steps:
        progress = progress.placed() if step == "+" else progress.refused()
    assert str(progress) == message
    assert progress.is_satisfied is (message == "")
    assert progress.is_hopeless is ("cannot" in message)


def test_members_are_tried_by_priority_then_arrival() -> None:
    members = [pod("a", priority=1), pod("b", priority=2), pod("c", priority=1)]
    assert [each.name for each in queue_order(members)] == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("group", "other", "gates", "message"),
    [
        (GANG, MEMBER, {}, None),
        (
            GANG,
            structs.replace(MEMBER, scheduler_name="batch"),
            {},
            f'{SAME} .spec.schedulerName set, got: "batch" and "default-scheduler"',
        ),
        (
            GANG,
            structs.replace(MEMBER, priority=1),
            {},
            f"{SAME} priority as the pod group's priority, got 1 and 5",
        ),
        (
            GANG,
            structs.replace(MEMBER, preempts=False),
            {},
            f"{SAME} preemption policy, got Never and PreemptLowerPriority",
        ),
        (
            replace(GANG, preempts=False),
            MEMBER,
            {"PodGroupPreemptionPolicy": True},
            f"{SAME} {GROUP_POLICY}, got PreemptLowerPriority and Never",
        ),
        (replace(GANG, preempts=False), MEMBER, {}, None),
    ],
    ids=["valid", "scheduler", "priority", "policy", "policy of the group", "gate off"],
)
def test_members_that_differ_from_their_group_are_an_error(
    group: PodGroup, other: Pod, gates: dict[str, bool], message: str | None
) -> None:
    read = release("1.37", {**GATES, **gates})
    assert validation_error(group, [MEMBER, other], [], read) == message
    assert validation_error(group, [MEMBER], [other], read) == message
