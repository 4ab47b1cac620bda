"""Scenarios on a virtual clock: a workload grows, shrinks, rolls out, loses a zone."""

from __future__ import annotations

import asyncio
from collections import Counter

import orjson
import pytest

from extender.controllers.process.controller_manager import SPREAD_WEBHOOKS
from extender.controllers.webhooks.registration import MUTATING, NAME
from extender.kube.rest.resources import PODS, REPLICA_SETS
from tests.builders.replicas import a_replica_set, controlled_by
from tests.extender.controllers.workloadspread.objects import DEPLOYMENTS, SPREADS, Document
from tests.extender.controllers.workloadspread.zones import Zones, in_zone, subset_of, zones
from tests.stage import decode

MODES = pytest.mark.parametrize("quirks", ["upstream", "fixed"])
ADAPTIVE = {
    "type": "Adaptive",
    "adaptive": {"rescheduleCriticalSeconds": 20, "disableSimulationSchedule": True},
}
TRYING = {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 20}}


@MODES
async def test_up_to_thirty_down_to_ten_and_to_none(quirks: str) -> None:
    async with zones(quirks) as world:
        await world.make_spread(in_zone("a", 10), in_zone("b", 10), in_zone("c"))
        await world.make_replica_set()
        await world.scale(30)
        assert await world.counts() == {"a": 10, "b": 10, "c": 10}
        assert await world.missing() == [0, 0, -1]
        costs = [{"300"}, {"200"}, {"100"}]
        kept = {"fixed": "a", "upstream": "c"}[quirks]  # of a standalone ReplicaSet
        if quirks == "upstream":
            costs.reverse()
        assert await world.costs() == dict(zip("abc", costs, strict=True))
        await world.scale(10)
        assert await world.counts() == {kept: 10}
        await world.scale(0)
        assert await world.counts() == {}
        assert await world.missing() == [10, 10, -1]


async def test_subsets_are_emptied_from_the_last_one_on() -> None:
    async with zones() as world:
        await world.make_spread(in_zone("a", 3), in_zone("b", 3), in_zone("c"))
        await world.make_replica_set()
        await world.scale(8)
        seen = []
        for replicas in range(7, 0, -1):
            await world.scale(replicas)
            counts = await world.counts()
            seen.append(tuple(counts.get(zone, 0) for zone in "abc"))
        assert seen == [(3, 3, 1), (3, 3, 0), (3, 2, 0), (3, 1, 0), (3, 0, 0), (2, 0, 0), (1, 0, 0)]


@MODES
async def test_pods_leave_in_reverse_even_if_no_controller_has_seen_them(quirks: str) -> None:
    async with zones(quirks) as world:
        await world.make_spread(in_zone("a", 4), in_zone("b"))
        await world.make_replica_set()
        world.cluster.control_plane["workloadspread"].pause()
        await world.scale(6)
        assert await world.counts() == {"a": 4, "b": 2}
        if quirks == "upstream":
            assert await world.costs() == {"a": {None}, "b": {None}}
            return
        assert await world.costs() == {"a": {"200"}, "b": {"100"}}
        await world.scale(4)
        assert await world.counts() == {"a": 4}


async def test_percentages_are_of_the_replicas_that_there_are_to_be() -> None:
    async with zones() as world:
        await world.make_spread(in_zone("a", "20%"), in_zone("b", "30%"), in_zone("c", "50%"))
        await world.make_replica_set(30)
        await world.settle()
        assert await world.counts() == {"a": 6, "b": 9, "c": 15}
        await world.scale(20)
        assert await world.counts() == {"a": 6, "b": 9, "c": 5}  # by the costs of thirty
        assert await world.missing() == [0, 0, 5]
        assert await world.costs() == {"a": {"300", "-100"}, "b": {"200", "-200"}, "c": {"100"}}
        await world.scale(18)  # limits 4, 6 and 9; 2 and 3 are too many
        assert await world.counts() == {"a": 6, "b": 7, "c": 5}
        await world.scale(30)
        assert await world.counts() == {"a": 6, "b": 9, "c": 15}


