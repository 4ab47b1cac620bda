"""The eviction manager, sync after sync."""

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
    evicted_names,
    filesystem,
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
BOTH_FULL = node(node_fs=filesystem("1Gi"), container_fs=filesystem("1Gi"))


def pressures(sync: SyncResult) -> list[str]:
    return [str(pressure) for pressure in sync.state.pressures]


def full(available: str = "1Gi", at: int | None = None) -> NodeStats:
    return node(node_fs=filesystem(available, at=at), at=at)


class TestPressure:
    """Thresholds that are met, and pressure that is reported."""

    def test_a_hard_threshold_evicts_at_once(self) -> None:
        sync = Kubelet(plan(HARD)).sync(0, node("900Mi"), PODS)
        assert (evicted_names(sync), pressures(sync)) == (["hog"], ["MemoryPressure"])
        assert sync.evictions[0].grace_seconds == 1
        assert sync.event == "Attempting to reclaim memory"

    def test_a_threshold_is_not_met_at_its_value(self) -> None:
        assert Kubelet(plan(HARD)).sync(0, node("1Gi"), PODS).outcome is SyncOutcome.CALM

    def test_each_sync_evicts_one_pod(self) -> None:
        kubelet = Kubelet(plan(HARD))
        assert [evicted_names(kubelet.sync(at, node("900Mi"), PODS)) for at in (0, 10)] == [
            ["hog"]
        ] * 2

    def test_a_soft_threshold_waits_for_its_grace_period(self) -> None:
        kubelet = Kubelet(plan(SOFT, max_pod_grace_seconds=5))
        rounds = [kubelet.sync(at, node("1536Mi"), PODS) for at in (0, 59, 60)]
        assert [evicted_names(sync) for sync in rounds] == [[], [], ["hog"]]
        assert all(pressures(sync) == ["MemoryPressure"] for sync in rounds)

    def test_a_sync_below_the_threshold_restarts_the_grace_period(self) -> None:
        kubelet = Kubelet(plan(SOFT))
        seen = [(0, "1Gi"), (30, "3Gi"), (40, "1Gi"), (99, "1Gi"), (100, "1Gi")]
        rounds = [kubelet.sync(at, node(left), PODS) for at, left in seen]
        assert [evicted_names(sync) for sync in rounds] == [[], [], [], [], ["hog"]]

    def test_pressure_is_reported_until_the_transition_period_is_over(self) -> None:
        kubelet = Kubelet(plan(HARD))
        kubelet.sync(0, node("900Mi"), PODS)
        after = [kubelet.sync(at, node("2Gi"), PODS) for at in (10, 299, 300)]
        assert [pressures(sync) for sync in after] == [["MemoryPressure"]] * 2 + [[]]
        assert all(sync.outcome is SyncOutcome.CALM for sync in after)

    def test_a_triggered_threshold_is_met_until_its_minimum_is_reclaimed(self) -> None:
        kubelet = Kubelet(plan(bound("memory.available<1Gi", reclaim="500Mi")))
        seen = ["1200Mi", "900Mi", "1523Mi", "1524Mi", "1200Mi"]
        found = [evicted_names(kubelet.sync(at, node(left), PODS)) for at, left in enumerate(seen)]
        assert found == [[], ["hog"], ["hog"], [], []]

    def test_a_threshold_in_its_grace_period_needs_no_minimum_reclaim(self) -> None:
        kubelet = Kubelet(plan(bound("memory.available<1Gi", grace="1m", reclaim="500Mi")))
        kubelet.sync(0, node("900Mi"), PODS)
        assert kubelet.sync(10, node("1200Mi"), PODS).state.first_observed_at == {}

    def test_of_two_thresholds_of_a_signal_the_hard_one_leads(self) -> None:
        kubelet = Kubelet(plan(SOFT, HARD, max_pod_grace_seconds=30))
        kubelet.sync(0, node("1536Mi"), PODS)
        sync = kubelet.sync(60, node("900Mi"), PODS)
        assert sync.triggered == (HARD, SOFT)
        assert sync.evictions[0].grace_seconds == 1
        assert "Threshold quantity: 1Gi" in sync.evictions[0].message

    def test_memory_comes_before_disks(self) -> None:
        sync = Kubelet(plan(FULL, SOFT, HARD)).sync(
            0, node("900Mi", node_fs=filesystem("1Gi")), PODS
        )
        assert sync.triggered[0] == HARD
        assert pressures(sync) == ["DiskPressure", "MemoryPressure"]


