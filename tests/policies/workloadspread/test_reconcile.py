"""One sync of a WorkloadSpread: status, costs, pods to delete and requeue."""

from __future__ import annotations

from dataclasses import replace

from policies.workloadspread.model import (
    SpreadPod,
    SubsetInjection,
    SubsetStatus,
    WorkloadSpread,
    WorkloadSpreadStatus,
)
from policies.workloadspread.quirks import FIXED, UPSTREAM, Quirks
from policies.workloadspread.reconcile import ReconcileResult, delete_failed_event, reconcile
from policies.workloadspread.targets import Target
from policies.workloadspread.workloads import TargetWorkload
from tests.builders import node
from tests.builders.workloadspread import (
    CLONE_SET,
    DEPLOYMENT,
    NOW_NS,
    around,
    at,
    condition,
    member,
    replica_set,
    rules,
    spread,
    status,
    stuck,
    subset,
    workload,
)

SUBSETS = (subset("a", 1), subset("b"))
NODES = around(node("node-1"))
TARGET = workload(replicas=3, generation=1, observed_generation=1, update_revision="web-v1")


def synced(
    mine: WorkloadSpread,
    *pods: SpreadPod,
    target: TargetWorkload | None = TARGET,
    quirks: Quirks = FIXED,
) -> ReconcileResult:
    observed = Target(target, pods=pods)
    return reconcile(mine, observed, NODES, NOW_NS, rules(quirks))


def test_pods_are_counted_by_subset_and_costed() -> None:
    outcome = synced(spread(*SUBSETS, generation=4), member("x", "a"), member("y", "b"))
    assert outcome.replicas == 3
    assert {name: cost.value for name, cost in outcome.costs.items()} == {"x": 200, "y": 100}
    assert outcome.status == WorkloadSpreadStatus(
        4,
        (SubsetStatus("a", 0, 1), SubsetStatus("b", -1, 1)),
        {"versionIgnored": (SubsetStatus("a", 0, 1), SubsetStatus("b", -1, 1))},
    )
    assert outcome.writes_status
    assert (outcome.pods_to_delete, outcome.events, outcome.failure) == ((), (), "")
    assert outcome.requeue_after_ns is None


def test_only_costs_that_change_are_written() -> None:
    pods = [member("x", "a", deletion_cost="200"), member("y", "b", deletion_cost="7")]
    assert synced(spread(*SUBSETS), *pods).cost_changes == {"y": "100"}


def test_an_unchanged_status_is_not_written() -> None:
    pods = [member("x", "a"), member("y", "b")]
    before = synced(spread(*SUBSETS), *pods).status
    assert not synced(spread(*SUBSETS, status=before), *pods).writes_status
    assert synced(spread(*SUBSETS, status=before), *pods, quirks=UPSTREAM).writes_status


def test_a_rollout_without_its_replica_set_is_retried() -> None:
    mine = spread(*SUBSETS, target=DEPLOYMENT)
    hashed = replica_set("h1", template={"spec": {"x": 1}})
    observed = Target(workload(DEPLOYMENT, template={"spec": {"x": 2}}), (hashed,))
    outcome = reconcile(mine, observed, NODES, NOW_NS, rules())
    assert outcome.failure
    assert (outcome.status, outcome.writes_status) == (mine.status, False)


def test_a_deleted_or_targetless_workload_spread_needs_no_sync() -> None:
    mine = spread(*SUBSETS, status=status(SubsetStatus("a", 1)))
    for idle in (replace(mine, terminating=True), replace(mine, target=None)):
        assert synced(idle, member("x", "a")) == ReconcileResult(status=mine.status)


def test_without_its_target_all_replicas_are_missing() -> None:
    outcome = synced(spread(*SUBSETS), member("x", "a"), target=None)
    assert outcome.status.subsets == (SubsetStatus("a", 1), SubsetStatus("b", -1))
    assert outcome.status.versions == {}


def test_an_invalid_limit_empties_the_status() -> None:
    mine = spread(subset("a", "x"), subset("b"), status=status(SubsetStatus("a", 1)))
    assert synced(mine, member("x", "a")).status.subsets == ()


class TestRescheduling:
    MINE = spread(*SUBSETS, adaptive=20)

    def test_pods_that_wait_too_long_are_deleted_once(self) -> None:
        outcome = synced(self.MINE, stuck("x", "a", 30))
        assert [(each.pod.name, each.subset) for each in outcome.pods_to_delete] == [("x", "a")]
        closed = (condition("False", 0),)
        assert outcome.status.subsets[0].conditions == closed
        assert outcome.status.versions["versionIgnored"][0].conditions == closed
        assert outcome.status.subsets[1].conditions == (condition("True", 0),)

    def test_those_of_the_last_subset_may_wait(self) -> None:
        assert synced(self.MINE, stuck("x", "b", 30)).pods_to_delete == ()

    def test_the_next_deadline_is_returned(self) -> None:
        assert synced(self.MINE, stuck("x", "a", 5)).requeue_after_ns == at(15) - NOW_NS

    def test_a_failed_pod_deletion_is_reported(self) -> None:
        (deletion,) = synced(self.MINE, stuck("x", "a", 30)).pods_to_delete
        event = delete_failed_event(self.MINE, deletion)
        assert (event.type, event.reason) == ("Warning", "DeletePodFailed")
        assert "Pod default/x in Subset a of WorkloadSpread default/web" in event.message

    def test_without_seconds_nothing_is_rescheduled(self) -> None:
        outcome = synced(spread(*SUBSETS, adaptive=0), stuck("x", "a", 30))
        assert (outcome.pods_to_delete, outcome.status.subsets[0].conditions) == ((), ())


class TestVersionsWithoutPods:
    CLOSED = SubsetStatus("a", 1, conditions=(condition("False", -10),))
    OPEN = SubsetStatus("b", -1, conditions=(condition("True", -10),))

    def kept(self, *known: SubsetStatus, quirks: Quirks = FIXED) -> bool:
        mine = spread(*SUBSETS, adaptive=20, status=status(old=known))
        return "old" in synced(mine, quirks=quirks).status.versions

    def test_a_version_without_state_is_removed(self) -> None:
        assert not self.kept(SubsetStatus("a", 1), self.OPEN)

    def test_a_version_with_pending_pods_is_kept(self) -> None:
        assert self.kept(SubsetStatus("a", 1, creating={"x": at(-5)}), self.OPEN)
        assert not self.kept(SubsetStatus("a", 1, creating={"x": at(-31)}), self.OPEN)

    def test_a_version_with_an_unschedulable_subset_is_kept(self) -> None:
        assert self.kept(self.CLOSED, self.OPEN)
        assert not self.kept(self.CLOSED, self.OPEN, quirks=UPSTREAM)

    def test_an_unschedulable_subset_is_kept_for_five_minutes(self) -> None:
        long_ago = SubsetStatus("a", 1, conditions=(condition("False", -301),))
        assert not self.kept(long_ago, self.OPEN)


def test_other_pods_are_adopted_where_they_fit() -> None:
    outcome = synced(spread(*SUBSETS), member("x", controller=CLONE_SET))
    assert {name: found.name for name, found in outcome.groups.adopted.items()} == {"x": "a"}


def test_pods_of_another_workload_spread_are_adopted_too() -> None:
    outcome = synced(spread(*SUBSETS), member("x", injection=SubsetInjection("other", "b")))
    assert set(outcome.groups.adopted) == {"x"}
    assert [each.replicas for each in outcome.status.subsets] == [1, 0]