async def test_a_lower_limit_moves_nothing_and_says_who_goes_first() -> None:
    async with zones() as world:
        await world.make_spread(in_zone("a", 6), in_zone("b"))
        await world.make_replica_set()
        await world.scale(8)
        assert await world.counts() == {"a": 6, "b": 2}
        fewer = [in_zone("a", 2), in_zone("b")]
        await world.patch(SPREADS, "web", {"spec": {"subsets": fewer}})
        await world.settle()
        assert await world.counts() == {"a": 6, "b": 2}
        assert await world.costs() == {"a": {"200", "-100"}, "b": {"100"}}
        assert (await world.status())["observedGeneration"] == 2
        await world.scale(4)
        assert await world.counts() == {"a": 2, "b": 2}
        more = [in_zone("a", 4), in_zone("b")]
        await world.patch(SPREADS, "web", {"spec": {"subsets": more}})
        await world.settle()
        await world.scale(6)
        assert await world.counts() == {"a": 4, "b": 2}


async def test_pods_of_a_subset_that_is_no_more_go_first() -> None:
    async with zones() as world:
        await world.make_spread(in_zone("a", 2), in_zone("b", 2), in_zone("c"))
        await world.make_replica_set()
        await world.scale(6)
        left = [in_zone("b", 2), in_zone("c")]
        await world.patch(SPREADS, "web", {"spec": {"subsets": left}})
        await world.settle()
        assert await world.costs() == {"a": {"-300"}, "b": {"200"}, "c": {"100"}}
        await world.scale(4)
        assert await world.counts() == {"b": 2, "c": 2}


def template(image: str, **labels: str) -> Document:
    spec = {"containers": [{"name": "c", "image": image}]}
    return {"metadata": {"labels": {"app": "web", **labels}}, "spec": spec}


class Rollout:
    """A Deployment, and what its controller would do: a ReplicaSet for each template."""

    def __init__(self, world: Zones) -> None:
        self._world = world
        self._uid = ""

    async def begin(self, replicas: int) -> None:
        selector = {"matchLabels": {"app": "web"}}
        spec = {"replicas": replicas, "selector": selector, "template": template("v1")}
        metadata = {"name": "web", "namespace": "default"}
        document = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
        made = await self._world.create(DEPLOYMENTS, {**document, "spec": spec})
        self._uid = made["metadata"]["uid"]
        await self._make("v1")

    async def update(self, image: str) -> None:
        await self._world.patch(DEPLOYMENTS, "web", {"spec": {"template": template(image)}})
        await self._make(image)

    async def _make(self, version: str) -> None:
        labels = {"app": "web", "pod-template-hash": version}
        document = a_replica_set(f"web-{version}", labels, replicas=0)
        owner = controlled_by("web", self._uid, "Deployment")
        document["metadata"] |= {"labels": labels, "ownerReferences": [owner]}
        document["spec"]["template"] = template(version, **{"pod-template-hash": version})
        await self._world.create(REPLICA_SETS, document)

    async def pods_by_version(self) -> dict[str, dict[str, int]]:
        found: dict[str, Counter[str]] = {}
        for pod in await self._world.pods():
            version = pod.labels["pod-template-hash"]
            found.setdefault(version, Counter())[subset_of(pod)] += 1
        return {version: dict(counts) for version, counts in found.items()}