class TestStats:
    """Stats that are missing or old evict no pod."""

    def test_without_stats_nothing_is_decided(self) -> None:
        kubelet = Kubelet(plan(HARD))
        before = kubelet.sync(0, node("900Mi"), PODS).state
        sync = kubelet.sync(10, None, PODS)
        assert (sync.outcome, sync.state, evicted_names(sync)) == (
            SyncOutcome.UNMEASURED,
            before,
            [],
        )

    def test_a_signal_that_is_not_observed_is_passed_over(self) -> None:
        sync = Kubelet(plan(HARD)).sync(0, NodeStats(), PODS)
        assert (sync.outcome, pressures(sync)) == (SyncOutcome.CALM, [])

    def test_stats_are_acted_on_once(self) -> None:
        kubelet = Kubelet(plan(HARD))
        seen = [(0, 100), (10, 100), (20, 99), (30, 120)]
        rounds = [kubelet.sync(at, node("900Mi", at=time), PODS) for at, time in seen]
        # What is older than the last is not acted on, but is what the next is compared with.
        assert [evicted_names(sync) for sync in rounds] == [["hog"], [], [], ["hog"]]
        assert all(pressures(sync) == ["MemoryPressure"] for sync in rounds)

    def test_stats_without_a_time_are_always_new(self) -> None:
        kubelet = Kubelet(plan(HARD))
        times = [None, None, 5, None, 5]
        rounds = [kubelet.sync(at, node("900Mi", at=time), PODS) for at, time in enumerate(times)]
        assert [evicted_names(sync) for sync in rounds] == [["hog"]] * 5


class TestVictims:
    """Critical pods, empty nodes, and grace periods."""

    def test_critical_pods_are_passed_over(self) -> None:
        pods = {
            evictable("critical", priority=2_000_000_000): None,
            evictable("static", source="file"): None,
            evictable("mirror", mirror=True): None,
            evictable("modest", memory="9Gi", priority=9): uses("1Gi"),
        }
        sync = Kubelet(plan(HARD)).sync(0, node("900Mi"), pods)
        assert evicted_names(sync) == ["modest"]
        assert [each.pod.name for each in sync.ranking] == [
            "mirror",
            "static",
            "critical",
            "modest",
        ]

    def test_if_all_are_critical_no_pod_is_evicted(self) -> None:
        pods = {evictable("static", source="http"): uses("1Gi")}
        sync = Kubelet(plan(HARD)).sync(0, node("900Mi"), pods)
        assert (sync.outcome, evicted_names(sync)) == (SyncOutcome.ALL_CRITICAL, [])

    def test_an_empty_node_is_under_pressure_all_the_same(self) -> None:
        sync = Kubelet(plan(HARD)).sync(0, node("900Mi"), {})
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
        kubelet.sync(0, node("1536Mi"), pods)
        assert kubelet.sync(60, node("1536Mi"), pods).evictions[0].grace_seconds == granted

    @pytest.mark.parametrize(("release", "granted"), [("1.30", 0), ("1.31", 1), ("1.38", 1)])
    def test_hard_evictions_grant_next_to_nothing(self, release: str, granted: int) -> None:
        rules = EVICTION_RELEASES[release]
        sync = Kubelet(plan(HARD, release=rules)).sync(0, node("900Mi"), PODS)
        assert sync.evictions[0].grace_seconds == granted

    @pytest.mark.parametrize(("release", "generation"), [("1.33", None), ("1.34", 7)])
    def test_the_condition_has_the_generation_since_1_34(
        self, release: str, generation: int | None
    ) -> None:
        rules = EVICTION_RELEASES[release]
        pods = {evictable("pod", generation=7): uses("1Gi")}
        eviction = Kubelet(plan(HARD, release=rules)).sync(0, node("900Mi"), pods).evictions[0]
        assert eviction.generation == generation
        assert eviction.condition is not None


class TestReclaim:
    """Node-level reclaim before pods are evicted."""

    def test_if_reclaim_is_enough_no_pod_is_evicted(self) -> None:
        kubelet = Kubelet(plan(FULL))
        sync = kubelet.sync(0, full(), PODS, reclaimed=node())
        assert (sync.outcome, evicted_names(sync)) == (SyncOutcome.RELIEVED, [])
        assert pressures(sync) == ["DiskPressure"]
        assert sync.event == "Attempting to reclaim ephemeral-storage"

    def test_if_reclaim_is_not_enough_a_pod_is_evicted_by_the_earlier_stats(self) -> None:
        sync = Kubelet(plan(FULL)).sync(0, full("1Gi"), PODS, reclaimed=full("9Gi"))
        assert "available: 1Gi" in sync.evictions[0].message

    def test_without_new_stats_a_pod_is_evicted(self) -> None:
        assert Kubelet(plan(FULL)).sync(0, full(), PODS).outcome is SyncOutcome.EVICTED

    def test_the_minimum_has_to_be_reclaimed(self) -> None:
        kubelet = Kubelet(plan(bound("nodefs.available<10Gi", reclaim="5Gi")))
        assert evicted_names(kubelet.sync(0, full(), PODS, reclaimed=full("14Gi"))) == ["calm"]
        assert evicted_names(kubelet.sync(10, full(), PODS, reclaimed=full("15Gi"))) == []

    def test_an_unrelated_threshold_in_its_grace_period_makes_it_not_enough(self) -> None:
        kubelet = Kubelet(plan(FULL, SOFT))
        sync = kubelet.sync(0, full(), PODS, reclaimed=node("1536Mi"))
        assert evicted_names(sync) == ["calm"]

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
        sync = kubelet.start_sync(0, node(node_fs=little, image_fs=little), PODS)
        assert list(sync.reclaim) == actions
        assert (sync.outcome is SyncOutcome.RECLAIMING) is bool(actions)


