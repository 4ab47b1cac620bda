"""Rounds of a kubelet, one after another, as sentences about what happens on its node."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from policies.eviction.filesystems import (
    DEDICATED_IMAGES,
    ONE_FILESYSTEM,
    SPLIT,
    Layout,
    ReclaimAction,
)
from policies.eviction.kubelet_releases import EVICTION_RELEASES, NEWEST_EVICTION, SEPARATE_DISK_GC
from policies.eviction.manager import SyncOutcome, SyncResult
from policies.eviction.pods import EvictablePod
from policies.eviction.signals import Pressure
from policies.eviction.stats import NodeStats, PodStats
from policies.eviction.thresholds import Threshold
from tests.builders.eviction import (
    Kubelet,
    bound,
    container,
    disk,
    evictable,
    filesystem,
    gone,
    node,
    plan,
    scratch,
    uses,
)

HARD = bound("memory.available<1Gi")
SOFT = bound("memory.available<2Gi", grace="1m")
FULL = bound("nodefs.available<10Gi")
PODS: Mapping[EvictablePod, PodStats | None] = {
    evictable("hog", memory="100Mi"): uses("900Mi"),
    evictable("calm", memory="1Gi"): uses("500Mi"),
}


def pressures(sync: SyncResult) -> list[str]:
    return [str(pressure) for pressure in sync.state.pressures]


def full(available: str = "1Gi", at: int | None = None) -> NodeStats:
    return node(node_fs=filesystem(available, at=at), at=at)


class TestPressure:
    """When a node runs short, and when it is over."""

    def test_a_hard_threshold_evicts_at_once(self) -> None:
        sync = Kubelet(plan(HARD)).sees(0, node("900Mi"), PODS)
        assert (gone(sync), pressures(sync)) == (["hog"], ["MemoryPressure"])
        assert sync.evictions[0].grace_seconds == 1
        assert sync.event == "Attempting to reclaim memory"

    def test_a_threshold_is_not_met_at_its_value(self) -> None:
        assert Kubelet(plan(HARD)).sees(0, node("1Gi"), PODS).outcome is SyncOutcome.CALM

    def test_one_pod_goes_in_each_round(self) -> None:
        kubelet = Kubelet(plan(HARD))
        assert [gone(kubelet.sees(at, node("900Mi"), PODS)) for at in (0, 10)] == [["hog"]] * 2

    def test_a_soft_threshold_waits_for_its_grace_period(self) -> None:
        kubelet = Kubelet(plan(SOFT, max_pod_grace_seconds=5))
        rounds = [kubelet.sees(at, node("1536Mi"), PODS) for at in (0, 59, 60)]
        assert [gone(sync) for sync in rounds] == [[], [], ["hog"]]
        assert all(pressures(sync) == ["MemoryPressure"] for sync in rounds)

    def test_one_round_without_it_and_the_grace_period_starts_anew(self) -> None:
        kubelet = Kubelet(plan(SOFT))
        seen = [(0, "1Gi"), (30, "3Gi"), (40, "1Gi"), (99, "1Gi"), (100, "1Gi")]
        rounds = [kubelet.sees(at, node(left), PODS) for at, left in seen]
        assert [gone(sync) for sync in rounds] == [[], [], [], [], ["hog"]]

    def test_pressure_is_reported_until_the_transition_period_is_over(self) -> None:
        kubelet = Kubelet(plan(HARD))
        kubelet.sees(0, node("900Mi"), PODS)
        after = [kubelet.sees(at, node("2Gi"), PODS) for at in (10, 299, 300)]
        assert [pressures(sync) for sync in after] == [["MemoryPressure"]] * 2 + [[]]
        assert all(sync.outcome is SyncOutcome.CALM for sync in after)

    def test_a_triggered_threshold_is_met_until_its_minimum_is_reclaimed(self) -> None:
        kubelet = Kubelet(plan(bound("memory.available<1Gi", reclaim="500Mi")))
        seen = ["1200Mi", "900Mi", "1523Mi", "1524Mi", "1200Mi"]
        found = [gone(kubelet.sees(at, node(left), PODS)) for at, left in enumerate(seen)]
        assert found == [[], ["hog"], ["hog"], [], []]

    def test_a_threshold_in_its_grace_period_needs_no_minimum_reclaim(self) -> None:
        kubelet = Kubelet(plan(bound("memory.available<1Gi", grace="1m", reclaim="500Mi")))
        kubelet.sees(0, node("900Mi"), PODS)
        assert kubelet.sees(10, node("1200Mi"), PODS).state.first_observed_at == {}

    def test_of_two_thresholds_of_a_signal_the_hard_one_leads(self) -> None:
        kubelet = Kubelet(plan(SOFT, HARD, max_pod_grace_seconds=30))
        kubelet.sees(0, node("1536Mi"), PODS)
        sync = kubelet.sees(60, node("900Mi"), PODS)
        assert sync.triggered == (HARD, SOFT)
        assert sync.evictions[0].grace_seconds == 1
        assert "Threshold quantity: 1Gi" in sync.evictions[0].message

    def test_memory_is_acted_on_before_disks(self) -> None:
        sync = Kubelet(plan(FULL, SOFT, HARD)).sees(
            0, node("900Mi", node_fs=filesystem("1Gi")), PODS
        )
        assert sync.triggered[0] == HARD
        assert pressures(sync) == ["DiskPressure", "MemoryPressure"]


class TestStats:
    """Stats that are missing or old evict no pod."""

    def test_without_stats_nothing_is_decided(self) -> None:
        kubelet = Kubelet(plan(HARD))
        before = kubelet.sees(0, node("900Mi"), PODS).state
        sync = kubelet.sees(10, None, PODS)
        assert (sync.outcome, sync.state, gone(sync)) == (SyncOutcome.UNMEASURED, before, [])

    def test_a_signal_that_is_not_observed_is_passed_over(self) -> None:
        sync = Kubelet(plan(HARD)).sees(0, NodeStats(), PODS)
        assert (sync.outcome, pressures(sync)) == (SyncOutcome.CALM, [])

    def test_stats_are_acted_on_once(self) -> None:
        kubelet = Kubelet(plan(HARD))
        seen = [(0, 100), (10, 100), (20, 99), (30, 120)]
        rounds = [kubelet.sees(at, node("900Mi", at=time), PODS) for at, time in seen]
        # What is older than the last is not acted on, but is what the next is compared with.
        assert [gone(sync) for sync in rounds] == [["hog"], [], [], ["hog"]]
        assert all(pressures(sync) == ["MemoryPressure"] for sync in rounds)

    def test_stats_without_a_time_are_always_new(self) -> None:
        kubelet = Kubelet(plan(HARD))
        times = [None, None, 5, None, 5]
        rounds = [kubelet.sees(at, node("900Mi", at=time), PODS) for at, time in enumerate(times)]
        assert [gone(sync) for sync in rounds] == [["hog"]] * 5


class TestWhoGoes:
    """Critical pods, empty nodes, and what is granted."""

    def test_critical_pods_are_passed_over(self) -> None:
        pods = {
            evictable("critical", priority=2_000_000_000): None,
            evictable("static", source="file"): None,
            evictable("mirror", mirror=True): None,
            evictable("modest", memory="9Gi", priority=9): uses("1Gi"),
        }
        sync = Kubelet(plan(HARD)).sees(0, node("900Mi"), pods)
        assert gone(sync) == ["modest"]
        assert [each.pod.name for each in sync.ranking] == [
            "mirror",
            "static",
            "critical",
            "modest",
        ]

    def test_if_all_are_critical_no_pod_is_evicted(self) -> None:
        pods = {evictable("static", source="http"): uses("1Gi")}
        sync = Kubelet(plan(HARD)).sees(0, node("900Mi"), pods)
        assert (sync.outcome, gone(sync)) == (SyncOutcome.ALL_CRITICAL, [])

    def test_an_empty_node_is_under_pressure_all_the_same(self) -> None:
        sync = Kubelet(plan(HARD)).sees(0, node("900Mi"), {})
        assert (sync.outcome, pressures(sync)) == (SyncOutcome.EMPTY, ["MemoryPressure"])
        assert sync.event == "Attempting to reclaim memory"

    @pytest.mark.parametrize(
        ("release", "asked", "granted"),
        [
            ("1.38", None, 60),
            ("1.38", 30, 30),
            ("1.38", 600, 60),
            ("1.38", 0, 0),
            ("1.32", 30, 30),
            ("1.31", 30, 60),
        ],
    )
    def test_soft_evictions_grant_the_lesser_of_two_grace_periods(
        self, release: str, asked: int | None, granted: int
    ) -> None:
        rules = EVICTION_RELEASES[release]
        kubelet = Kubelet(plan(SOFT, max_pod_grace_seconds=60, release=rules))
        pods = {evictable("pod", grace_seconds=asked): uses("1Gi")}
        kubelet.sees(0, node("1536Mi"), pods)
        assert kubelet.sees(60, node("1536Mi"), pods).evictions[0].grace_seconds == granted

    @pytest.mark.parametrize(("release", "granted"), [("1.30", 0), ("1.31", 1), ("1.38", 1)])
    def test_hard_evictions_grant_next_to_nothing(self, release: str, granted: int) -> None:
        rules = EVICTION_RELEASES[release]
        sync = Kubelet(plan(HARD, release=rules)).sees(0, node("900Mi"), PODS)
        assert sync.evictions[0].grace_seconds == granted

    @pytest.mark.parametrize(("release", "told"), [("1.33", None), ("1.34", 7)])
    def test_the_condition_tells_the_generation(self, release: str, told: int | None) -> None:
        rules = EVICTION_RELEASES[release]
        pods = {evictable("pod", generation=7): uses("1Gi")}
        eviction = Kubelet(plan(HARD, release=rules)).sees(0, node("900Mi"), pods).evictions[0]
        assert eviction.generation == told
        assert eviction.condition is not None


CLEAN = node()


class TestCleaningUp:
    """What the node does before a pod has to go."""

    def test_if_it_is_enough_no_pod_is_evicted(self) -> None:
        kubelet = Kubelet(plan(FULL))
        sync = kubelet.sees(0, full(), PODS, regained=CLEAN)
        assert (sync.outcome, gone(sync)) == (SyncOutcome.RELIEVED, [])
        assert pressures(sync) == ["DiskPressure"]
        assert sync.event == "Attempting to reclaim ephemeral-storage"

    def test_if_it_is_not_a_pod_goes_by_the_stats_of_before(self) -> None:
        sync = Kubelet(plan(FULL)).sees(0, full("1Gi"), PODS, regained=full("9Gi"))
        assert "available: 1Gi" in sync.evictions[0].message

    def test_without_new_stats_it_is_not(self) -> None:
        assert Kubelet(plan(FULL)).sees(0, full(), PODS).outcome is SyncOutcome.EVICTED

    def test_the_minimum_has_to_be_reclaimed(self) -> None:
        kubelet = Kubelet(plan(bound("nodefs.available<10Gi", reclaim="5Gi")))
        assert gone(kubelet.sees(0, full(), PODS, regained=full("14Gi"))) == ["calm"]
        assert gone(kubelet.sees(10, full(), PODS, regained=full("15Gi"))) == []

    def test_an_unrelated_threshold_that_only_waits_makes_it_not_enough(self) -> None:
        kubelet = Kubelet(plan(FULL, SOFT))
        sync = kubelet.sees(0, full(), PODS, regained=node("1536Mi"))
        assert gone(sync) == ["calm"]

    @pytest.mark.parametrize(
        ("layout", "signal", "actions"),
        [
            (ONE_FILESYSTEM, "nodefs", [ReclaimAction.CONTAINERS, ReclaimAction.IMAGES]),
            (DEDICATED_IMAGES, "nodefs", []),
            (DEDICATED_IMAGES, "imagefs", [ReclaimAction.CONTAINERS, ReclaimAction.IMAGES]),
            (SPLIT, "nodefs", [ReclaimAction.CONTAINERS]),
            (SPLIT, "imagefs", [ReclaimAction.IMAGES]),
        ],
    )
    def test_reclaim_actions_depend_on_the_layout(
        self, layout: Layout, signal: str, actions: list[ReclaimAction]
    ) -> None:
        little = filesystem("1Gi")
        kubelet = Kubelet(plan(bound(f"{signal}.available<10Gi"), layout=layout))
        sync = kubelet.begins(0, node(node_fs=little, image_fs=little), PODS)
        assert list(sync.reclaim) == actions
        assert (sync.outcome is SyncOutcome.RECLAIMING) is bool(actions)


class TestLimits:
    """Pods that break limits of their own."""

    OVER: Mapping[EvictablePod, PodStats | None] = {
        evictable("large", volumes=[scratch(limit="1Gi")]): uses(volumes={"scratch": disk("2Gi")}),
        evictable("fine", volumes=[scratch(limit="1Gi")]): uses(volumes={"scratch": disk("1Gi")}),
        evictable("wordy", containers=[container(limit="1Mi")]): uses(logs=disk("2Mi")),
        evictable("static", source="file", storage_limit="1"): uses(storage="2"),
        evictable("unmeasured", storage_limit="0"): None,
    }

    def test_all_of_them_are_evicted_at_once_and_no_others(self) -> None:
        kubelet = Kubelet(plan(HARD, isolates_storage=True))
        sync = kubelet.sees(0, node("900Mi"), self.OVER)
        assert (sync.outcome, gone(sync)) == (SyncOutcome.OVER_LIMITS, ["large", "wordy"])
        assert all(each.condition is None for each in sync.evictions)
        assert all(each.grace_seconds == 1 for each in sync.evictions)
        assert (sync.event, pressures(sync)) == ("", ["MemoryPressure"])

    def test_they_stay_where_limits_are_not_kept_to(self) -> None:
        sync = Kubelet(plan(HARD)).sees(0, node("900Mi"), self.OVER)
        assert gone(sync) == ["unmeasured"]

    def test_they_go_without_any_threshold(self) -> None:
        kubelet = Kubelet(plan(isolates_storage=True))
        assert gone(kubelet.sees(0, NodeStats(), self.OVER)) == ["large", "wordy"]

    def test_without_thresholds_and_limits_nothing_is_watched(self) -> None:
        sync = Kubelet(plan()).sees(0, node("0"), self.OVER)
        assert (sync.outcome, sync.state.started) == (SyncOutcome.UNWATCHED, False)

    def test_the_oldest_release_granted_nothing(self) -> None:
        rules = EVICTION_RELEASES["1.30"]
        kubelet = Kubelet(plan(isolates_storage=True, release=rules))
        assert kubelet.sees(0, NodeStats(), self.OVER).evictions[0].grace_seconds == 0


class TestSplitWithoutItsGate:
    """A kubelet that is not made for its node's filesystems."""

    UNGATED = NEWEST_EVICTION.with_feature_gates({SEPARATE_DISK_GC: False})
    PROBLEM = "KubeletSeparateDiskGC is turned off but we still have a split filesystem"

    def test_the_first_round_fails_and_no_later_one_ranks(self) -> None:
        kubelet = Kubelet(plan(HARD, FULL, layout=SPLIT, release=self.UNGATED))
        first = kubelet.sees(0, node("900Mi"), PODS)
        assert (first.outcome, first.error) == (SyncOutcome.REFUSED, self.PROBLEM)
        assert pressures(first) == []
        second = kubelet.sees(10, node("900Mi", node_fs=filesystem("1Gi")), PODS)
        assert (second.outcome, second.error, gone(second)) == (SyncOutcome.UNRANKED, "", [])
        assert second.state.pressures == (Pressure.DISK, Pressure.MEMORY)
        assert second.event == "Attempting to reclaim memory"

    def test_limits_are_kept_to_all_the_same(self) -> None:
        kubelet = Kubelet(plan(isolates_storage=True, layout=SPLIT, release=self.UNGATED))
        kubelet.sees(0, NodeStats(), TestLimits.OVER)
        assert gone(kubelet.sees(10, NodeStats(), TestLimits.OVER)) == ["large", "wordy"]

    def test_up_to_1_30_the_gate_was_off(self) -> None:
        rules = EVICTION_RELEASES["1.30"]
        kubelet = Kubelet(plan(HARD, layout=SPLIT, release=rules))
        assert kubelet.sees(0, node("900Mi"), PODS).outcome is SyncOutcome.REFUSED
        kubelet = Kubelet(plan(HARD, layout=SPLIT, release=EVICTION_RELEASES["1.31"]))
        assert kubelet.sees(0, node("900Mi"), PODS).outcome is SyncOutcome.EVICTED


@pytest.mark.parametrize(
    ("thresholds", "rounds"),
    [
        ([bound("nodefs.available<10Gi")], [["DiskPressure"], ["DiskPressure"]]),
        ([bound("containerfs.available<90Gi")], [[], []]),
    ],
)
def test_thresholds_of_containerfs_are_not_ones_own(
    thresholds: list[Threshold], rounds: list[list[str]]
) -> None:
    kubelet = Kubelet(plan(*thresholds))
    stats = node(node_fs=filesystem("1Gi"), container_fs=filesystem("1Gi"))
    assert [pressures(kubelet.sees(at, stats, PODS)) for at in (0, 10)] == rounds


def test_copies_for_containerfs_act_from_the_second_round_on() -> None:
    kubelet = Kubelet(plan(FULL))
    stats = node(container_fs=filesystem("1Gi"))
    assert [pressures(kubelet.sees(at, stats, PODS)) for at in (0, 10)] == [[], ["DiskPressure"]]