async def test_a_rollout_fills_from_the_front_while_the_old_version_empties_from_the_front() -> (
    None
):
    async with zones() as world:
        await world.make_spread(in_zone("a", 2), in_zone("b", 2), in_zone("c"), kind="Deployment")
        rollout = Rollout(world)
        await rollout.begin(6)
        await world.scale(6, "web-v1")
        assert await rollout.pods_by_version() == {"v1": {"a": 2, "b": 2, "c": 2}}
        await rollout.update("v2")
        seen = []
        for number in range(1, 7):
            await world.scale(number, "web-v2")
            await world.scale(6 - number, "web-v1")
            versions = await rollout.pods_by_version()
            seen.append([versions.get(version, {}) for version in ("v1", "v2")])
        assert seen == [
            [{"a": 1, "b": 2, "c": 2}, {"a": 1}],
            [{"b": 2, "c": 2}, {"a": 2}],
            [{"b": 1, "c": 2}, {"a": 2, "b": 1}],
            [{"c": 2}, {"a": 2, "b": 2}],
            [{"c": 1}, {"a": 2, "b": 2, "c": 1}],
            [{}, {"a": 2, "b": 2, "c": 2}],
        ]
        assert list((await world.status())["versionedSubsetStatuses"]) == ["v2"]
        assert await world.costs() == {"a": {"300"}, "b": {"200"}, "c": {"100"}}


async def test_a_late_pod_of_an_old_version_is_put_right_by_the_controller() -> None:
    async with zones() as world:
        await world.make_spread(in_zone("a", 2), in_zone("b", 2), in_zone("c"), kind="Deployment")
        rollout = Rollout(world)
        await rollout.begin(2)
        await world.scale(2, "web-v1")
        await rollout.update("v2")
        plane = world.cluster.control_plane["workloadspread"]
        plane.pause()
        await world.scale(3, "web-v1")
        assert (await world.costs())["b"] == {"200"}
        plane.resume()
        await world.scale(5, "web-v1")
        assert await world.costs() == {"a": {"100"}, "b": {"200"}, "c": {"300"}}


async def test_a_rollout_whose_replica_set_is_not_there_yet_is_waited_for() -> None:
    async with zones() as world:
        await world.make_spread(in_zone("a", 2), in_zone("b"), kind="Deployment")
        rollout = Rollout(world)
        await rollout.begin(2)
        await world.scale(2, "web-v1")
        before = await world.status()
        unknown = {"spec": {"replicas": 3, "template": template("v2")}}
        await world.patch(DEPLOYMENTS, "web", unknown)
        await world.passes(60)
        assert await world.status() == before
        await rollout.update("v2")
        await world.settle()
        assert (await world.status())["observedGeneration"] == 1
        assert {pod.deletion_cost for pod in await world.pods()} == {"100"}  # a's, of an old one


async def test_a_zone_without_room_is_left_and_tried_again_after_five_minutes() -> None:
    async with zones() as world:
        await world.make_spread(
            in_zone("a", 4), in_zone("b", 4), in_zone("c"), scheduleStrategy=ADAPTIVE
        )
        await world.make_replica_set()
        await world.close("a")
        await world.patch(REPLICA_SETS, "web", {"spec": {"replicas": 6}})
        await world.passes(15)
        assert await world.counts() == {"a": 4, "b": 2}
        await world.passes(20)
        assert await world.counts() == {"b": 4, "c": 2}
        assert await world.schedulable() == ["False", "True", "True"]
        await world.reopen("a")
        await world.passes(270)
        assert await world.schedulable() == ["False", "True", "True"]
        await world.passes(30)
        assert await world.schedulable() == ["True", "True", "True"]
        assert ("RecoverSchedulable", "web") in [each[:2] for each in await world.told()]
        await world.scale(8)
        assert await world.counts() == {"a": 2, "b": 4, "c": 2}


async def test_upstream_does_not_notice_that_pods_have_become_unschedulable() -> None:
    async with zones("upstream") as world:
        await world.make_spread(in_zone("a", 4), in_zone("b"), scheduleStrategy=ADAPTIVE)
        await world.make_replica_set()
        await world.close("a")
        await world.patch(REPLICA_SETS, "web", {"spec": {"replicas": 2}})
        await world.passes(120)
        assert await world.counts() == {"a": 2}
        await world.scale(3)
        await world.passes(60)
        assert (await world.counts())["b"] > 0