class TestLimits:
    """Pods above their local storage limits."""

    OVER: Mapping[EvictablePod, PodStats | None] = {
        evictable("large", volumes=[scratch(limit="1Gi")]): uses(volumes={"scratch": disk("2Gi")}),
        evictable("fine", volumes=[scratch(limit="1Gi")]): uses(volumes={"scratch": disk("1Gi")}),
        evictable("logger", containers=[container(limit="1Mi")]): uses(logs=disk("2Mi")),
        evictable("static", source="file", storage_limit="1"): uses(storage="2"),
        evictable("unmeasured", storage_limit="0"): None,
    }

    def test_all_pods_over_limits_are_evicted_and_no_others(self) -> None:
        kubelet = Kubelet(plan(HARD, isolates_storage=True))
        sync = kubelet.sync(0, node("900Mi"), self.OVER)
        assert (sync.outcome, evicted_names(sync)) == (SyncOutcome.OVER_LIMITS, ["large", "logger"])
        assert all(each.condition is None for each in sync.evictions)
        assert all(each.grace_seconds == 1 for each in sync.evictions)
        assert (sync.event, pressures(sync)) == ("", ["MemoryPressure"])

    def test_pods_over_limits_stay_without_storage_isolation(self) -> None:
        sync = Kubelet(plan(HARD)).sync(0, node("900Mi"), self.OVER)
        assert evicted_names(sync) == ["unmeasured"]

    def test_limits_need_no_threshold(self) -> None:
        kubelet = Kubelet(plan(isolates_storage=True))
        assert evicted_names(kubelet.sync(0, NodeStats(), self.OVER)) == ["large", "logger"]

    def test_without_thresholds_and_limits_nothing_is_watched(self) -> None:
        sync = Kubelet(plan()).sync(0, node("0"), self.OVER)
        assert (sync.outcome, sync.state.started) == (SyncOutcome.UNWATCHED, False)

    def test_the_oldest_release_granted_nothing(self) -> None:
        rules = EVICTION_RELEASES["1.30"]
        kubelet = Kubelet(plan(isolates_storage=True, release=rules))
        assert kubelet.sync(0, NodeStats(), self.OVER).evictions[0].grace_seconds == 0


class TestSplitWithoutItsGate:
    """A kubelet without the feature gate that its node's filesystems need."""

    UNGATED = NEWEST_EVICTION.with_feature_gates({SEPARATE_DISK_GC: False})
    PROBLEM = "KubeletSeparateDiskGC is turned off but we still have a split filesystem"

    def test_the_first_round_fails_and_no_later_one_ranks(self) -> None:
        kubelet = Kubelet(plan(HARD, FULL, layout=SPLIT, release=self.UNGATED))
        first = kubelet.sync(0, node("900Mi"), PODS)
        assert (first.outcome, first.error) == (SyncOutcome.REFUSED, self.PROBLEM)
        assert pressures(first) == []
        second = kubelet.sync(10, node("900Mi", node_fs=filesystem("1Gi")), PODS)
        assert (second.outcome, second.error, evicted_names(second)) == (
            SyncOutcome.UNRANKED,
            "",
            [],
        )
        assert second.state.pressures == (Pressure.DISK, Pressure.MEMORY)
        assert second.event == "Attempting to reclaim memory"

    def test_limits_are_enforced_nevertheless(self) -> None:
        kubelet = Kubelet(plan(isolates_storage=True, layout=SPLIT, release=self.UNGATED))
        kubelet.sync(0, NodeStats(), TestLimits.OVER)
        assert evicted_names(kubelet.sync(10, NodeStats(), TestLimits.OVER)) == ["large", "logger"]

    def test_up_to_1_30_the_gate_was_off(self) -> None:
        rules = EVICTION_RELEASES["1.30"]
        kubelet = Kubelet(plan(HARD, layout=SPLIT, release=rules))
        assert kubelet.sync(0, node("900Mi"), PODS).outcome is SyncOutcome.REFUSED
        kubelet = Kubelet(plan(HARD, layout=SPLIT, release=EVICTION_RELEASES["1.31"]))
        assert kubelet.sync(0, node("900Mi"), PODS).outcome is SyncOutcome.EVICTED


@pytest.mark.parametrize(
    ("threshold", "stats", "syncs"),
    [
        (FULL, BOTH_FULL, [["DiskPressure"], ["DiskPressure"]]),
        (bound("containerfs.available<90Gi"), BOTH_FULL, [[], []]),
        (FULL, node(container_fs=filesystem("1Gi")), [[], ["DiskPressure"]]),
    ],
    ids=["nodefs", "configured for containerfs", "copied from the second sync on"],
)
def test_thresholds_of_containerfs_are_those_of_nodefs(
    threshold: Threshold, stats: NodeStats, syncs: list[list[str]]
) -> None:
    kubelet = Kubelet(plan(threshold))
    assert [pressures(kubelet.sync(at, stats, PODS)) for at in (0, 10)] == syncs
