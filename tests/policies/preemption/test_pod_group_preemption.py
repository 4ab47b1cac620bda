"""Victims of a pod group, where upstream's tables have no case."""

from __future__ import annotations

from policies import SchedulerRules
from policies.kubernetes.releases import release
from policies.kubernetes.snapshot import Pod
from policies.preemption.pod_group_preemption import (
    PodGroupDryRun,
    PodGroupPreemptor,
    start_dry_run,
)
from policies.preemption.victim_units import units_for_pod_groups
from tests.builders import node, pod, pod_group, snapshot

RULES = SchedulerRules(release("1.37", {"GenericWorkload": True}))
GANG = pod_group("gang", "single", priority=100)


def member(name: str, nominated: str | None) -> Pod:
    return pod(name, cpu="2", priority=100, group="gang", nominated_node=nominated)


def test_members_that_are_nominated_already_count_once() -> None:
    """kube-scheduler does not know the requests of members while it schedules their group."""
    members = member("member-1", "node-1"), member("member-2", "node-1")
    dear = pod("dear", on="node-1", cpu="4", priority=2)
    cheap = pod("cheap", on="node-1", cpu="4", priority=1)
    cluster = snapshot(node("node-1", cpu="8"), dear, cheap, *members, groups=[GANG])
    units = units_for_pod_groups(cluster, RULES.release)
    dry_run = start_dry_run(PodGroupPreemptor(GANG, members), units, RULES)
    assert isinstance(dry_run, PodGroupDryRun)
    found = dry_run.reprieve({each.uid: "node-1" for each in members}, RULES)
    assert [unit.pods for unit in found.units] == [(cheap,)]
