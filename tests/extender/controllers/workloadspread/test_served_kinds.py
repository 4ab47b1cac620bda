"""Targets of every kind, and kinds that are defined, changed and removed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from extender.controllers.workloadspread.types import DEFINITIONS
from extender.kube.rest.client import Propagation
from extender.kube.rest.resources import PODS, REPLICA_SETS, STATEFUL_SETS, Resource
from fakeapi.apiserver.kinds.schemas import shipped_definitions
from policies.replicaset import DELETION_COST
from tests.builders import Document, manifest
from tests.builders.replicas import a_replica_set, reference
from tests.builders.workloadspread import allowed_kinds, injected, spread_json, target_json
from tests.extender.controllers.workloadspread.objects import CLONE_SET_DEFINITION, definition
from tests.extender.controllers.workloadspread.stages import ControllerStage, controller_stage
from tests.stage import CLONE_SETS, CONFIG_MAPS, DEPLOYMENTS, JOBS, SPREADS, Stage

ADVANCED: Final = Resource("apps.kruise.io", "v1beta1", "statefulsets", namespaced=True)
GAMES: Final = Resource("game.io", "v1", "games", namespaced=True)
(SPREAD_DEFINITION,) = shipped_definitions(["workloadspread"])

CONTAINERS: Final = [{"name": "c", "image": "i"}]
TEMPLATE: Final = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": CONTAINERS}}
RUN_ONCE: Final = {"spec": {"containers": CONTAINERS, "restartPolicy": "Never"}}
COMMON: Final = {"selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
SCALE: Final = {
    "specReplicasPath": ".spec.count",
    "statusReplicasPath": ".status.count",
    "labelSelectorPath": ".status.selector",
}


def target_of(resource: Resource, kind: str) -> Document:
    return target_json(kind, f"{resource.group}/{resource.version}")


async def create_spread(stage: Stage, resource: Resource, kind: str, **spec: Any) -> None:
    """Create a WorkloadSpread of two halves."""
    halves = [{"name": "a", "maxReplicas": "50%"}, {"name": "b", "maxReplicas": "50%"}]
    document = spread_json(**{"subsets": halves, "targetRef": target_of(resource, kind), **spec})
    await stage.create(SPREADS, document)


async def create_web(stage: Stage, resource: Resource, kind: str, **spec: Any) -> Document:
    """Create the object ``web`` of a kind."""
    version = f"{resource.group}/{resource.version}"
    return await stage.create(resource, manifest(kind, "web", version=version, spec=spec))


def controller_reference(owner: Document) -> Document:
    meta = owner["metadata"]
    return reference(owner["kind"], meta["name"], meta["uid"], apiVersion=owner["apiVersion"])


async def create_pod(stage: Stage, owner: Document, subset: str = "a") -> None:
    """Create a pod of an owner, in a subset."""
    metadata = {
        "labels": owner["spec"].get("selector", {}).get("matchLabels", {"app": "web"}),
        "annotations": injected(subset),
        "ownerReferences": [controller_reference(owner)],
    }
    pod = manifest("Pod", f"web-{subset}", metadata=metadata, spec=TEMPLATE["spec"])
    await stage.create(PODS, pod)


@asynccontextmanager
async def started(*objects: Document, quirks: str = "fixed") -> AsyncIterator[ControllerStage]:
    """Open a stage whose controller has listed these definitions and objects."""
    async with controller_stage(*objects, quirks=quirks) as stage:
        await stage.passes(2)
        yield stage


TARGETS: Final[list[tuple[Resource, str, Document, str]]] = [
    (CLONE_SETS, "CloneSet", COMMON, "replicas"),
    (REPLICA_SETS, "ReplicaSet", COMMON, "replicas"),
    (STATEFUL_SETS, "StatefulSet", {**COMMON, "serviceName": "web"}, "replicas"),
    (ADVANCED, "StatefulSet", COMMON, "replicas"),
    (JOBS, "Job", {"template": RUN_ONCE}, "parallelism"),
]
KRUISE = (
    SPREAD_DEFINITION,
    CLONE_SET_DEFINITION,
    definition("apps.kruise.io/v1beta1", "StatefulSet"),
)


@pytest.mark.parametrize(
    ("resource", "kind", "spec", "field"), TARGETS, ids=[str(each[0]) for each in TARGETS]
)
async def test_targets_and_their_changes_are_counted(
    resource: Resource, kind: str, spec: Document, field: str
) -> None:
    async with started(*KRUISE) as stage:
        await create_spread(stage, resource, kind)
        owner = await create_web(stage, resource, kind, **spec, **{field: 4})
        await create_pod(stage, owner)
        assert await stage.counts_after() == [(1, 1), (0, 2)]
        await stage.patch(resource, "web", {"spec": {field: 8}})
        assert await stage.counts_after() == [(1, 3), (0, 4)]
        await stage.delete(resource, "web", Propagation.BACKGROUND)
        assert await stage.counts_after() == [(0, 0), (0, 0)]


async def test_a_stateful_set_s_new_size_is_not_noticed_upstream() -> None:
    async with started(*KRUISE, quirks="upstream") as stage:
        await create_spread(stage, STATEFUL_SETS, "StatefulSet")
        owner = await create_web(stage, STATEFUL_SETS, "StatefulSet", **COMMON, replicas=4)
        await create_pod(stage, owner)
        assert await stage.counts_after() == [(1, 1), (0, 2)]
        await stage.patch(STATEFUL_SETS, "web", {"spec": {"replicas": 8}})
        assert await stage.counts_after(60) == [(1, 1), (0, 2)]
        await create_pod(stage, owner, "b")
        assert await stage.counts_after() == [(1, 3), (1, 3)]


async def test_a_deployment_s_pods_are_those_of_its_replica_sets() -> None:
    async with started(SPREAD_DEFINITION) as stage:
        await create_spread(stage, DEPLOYMENTS, "Deployment")
        deployment = await create_web(stage, DEPLOYMENTS, "Deployment", **COMMON, replicas=4)
        labels = {"app": "web", "pod-template-hash": "h1"}
        replica_set = a_replica_set("web-h1", labels)
        owners = [controller_reference(deployment)]
        replica_set["metadata"] |= {"labels": labels, "ownerReferences": owners}
        await create_pod(stage, await stage.create(REPLICA_SETS, replica_set))
        assert await stage.counts_after() == [(1, 1), (0, 2)]
        found = await stage.pod("web-a")
        assert found["metadata"]["annotations"][DELETION_COST] == "200"


async def test_a_target_filter_has_the_paths_of_replicas_and_the_selector_of_pods() -> None:
    async with started(SPREAD_DEFINITION) as stage:
        selector = {"matchLabels": {"app": "web"}}
        paths = ["spec.parts.0.replicas", "spec.more"]
        stage.load(allowed_kinds({"Group": "game.io", "Kind": "Game"}))
        stage.load(definition("game.io/v1", "Game", SCALE))
        target_filter = {"selector": selector, "replicasPathList": paths}
        await create_spread(stage, GAMES, "Game", targetFilter=target_filter)
        parts = {"parts": [{"replicas": 6}], "more": 2, "count": 1}
        owner = await create_web(stage, GAMES, "Game", **parts)
        await create_pod(stage, owner)
        assert await stage.counts_after() == [(1, 3), (0, 4)]


async def test_a_path_without_a_value_is_tried_again(capsys: pytest.CaptureFixture[str]) -> None:
    async with started(SPREAD_DEFINITION) as stage:
        stage.load(allowed_kinds({"Group": "game.io", "Kind": "Game", "replicasPath": "spec.size"}))
        stage.load(definition("game.io/v1", "Game"))
        await create_spread(stage, GAMES, "Game")
        await create_web(stage, GAMES, "Game", count=4)
        assert await stage.counts_after(10) == []
        log = capsys.readouterr().out
        assert log.count("look_ended_early") == 1
        assert 'path "size" not exists' in log.replace("\\", "")
        await stage.patch(GAMES, "web", {"spec": {"size": 4}})
        assert await stage.counts_after(30) == [(0, 2), (0, 2)]


async def test_allowed_kinds_are_counted_by_their_path() -> None:
    async with started(SPREAD_DEFINITION, definition("game.io/v1", "Game")) as stage:
        entry = {"Group": "game.io", "Version": "v1", "Kind": "Game", "replicasPath": "spec.count"}
        stage.load(allowed_kinds(entry))
        owner = await create_web(stage, GAMES, "Game", count=4)
        await create_spread(stage, GAMES, "Game")
        await create_pod(stage, owner)
        assert await stage.counts_after() == [(1, 1), (0, 2)]
        await stage.patch(GAMES, "web", {"spec": {"count": 8}})
        assert await stage.counts_after() == [(1, 3), (0, 4)]


async def test_a_target_of_a_kind_that_is_not_allowed_has_no_replicas() -> None:
    async with started(SPREAD_DEFINITION, definition("game.io/v1", "Game")) as stage:
        stage.load(allowed_kinds({"Group": "game.io", "Kind": "Other"}))
        owner = await create_web(stage, GAMES, "Game", count=4)
        await create_spread(stage, GAMES, "Game", subsets=[{"name": "a", "maxReplicas": 2}])
        await create_pod(stage, owner)
        assert await stage.counts_after() == [(1, 1)]


async def test_pods_with_another_owner_count_by_the_scale_selector() -> None:
    game = definition("game.io/v1", "Game", SCALE, status={})
    async with started(SPREAD_DEFINITION, game) as stage:
        await create_web(stage, GAMES, "Game", count=4)
        await stage.patch(GAMES, "web", {"status": {"selector": "app=web"}})
        await create_pod(stage, manifest("Other", "x", metadata={"uid": "x"}, spec={}))
        await create_spread(stage, GAMES, "Game")
        assert await stage.counts_after() == [(1, 1), (0, 2)]


async def test_the_allowed_kinds_may_change_and_may_be_invalid(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with started(SPREAD_DEFINITION, definition("game.io/v1", "Game", SCALE)) as stage:
        await create_web(stage, GAMES, "Game", count=4, size=6)
        await create_spread(stage, GAMES, "Game")
        assert await stage.counts_after() == [(0, 2), (0, 2)]
        stage.load(allowed_kinds({"Group": "game.io", "Kind": "Game", "replicasPath": "spec.size"}))
        assert await stage.counts_after() == [(0, 3), (0, 3)]
        data = {"WorkloadSpread_Watch_Custom_Workload_WhiteList": "nonsense"}
        await stage.patch(CONFIG_MAPS, "kruise-configuration", {"data": data}, "kruise-system")
        assert await stage.counts_after() == [(0, 2), (0, 2)]
        assert capsys.readouterr().out.count("configuration_ignored") == 1


async def test_a_changed_scale_is_read_again() -> None:
    async with started(SPREAD_DEFINITION, definition("game.io/v1", "Game", SCALE)) as stage:
        await create_web(stage, GAMES, "Game", count=4, size=6)
        await create_spread(stage, GAMES, "Game")
        assert await stage.counts_after() == [(0, 2), (0, 2)]
        stage.load(definition("game.io/v1", "Game", {**SCALE, "specReplicasPath": ".spec.size"}))
        assert await stage.counts_after() == [(0, 3), (0, 3)]


async def test_a_server_without_workload_spreads_is_waited_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with started() as stage:
        await create_web(stage, REPLICA_SETS, "ReplicaSet", **COMMON, replicas=4)
        await stage.passes(3600)
        assert capsys.readouterr().out.count("kind_not_served") == 1
        await stage.create(DEFINITIONS, SPREAD_DEFINITION)
        await create_spread(stage, REPLICA_SETS, "ReplicaSet")
        assert await stage.counts_after() == [(0, 2), (0, 2)]
        await stage.delete(DEFINITIONS, SPREAD_DEFINITION["metadata"]["name"])
        await stage.passes(5)
        await stage.create(DEFINITIONS, SPREAD_DEFINITION)
        await create_spread(stage, REPLICA_SETS, "ReplicaSet")
        assert await stage.counts_after() == [(0, 2), (0, 2)]


async def test_a_target_of_a_kind_that_is_not_served_yet_is_waited_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with started(SPREAD_DEFINITION) as stage:
        await create_spread(stage, CLONE_SETS, "CloneSet")
        assert await stage.counts_after(3600) == []
        assert capsys.readouterr().out.count("target_kind_not_served") == 1
        await stage.create(DEFINITIONS, CLONE_SET_DEFINITION)
        await create_web(stage, CLONE_SETS, "CloneSet", replicas=4)
        assert await stage.counts_after() == [(0, 2), (0, 2)]


async def test_a_workload_spread_without_a_target_or_invalid_is_skipped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with started(SPREAD_DEFINITION) as stage:
        subsets = [{"name": "a", "maxReplicas": 1.5}]
        stage.load(manifest("WorkloadSpread", "web", spec={"subsets": subsets}))
        assert await stage.counts_after(60) == []
        assert capsys.readouterr().out.count("workload_spread_ignored") == 1
        await create_web(stage, REPLICA_SETS, "ReplicaSet", **COMMON, replicas=4)
        await stage.delete(SPREADS, "web")
        await create_spread(stage, REPLICA_SETS, "ReplicaSet")
        assert await stage.counts_after() == [(0, 2), (0, 2)]
