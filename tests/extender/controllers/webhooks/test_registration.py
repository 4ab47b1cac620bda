"""The webhooks are registered as long as the WorkloadSpread definition exists, and restored."""

from __future__ import annotations

import pytest

from extender.controllers.webhooks.registration import (
    CREATE_POD,
    DELETE_POD,
    EVICT_POD,
    MUTATING,
    NAME,
    VALIDATE,
    VALIDATING,
)
from extender.controllers.workloadspread.spread_cache import DEFINITION
from extender.controllers.workloadspread.types import DEFINITIONS
from extender.kube.rest.resources import PODS, Resource
from fakeapi import VirtualCluster
from tests.builders import encoded
from tests.builders.workloadspread import Document, pod_of
from tests.extender.controllers.webhooks.stages import KRUISE, processes, stage
from tests.stage import Stage, decode

BOTH = (MUTATING, VALIDATING)


async def hooks(stage: Stage) -> list[Document]:
    """Return all webhooks that the API server knows."""
    found = [await stage.find(resource, NAME) for resource in BOTH]
    return [webhook for each in found if each is not None for webhook in each["webhooks"]]


async def test_registered_rules_and_failure_policies() -> None:
    async with stage(*KRUISE) as world:
        told = {
            each["name"]: (
                each["rules"][0]["operations"],
                each["rules"][0]["resources"],
                each["failurePolicy"],
                each["namespaceSelector"],
            )
            for each in await hooks(world)
        }
    elsewhere = {"matchExpressions": [{"key": "control-plane", "operator": "DoesNotExist"}]}
    assert told == {
        CREATE_POD: (["CREATE"], ["pods"], "Fail", elsewhere),
        DELETE_POD: (["DELETE"], ["pods"], "Fail", elsewhere),
        EVICT_POD: (["CREATE"], ["pods/eviction"], "Fail", elsewhere),
        VALIDATE: (["CREATE", "UPDATE"], ["workloadspreads"], "Fail", {}),
    }


async def test_without_a_definition_there_is_nothing_and_with_it_all() -> None:
    async with stage() as world:
        assert await hooks(world) == []
        world.load(*KRUISE)
        await world.passes()
        assert len(await hooks(world)) == 4
        await world.delete(DEFINITIONS, DEFINITION)
        await world.passes()
        assert await hooks(world) == []


async def test_webhooks_are_registered_again_after_a_reset() -> None:
    async with stage(*KRUISE) as world:
        world.cluster.reset()
        await world.passes(5)
        assert await hooks(world) == []
        world.load(*KRUISE)
        await world.passes(5)
        assert len(await hooks(world)) == 4


@pytest.mark.parametrize("resource", BOTH, ids=str)
async def test_changes_by_others_are_reverted(resource: Resource) -> None:
    async with stage(*KRUISE) as world:
        before = await hooks(world)
        await world.delete(resource, NAME)
        await world.passes()
        assert await hooks(world) == before
        await world.patch(resource, NAME, {"webhooks": []})
        await world.passes()
        assert await hooks(world) == before


async def test_the_definition_says_where_it_is_converted() -> None:
    cluster = VirtualCluster(run="none")
    cluster.load(KRUISE)
    async with cluster, processes(cluster):
        world = Stage(cluster)
        found = await world.get(DEFINITIONS, DEFINITION)
        config = found["spec"]["conversion"]["webhook"]["clientConfig"]
        assert config == {"url": "https://127.0.0.1:1/convert"}


async def test_a_definition_without_conversion_is_unchanged() -> None:
    plain = {**KRUISE[0], "spec": {**KRUISE[0]["spec"], "conversion": {"strategy": "None"}}}
    async with stage(plain, *KRUISE[1:]) as world:
        found = await world.get(DEFINITIONS, DEFINITION)
        assert found["spec"]["conversion"] == {"strategy": "None"}
        assert len(await hooks(world)) == 4


async def test_the_last_registration_wins_without_a_fight(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with stage(*KRUISE) as world:
        async with processes(world.cluster):
            await world.passes(60)
            addresses = {each["clientConfig"].get("url") for each in await hooks(world)}
            assert None not in addresses
        await world.cluster.control_plane["spreadwebhooks"].stop()
        world.cluster.control_plane["spreadwebhooks"].start()
        await world.passes()
        addresses = {each["clientConfig"].get("url") for each in await hooks(world)}
        assert addresses == {None}
    assert capsys.readouterr().out.count("webhooks_taken_over") == 3


async def test_a_fork_asks_webhooks_of_its_own() -> None:
    async with stage(*KRUISE) as world, world.cluster.fork() as fork:
        await fork.clock.advance(1)
        await world.cluster.control_plane["spreadwebhooks"].stop()
        pods = PODS.collection("default")
        await fork.client.create(pods, encoded(pod_of("web-1")), decode)
        assert len((await fork.client.list(PODS, decode)).items) == 1
