"""Scenarios on a virtual clock: a workload grows, shrinks, rolls out, loses a zone."""

from __future__ import annotations

from collections import Counter

import pytest

from extender.controllers.process.controller_manager import SPREAD_WEBHOOKS
from extender.controllers.webhooks.registration import MUTATING, NAME
from extender.kube.rest.resources import REPLICA_SETS
from tests.builders import Document, manifest
from tests.builders.replicas import a_replica_set, controlled_by, template
from tests.builders.workloadspread import in_zone
from tests.extender.controllers.workloadspread.zones import Zones, spread_zones, subset_of, zones
from tests.stage import DEPLOYMENTS, SPREADS

LABELS = {"app": "web"}
MODES = pytest.mark.parametrize("quirks", ["upstream", "fixed"])
ADAPTIVE = {
    "type": "Adaptive",
    "adaptive": {"rescheduleCriticalSeconds": 20, "disableSimulationSchedule": True},
}


@MODES
async def test_scaling_to_thirty_to_ten_and_to_zero(quirks: str) -> None:
    async with spread_zones(
        in_zone("a", 10), in_zone("b", 10), in_zone("c"), replicas=30, quirks=quirks
    ) as stage:
        assert await stage.counts() == {"a": 10, "b": 10, "c": 10}
        assert await stage.missing() == [0, 0, -1]
        costs = [{"300"}, {"200"}, {"100"}]
        kept = {"fixed": "a", "upstream": "c"}[quirks]  # of a standalone ReplicaSet
        if quirks == "upstream":
            costs.reverse()
        assert await stage.costs() == dict(zip("abc", costs, strict=True))
        await stage.scale(10)
        assert await stage.counts() == {kept: 10}
        await stage.scale(0)
        assert await stage.counts() == {}
        assert await stage.missing() == [10, 10, -1]


async def test_subsets_are_emptied_from_the_last_one() -> None:
    async with spread_zones(in_zone("a", 3), in_zone("b", 3), in_zone("c"), replicas=8) as stage:
        seen = []
        for replicas in range(7, 0, -1):
            await stage.scale(replicas)
            counts = await stage.counts()
            seen.append(tuple(counts.get(zone, 0) for zone in "abc"))
        assert seen == [(3, 3, 1), (3, 3, 0), (3, 2, 0), (3, 1, 0), (3, 0, 0), (2, 0, 0), (1, 0, 0)]


@MODES
async def test_pods_are_deleted_in_reverse_even_without_the_controller(quirks: str) -> None:
    async with spread_zones(in_zone("a", 4), in_zone("b"), quirks=quirks) as stage:
        stage.cluster.control_plane["workloadspread"].pause()
        await stage.scale(6)
        assert await stage.counts() == {"a": 4, "b": 2}
        if quirks == "upstream":
            assert await stage.costs() == {"a": {None}, "b": {None}}
            return
        assert await stage.costs() == {"a": {"200"}, "b": {"100"}}
        await stage.scale(4)
        assert await stage.counts() == {"a": 4}


async def test_percentages_are_of_the_desired_replicas() -> None:
    async with zones() as stage:
        await stage.create_spread(in_zone("a", "20%"), in_zone("b", "30%"), in_zone("c", "50%"))
        await stage.create_replica_set(30)
        await stage.settle()
        assert await stage.counts() == {"a": 6, "b": 9, "c": 15}
        await stage.scale(20)
        assert await stage.counts() == {"a": 6, "b": 9, "c": 5}  # by the costs of thirty
        assert await stage.missing() == [0, 0, 5]
        assert await stage.costs() == {"a": {"300", "-100"}, "b": {"200", "-200"}, "c": {"100"}}
        await stage.scale(18)  # limits 4, 6 and 9; 2 and 3 are too many
        assert await stage.counts() == {"a": 6, "b": 7, "c": 5}
        await stage.scale(30)
        assert await stage.counts() == {"a": 6, "b": 9, "c": 15}


async def test_a_lower_limit_moves_no_pod_but_changes_deletion_costs() -> None:
    async with spread_zones(in_zone("a", 6), in_zone("b"), replicas=8) as stage:
        assert await stage.counts() == {"a": 6, "b": 2}
        await stage.change_subsets(in_zone("a", 2), in_zone("b"))
        assert await stage.counts() == {"a": 6, "b": 2}
        assert await stage.costs() == {"a": {"200", "-100"}, "b": {"100"}}
        assert (await stage.status())["observedGeneration"] == 2
        await stage.scale(4)
        assert await stage.counts() == {"a": 2, "b": 2}
        await stage.change_subsets(in_zone("a", 4), in_zone("b"))
        await stage.scale(6)
        assert await stage.counts() == {"a": 4, "b": 2}