async def test_a_zone_is_left_only_for_as_long_as_it_has_no_room() -> None:
    async with zones() as world:
        await world.make_spread(in_zone("a", 4), in_zone("b"), scheduleStrategy=ADAPTIVE)
        await world.make_replica_set()
        await world.close("a")
        await world.patch(REPLICA_SETS, "web", {"spec": {"replicas": 2}})
        await world.passes(15)
        await world.reopen("a")
        await world.passes(400)
        assert await world.counts() == {"a": 2}
        assert await world.schedulable() == ["True", "True"]


async def remove(world: Zones, names: list[str], how: str) -> None:
    """Delete or evict many pods at once."""

    async def one(name: str) -> None:
        path = PODS.object(name, "default")
        if how == "delete":
            await world.client.delete(path)
        else:
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
            await world.client.create(path.subresource("eviction"), orjson.dumps(body), decode)

    async with world.cluster.clock.jumping():
        await asyncio.gather(*map(one, names))


@MODES
@pytest.mark.parametrize("how", ["delete", "evict"])
async def test_storms_of_deletions_are_made_up_for(how: str, quirks: str) -> None:
    async with zones(quirks) as world:
        await world.make_spread(in_zone("a", 6), in_zone("b", 6), in_zone("c"))
        await world.make_replica_set()
        await world.scale(18)
        for _ in range(3):
            names = sorted(pod.name for pod in await world.pods())
            await remove(world, names[:14], how)
            await world.settle()
            assert await world.counts() == {"a": 6, "b": 6, "c": 6}
            assert await world.missing() == [0, 0, -1]
        entries = (await world.status())["versionedSubsetStatuses"]["versionIgnored"]
        assert not any({"creatingPods", "deletingPods"} & set(entry) for entry in entries)


async def test_an_admitted_pod_that_never_appears_expires_with_an_event() -> None:
    async with zones() as world:
        await world.make_spread(in_zone("a", 3), in_zone("b"))
        await world.make_replica_set()
        await world.scale(1)
        written = await world.get(SPREADS, "web")
        (entry, *_) = written["status"]["versionedSubsetStatuses"]["versionIgnored"]
        entry["creatingPods"] = {"ghost": "2026-01-01T00:01:00Z"}
        entry["missingReplicas"] -= 1
        path = SPREADS.object("web", "default").subresource("status")
        await world.client.update(path, orjson.dumps(written), decode)
        await world.passes(60)
        (entry, *_) = (await world.status())["versionedSubsetStatuses"]["versionIgnored"]
        assert entry == {"name": "a", "replicas": 1, "missingReplicas": 2}
        told = [each for each in await world.told() if each[1] == "web"]
        assert ("CreatePodFailed", "web", told[-1][2]) in told
        assert "ghost" in told[-1][2]


async def test_in_quiet_times_nothing_is_written_except_upstream() -> None:
    for quirks in ("fixed", "upstream"):
        async with zones(quirks) as world:
            await world.make_spread(in_zone("a", 3), in_zone("b"))
            await world.make_replica_set()
            await world.scale(5)
            world.hands.cancel()
            before = await world.find(SPREADS, "web"), await world.pods()
            await world.passes(11 * 3600)  # in that time all are looked at once more
            assert (await world.find(SPREADS, "web"), await world.pods()) == before


async def test_pods_that_no_webhook_has_seen_are_adopted_where_they_run() -> None:
    async with zones() as world:
        await world.make_spread(in_zone("a", 1), in_zone("b"))
        await world.cluster.control_plane[SPREAD_WEBHOOKS].stop()
        await world.delete(MUTATING, NAME)
        await world.make_replica_set()
        await world.scale(4)
        assert set(await world.counts()) == {"a"}  # the first node that they fit
        assert await world.costs() == {"a": {"200", "-100"}}
        assert await world.missing() == [0, -1]
