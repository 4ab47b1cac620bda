"""Targets of every kind, and kinds that come, change and go."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import orjson
import pytest

from extender.kube.rest.client import Propagation
from extender.kube.rest.resources import PODS, REPLICA_SETS, STATEFUL_SETS, Resource
from fakeapi import VirtualCluster
from fakeapi.apiserver.kinds.schemas import shipped_definitions
from policies.replicaset import DELETION_COST
from policies.workloadspread.quirks import quirks_of_mode
from tests.extender.controllers.workloadspread.killable_controller import Process
from tests.extender.controllers.workloadspread.objects import (
    CLONE_SET_DEFINITION,
    CLONE_SETS,
    DEFINITIONS,
    DEPLOYMENTS,
    JOBS,
    SPREADS,
    Document,
    definition,
)
from tests.extender.controllers.workloadspread.zones import spread_document
from tests.stage import CONFIG_MAPS, Stage

ADVANCED: Final = Resource("apps.kruise.io", "v1beta1", "statefulsets", namespaced=True)
GAMES: Final = Resource("game.io", "v1", "games", namespaced=True)
(SPREAD_DEFINITION,) = shipped_definitions(["workloadspread"])

CONTAINERS: Final = [{"name": "c", "image": "i"}]
TEMPLATE: Final = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": CONTAINERS}}
ONCE: Final = {"spec": {"containers": CONTAINERS, "restartPolicy": "Never"}}
COMMON: Final = {"selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
SCALE: Final = {
    "specReplicasPath": ".spec.count",
    "statusReplicasPath": ".status.count",
    "labelSelectorPath": ".status.selector",
}


class World(Stage):
    """A world in which a WorkloadSpread is looked at, and nothing else goes on."""

    async def spread_over(self, api_version: str, kind: str, **spec: Any) -> None:
        """Create a WorkloadSpread of two halves."""
        reference = {"apiVersion": api_version, "kind": kind, "name": "web"}
        halves = [{"name": "a", "maxReplicas": "50%"}, {"name": "b", "maxReplicas": "50%"}]
        whole = {"targetRef": reference, "subsets": halves, **spec}
        await self.create(SPREADS, spread_document(whole))

    async def make(self, resource: Resource, kind: str, **spec: Any) -> Document:
        """Create the object ``web`` of a kind."""
        document = {
            "apiVersion": f"{resource.group}/{resource.version}",
            "kind": kind,
            "metadata": {"name": "web", "namespace": "default"},
            "spec": spec,
        }
        return await self.create(resource, document)

    async def give_pod(self, owner: Document, put_into: str = "a", name: str = "") -> None:
        """Create a pod of an owner, in a subset."""
        reference = {
            **{key: owner[key] for key in ("apiVersion", "kind")},
            **{key: owner["metadata"][key] for key in ("name", "uid")},
            "controller": True,
        }
        text = orjson.dumps({"name": "web", "subset": put_into}).decode()
        metadata = {
            "name": name or f"web-{put_into}",
            "namespace": "default",
            "labels": owner["spec"].get("selector", {}).get("matchLabels", {"app": "web"}),
            "annotations": {"apps.kruise.io/matched-workloadspread": text},
            "ownerReferences": [reference],
        }
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": TEMPLATE["spec"]}
        await self.create(PODS, pod)

    async def counted(self) -> list[tuple[int, int]]:
        """Return how many pods each subset has, and how many it lacks, by the status."""
        found = await self.get(SPREADS, "web")
        entries = found.get("status", {}).get("subsetStatuses", ())
        return [(each["replicas"], each["missingReplicas"]) for each in entries]

    async def allow(self, *kinds: Document) -> None:
        """Write which kinds may be targeted besides those that everybody knows."""
        name = "kruise-configuration"
        text = orjson.dumps({"workloads": list(kinds)}).decode()
        data = {"WorkloadSpread_Watch_Custom_Workload_WhiteList": text}
        metadata = {"name": name, "namespace": "kruise-system"}
        self.load({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


@asynccontextmanager
async def world(*definitions: Document, quirks: str = "fixed") -> AsyncIterator[World]:
    """Open a world whose server has these definitions, and a controller in it."""
    async with VirtualCluster(run="none") as cluster:
        stage = World(cluster)
        stage.load(*definitions)
        process = Process(cluster, quirks=quirks_of_mode(quirks))
        try:
            await stage.passes(2)
            yield stage
        finally:
            await process.kill()


TARGETS: Final[list[tuple[Resource, str, Document, str]]] = [
    (CLONE_SETS, "CloneSet", COMMON, "replicas"),
    (REPLICA_SETS, "ReplicaSet", COMMON, "replicas"),
    (STATEFUL_SETS, "StatefulSet", {**COMMON, "serviceName": "web"}, "replicas"),
    (ADVANCED, "StatefulSet", COMMON, "replicas"),
    (JOBS, "Job", {"template": ONCE}, "parallelism"),
]
KRUISE = (
    SPREAD_DEFINITION,
    CLONE_SET_DEFINITION,
    definition("apps.kruise.io/v1beta1", "StatefulSet"),
)


@pytest.mark.parametrize(
    ("resource", "kind", "spec", "field"), TARGETS, ids=[str(each[0]) for each in TARGETS]
)
async def test_targets_are_counted_and_their_changes_noticed(
    resource: Resource, kind: str, spec: Document, field: str
) -> None:
    async with world(*KRUISE) as stage:
        await stage.spread_over(f"{resource.group}/{resource.version}", kind)
        owner = await stage.make(resource, kind, **spec, **{field: 4})
        await stage.give_pod(owner)
        await stage.passes(5)
        assert await stage.counted() == [(1, 1), (0, 2)]
        await stage.patch(resource, "web", {"spec": {field: 8}})
        await stage.passes(5)
        assert await stage.counted() == [(1, 3), (0, 4)]
        await stage.delete(resource, "web", Propagation.BACKGROUND)
        await stage.passes(5)
        assert await stage.counted() == [(0, 0), (0, 0)]


async def test_a_stateful_set_s_new_size_is_not_noticed_upstream() -> None:
    async with world(*KRUISE, quirks="upstream") as stage:
        await stage.spread_over("apps/v1", "StatefulSet")
        owner = await stage.make(STATEFUL_SETS, "StatefulSet", **COMMON, replicas=4)
        await stage.give_pod(owner)
        await stage.passes(5)
        assert await stage.counted() == [(1, 1), (0, 2)]
        await stage.patch(STATEFUL_SETS, "web", {"spec": {"replicas": 8}})
        await stage.passes(60)
        assert await stage.counted() == [(1, 1), (0, 2)]
        await stage.give_pod(owner, "b")
        await stage.passes(5)
        assert await stage.counted() == [(1, 3), (1, 3)]


async def test_a_deployment_s_pods_are_those_of_its_replica_sets() -> None:
    async with world(SPREAD_DEFINITION) as stage:
        await stage.spread_over("apps/v1", "Deployment")
        deployment = await stage.make(DEPLOYMENTS, "Deployment", **COMMON, replicas=4)
        reference = {**deployment, "apiVersion": "apps/v1", "kind": "Deployment"}
        labels = {"app": "web", "pod-template-hash": "h1"}
        template = {**TEMPLATE, "metadata": {"labels": labels}}
        hashed = {"selector": {"matchLabels": labels}, "template": template}
        made = await stage.create(REPLICA_SETS, owned_set(reference, labels, hashed))
        await stage.give_pod({"apiVersion": "apps/v1", "kind": "ReplicaSet", **made})
        await stage.passes(5)
        assert await stage.counted() == [(1, 1), (0, 2)]
        found = await stage.get(PODS, "web-a")
        assert found["metadata"]["annotations"][DELETION_COST] == "200"


def owned_set(owner: Document, labels: Document, spec: Document) -> Document:
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    metadata = {
        "name": "web-h1",
        "namespace": "default",
        "labels": labels,
        "ownerReferences": [reference],
    }
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}


async def test_a_target_filter_says_where_the_number_is_and_which_pods_count() -> None:
    async with world(SPREAD_DEFINITION) as stage:
        selector = {"matchLabels": {"app": "web"}}
        paths = ["spec.parts.0.replicas", "spec.more"]
        await stage.allow({"Group": "game.io", "Kind": "Game"})
        stage.load(definition("game.io/v1", "Game", SCALE))
        wanted = {"selector": selector, "replicasPathList": paths}
        await stage.spread_over("game.io/v1", "Game", targetFilter=wanted)
        parts = {"parts": [{"replicas": 6}], "more": 2, "count": 1}
        owner = await stage.make(GAMES, "Game", **parts)
        await stage.give_pod(owner)
        await stage.passes(5)
        assert await stage.counted() == [(1, 3), (0, 4)]


async def test_a_path_that_leads_nowhere_is_tried_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with world(SPREAD_DEFINITION) as stage:
        await stage.allow({"Group": "game.io", "Kind": "Game", "replicasPath": "spec.size"})
        stage.load(definition("game.io/v1", "Game"))
        await stage.spread_over("game.io/v1", "Game")
        await stage.make(GAMES, "Game", count=4)
        await stage.passes(10)
        assert await stage.counted() == []
        said = capsys.readouterr().out
        assert said.count("look_ended_early") == 1
        assert 'path "size" not exists' in said.replace("\\", "")
        await stage.patch(GAMES, "web", {"spec": {"size": 4}})
        await stage.passes(30)
        assert await stage.counted() == [(0, 2), (0, 2)]


async def test_kinds_of_others_are_counted_by_their_path() -> None:
    async with world(SPREAD_DEFINITION, definition("game.io/v1", "Game")) as stage:
        entry = {"Group": "game.io", "Version": "v1", "Kind": "Game", "replicasPath": "spec.count"}
        await stage.allow(entry)
        owner = await stage.make(GAMES, "Game", count=4)
        await stage.spread_over("game.io/v1", "Game")
        await stage.give_pod(owner)
        await stage.passes(5)
        assert await stage.counted() == [(1, 1), (0, 2)]
        await stage.patch(GAMES, "web", {"spec": {"count": 8}})
        await stage.passes(5)
        assert await stage.counted() == [(1, 3), (0, 4)]


async def test_a_number_that_is_not_known_is_no_number() -> None:
    async with world(SPREAD_DEFINITION, definition("game.io/v1", "Game")) as stage:
        await stage.allow({"Group": "game.io", "Kind": "Other"})
        owner = await stage.make(GAMES, "Game", count=4)
        await stage.spread_over("game.io/v1", "Game", subsets=[{"name": "a", "maxReplicas": 2}])
        await stage.give_pod(owner)
        await stage.passes(5)
        assert await stage.counted() == [(1, 1)]


async def test_pods_with_another_owner_count_by_the_scale_selector() -> None:
    game = definition("game.io/v1", "Game", SCALE, status={})
    async with world(SPREAD_DEFINITION, game) as stage:
        await stage.make(GAMES, "Game", count=4)
        await stage.patch(GAMES, "web", {"status": {"selector": "app=web"}})
        stranger = {"apiVersion": "v1", "kind": "Some", "metadata": {"name": "x", "uid": "x"}}
        await stage.give_pod({**stranger, "spec": {}})
        await stage.spread_over("game.io/v1", "Game")
        await stage.passes(5)
        assert await stage.counted() == [(1, 1), (0, 2)]


async def test_the_list_of_kinds_may_change_and_may_be_wrong(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with world(SPREAD_DEFINITION, definition("game.io/v1", "Game", SCALE)) as stage:
        await stage.make(GAMES, "Game", count=4, size=6)
        await stage.spread_over("game.io/v1", "Game")
        await stage.passes(5)
        assert await stage.counted() == [(0, 2), (0, 2)]
        await stage.allow({"Group": "game.io", "Kind": "Game", "replicasPath": "spec.size"})
        await stage.passes(5)
        assert await stage.counted() == [(0, 3), (0, 3)]
        data = {"WorkloadSpread_Watch_Custom_Workload_WhiteList": "nonsense"}
        await stage.patch(CONFIG_MAPS, "kruise-configuration", {"data": data}, "kruise-system")
        await stage.passes(5)
        assert await stage.counted() == [(0, 2), (0, 2)]
        assert capsys.readouterr().out.count("configuration_ignored") == 1


async def test_a_scale_that_is_defined_anew_is_read_anew() -> None:
    async with world(SPREAD_DEFINITION, definition("game.io/v1", "Game", SCALE)) as stage:
        await stage.make(GAMES, "Game", count=4, size=6)
        await stage.spread_over("game.io/v1", "Game")
        await stage.passes(5)
        assert await stage.counted() == [(0, 2), (0, 2)]
        stage.load(definition("game.io/v1", "Game", {**SCALE, "specReplicasPath": ".spec.size"}))
        await stage.passes(5)
        assert await stage.counted() == [(0, 3), (0, 3)]


async def test_a_server_without_workload_spreads_is_waited_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with world() as stage:
        await stage.make(REPLICA_SETS, "ReplicaSet", **COMMON, replicas=4)
        await stage.passes(3600)
        assert capsys.readouterr().out.count("kind_not_served") == 1
        await stage.create(DEFINITIONS, SPREAD_DEFINITION)
        await stage.spread_over("apps/v1", "ReplicaSet")
        await stage.passes(5)
        assert await stage.counted() == [(0, 2), (0, 2)]
        await stage.delete(DEFINITIONS, SPREAD_DEFINITION["metadata"]["name"])
        await stage.passes(5)
        await stage.create(DEFINITIONS, SPREAD_DEFINITION)
        await stage.spread_over("apps/v1", "ReplicaSet")
        await stage.passes(5)
        assert await stage.counted() == [(0, 2), (0, 2)]


async def test_a_target_of_a_kind_that_is_not_served_yet_is_waited_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with world(SPREAD_DEFINITION) as stage:
        await stage.spread_over("apps.kruise.io/v1alpha1", "CloneSet")
        await stage.passes(3600)
        assert await stage.counted() == []
        assert capsys.readouterr().out.count("target_kind_not_served") == 1
        await stage.create(DEFINITIONS, CLONE_SET_DEFINITION)
        await stage.make(CLONE_SETS, "CloneSet", replicas=4)
        await stage.passes(5)
        assert await stage.counted() == [(0, 2), (0, 2)]


async def test_a_workload_spread_without_a_target_or_invalid_is_skipped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with world(SPREAD_DEFINITION) as stage:
        broken = spread_document({"subsets": [{"name": "a", "maxReplicas": 1.5}]})
        stage.load(broken)
        await stage.passes(60)
        assert await stage.counted() == []
        assert capsys.readouterr().out.count("workload_spread_ignored") == 1
        await stage.make(REPLICA_SETS, "ReplicaSet", **COMMON, replicas=4)
        await stage.delete(SPREADS, "web")
        await stage.spread_over("apps/v1", "ReplicaSet")
        await stage.passes(5)
        assert await stage.counted() == [(0, 2), (0, 2)]