async def test_pods_of_a_removed_subset_are_deleted_first() -> None:
    async with spread_zones(in_zone("a", 2), in_zone("b", 2), in_zone("c"), replicas=6) as stage:
        await stage.change_subsets(in_zone("b", 2), in_zone("c"))
        assert await stage.costs() == {"a": {"-300"}, "b": {"200"}, "c": {"100"}}
        await stage.scale(4)
        assert await stage.counts() == {"b": 2, "c": 2}


class Rollout:
    """A Deployment, and what its controller does: it creates a ReplicaSet for each template."""

    def __init__(self, stage: Zones) -> None:
        self._stage = stage
        self._uid = ""

    async def start(self, replicas: int) -> None:
        selector = {"matchLabels": LABELS}
        spec = {"replicas": replicas, "selector": selector, "template": template(LABELS, "v1")}
        made = await self._stage.create(DEPLOYMENTS, manifest("Deployment", "web", spec=spec))
        self._uid = made["metadata"]["uid"]
        await self._create_replica_set("v1")
        await self._stage.scale(replicas, "web-v1")

    async def change_template(self, image: str, **spec: int) -> None:
        change = {"spec": {"template": template(LABELS, image), **spec}}
        await self._stage.patch(DEPLOYMENTS, "web", change)

    async def update(self, image: str) -> None:
        await self.change_template(image)
        await self._create_replica_set(image)

    async def _create_replica_set(self, version: str) -> None:
        labels = {**LABELS, "pod-template-hash": version}
        spec: Document = {"replicas": 0, "template": template(labels, version)}
        document = a_replica_set(f"web-{version}", labels, **spec)
        owner = controlled_by("web", self._uid, "Deployment")
        document["metadata"] |= {"labels": labels, "ownerReferences": [owner]}
        await self._stage.create(REPLICA_SETS, document)

    async def counts(self) -> dict[str, dict[str, int]]:
        """Count the active pods of each subset, by version."""
        found: dict[str, Counter[str]] = {}
        for pod in await self._stage.pods():
            version = pod.labels["pod-template-hash"]
            found.setdefault(version, Counter())[subset_of(pod)] += 1
        return {version: dict(counts) for version, counts in found.items()}


async def test_a_rollout_fills_and_empties_subsets_in_order() -> None:
    async with zones() as stage:
        await stage.create_spread(in_zone("a", 2), in_zone("b", 2), in_zone("c"), kind="Deployment")
        rollout = Rollout(stage)
        await rollout.start(6)
        assert await rollout.counts() == {"v1": {"a": 2, "b": 2, "c": 2}}
        await rollout.update("v2")
        seen = []
        for number in range(1, 7):
            await stage.scale(number, "web-v2")
            await stage.scale(6 - number, "web-v1")
            versions = await rollout.counts()
            seen.append([versions.get(version, {}) for version in ("v1", "v2")])
        assert seen == [
            [{"a": 1, "b": 2, "c": 2}, {"a": 1}],
            [{"b": 2, "c": 2}, {"a": 2}],
            [{"b": 1, "c": 2}, {"a": 2, "b": 1}],
            [{"c": 2}, {"a": 2, "b": 2}],
            [{"c": 1}, {"a": 2, "b": 2, "c": 1}],
            [{}, {"a": 2, "b": 2, "c": 2}],
        ]
        assert list((await stage.status())["versionedSubsetStatuses"]) == ["v2"]
        assert await stage.costs() == {"a": {"300"}, "b": {"200"}, "c": {"100"}}


async def test_the_controller_corrects_the_cost_of_a_late_pod_of_an_old_version() -> None:
    async with zones() as stage:
        await stage.create_spread(in_zone("a", 2), in_zone("b", 2), in_zone("c"), kind="Deployment")
        rollout = Rollout(stage)
        await rollout.start(2)
        await rollout.update("v2")
        plane = stage.cluster.control_plane["workloadspread"]
        plane.pause()
        await stage.scale(3, "web-v1")
        assert (await stage.costs())["b"] == {"200"}
        plane.resume()
        await stage.scale(5, "web-v1")
        assert await stage.costs() == {"a": {"100"}, "b": {"200"}, "c": {"300"}}


async def test_a_rollout_without_its_replica_set_is_waited_for() -> None:
    async with zones() as stage:
        await stage.create_spread(in_zone("a", 2), in_zone("b"), kind="Deployment")
        rollout = Rollout(stage)
        await rollout.start(2)
        before = await stage.status()
        await rollout.change_template("v2", replicas=3)
        await stage.passes(60)
        assert await stage.status() == before
        await rollout.update("v2")
        await stage.settle()
        assert (await stage.status())["observedGeneration"] == 1
        assert {pod.deletion_cost for pod in await stage.pods()} == {"100"}  # a's, of an old one


async def test_a_full_zone_is_avoided_and_tried_again_after_five_minutes() -> None:
    async with spread_zones(
        in_zone("a", 4), in_zone("b", 4), in_zone("c"), scheduleStrategy=ADAPTIVE
    ) as stage:
        await stage.close("a")
        await stage.set_replicas(6)
        await stage.passes(15)
        assert await stage.counts() == {"a": 4, "b": 2}
        await stage.passes(20)
        assert await stage.counts() == {"b": 4, "c": 2}
        assert await stage.schedulable() == ["False", "True", "True"]
        await stage.reopen("a")
        await stage.passes(270)
        assert await stage.schedulable() == ["False", "True", "True"]
        await stage.passes(30)
        assert await stage.schedulable() == ["True", "True", "True"]
        assert ("RecoverSchedulable", "web") in [each[:2] for each in await stage.list_events()]
        await stage.scale(8)
        assert await stage.counts() == {"a": 2, "b": 4, "c": 2}


async def test_upstream_does_not_notice_that_pods_have_become_unschedulable() -> None:
    async with spread_zones(
        in_zone("a", 4), in_zone("b"), scheduleStrategy=ADAPTIVE, quirks="upstream"
    ) as stage:
        await stage.close("a")
        await stage.set_replicas(2)
        await stage.passes(120)
        assert await stage.counts() == {"a": 2}
        await stage.scale(3)
        await stage.passes(60)
        assert (await stage.counts())["b"] > 0


async def test_a_zone_that_was_full_for_a_short_time_is_not_avoided() -> None:
    async with spread_zones(in_zone("a", 4), in_zone("b"), scheduleStrategy=ADAPTIVE) as stage:
        await stage.close("a")
        await stage.set_replicas(2)
        await stage.passes(15)
        await stage.reopen("a")
        await stage.passes(400)
        assert await stage.counts() == {"a": 2}
        assert await stage.schedulable() == ["True", "True"]


@MODES
@pytest.mark.parametrize("how", ["delete", "evict"])
async def test_pods_that_are_deleted_all_at_once_are_replaced(how: str, quirks: str) -> None:
    async with spread_zones(
        in_zone("a", 6), in_zone("b", 6), in_zone("c"), replicas=18, quirks=quirks
    ) as stage:
        for _ in range(3):
            await stage.remove((await stage.pod_names())[:14], how)
            await stage.settle()
            assert await stage.counts() == {"a": 6, "b": 6, "c": 6}
            assert await stage.missing() == [0, 0, -1]
        entries = (await stage.status())["versionedSubsetStatuses"]["versionIgnored"]
        assert not any({"creatingPods", "deletingPods"} & set(entry) for entry in entries)


async def test_an_admitted_pod_that_never_appears_expires_with_an_event() -> None:
    async with spread_zones(in_zone("a", 3), in_zone("b"), replicas=1) as stage:
        written = await stage.get(SPREADS, "web")
        (entry, *_) = written["status"]["versionedSubsetStatuses"]["versionIgnored"]
        entry["creatingPods"] = {"missing": "2026-01-01T00:01:00Z"}
        entry["missingReplicas"] -= 1
        await stage.update(SPREADS, written, "status")
        await stage.passes(60)
        (entry, *_) = (await stage.status())["versionedSubsetStatuses"]["versionIgnored"]
        assert entry == {"name": "a", "replicas": 1, "missingReplicas": 2}
        events = [each for each in await stage.list_events() if each[1] == "web"]
        assert ("CreatePodFailed", "web", events[-1][2]) in events
        assert "missing" in events[-1][2]


async def test_nothing_is_written_without_a_change() -> None:
    for quirks in ("fixed", "upstream"):
        async with spread_zones(in_zone("a", 3), in_zone("b"), replicas=5, quirks=quirks) as stage:
            stage.simulation.cancel()
            before = await stage.find(SPREADS, "web"), await stage.pods()
            await stage.passes(11 * 3600)  # in that time all are synced once more
            assert (await stage.find(SPREADS, "web"), await stage.pods()) == before


async def test_pods_that_no_webhook_has_seen_are_put_into_the_subset_of_their_node() -> None:
    async with zones() as stage:
        await stage.create_spread(in_zone("a", 1), in_zone("b"))
        await stage.cluster.control_plane[SPREAD_WEBHOOKS].stop()
        await stage.delete(MUTATING, NAME)
        await stage.create_replica_set()
        await stage.scale(4)
        assert set(await stage.counts()) == {"a"}  # the first node that they fit
        assert await stage.costs() == {"a": {"200", "-100"}}
        assert await stage.missing() == [0, -1]
