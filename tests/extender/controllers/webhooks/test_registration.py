"""The webhooks are registered as long as the WorkloadSpread definition exists, and restored."""

from __future__ import annotations

import pytest

from extender.controllers.process.controller_manager import SPREAD_WEBHOOKS
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
from tests.builders.workloadspread import Document, pod_of
from tests.extender.controllers.webhooks.stages import (
    KRUISE,
    process_stage,
    processes,
    webhook_stage,
)
from tests.stage import ApiAccess, Stage

BOTH = (MUTATING, VALIDATING)


async def hooks(stage: Stage) -> list[Document]:
    """Return all webhooks that the API server knows."""
    found = [await stage.find(resource, NAME) for resource in BOTH]
    return [webhook for each in found if each is not None for webhook in each["webhooks"]]


async def test_registered_rules_and_failure_policies() -> None:
    async with webhook_stage() as stage:
        registered = {
            each["name"]: (
                each["rules"][0]["operations"],
                each["rules"][0]["resources"],
                each["failurePolicy"],
                each["namespaceSelector"],
            )
            for each in await hooks(stage)
        }
    elsewhere = {"matchExpressions": [{"key": "control-plane", "operator": "DoesNotExist"}]}
    assert registered == {
        CREATE_POD: (["CREATE"], ["pods"], "Fail", elsewhere),
        DELETE_POD: (["DELETE"], ["pods"], "Fail", elsewhere),
        EVICT_POD: (["CREATE"], ["pods/eviction"], "Fail", elsewhere),
        VALIDATE: (["CREATE", "UPDATE"], ["workloadspreads"], "Fail", {}),
    }


async def test_webhooks_are_registered_while_the_definition_exists() -> None:
    async with webhook_stage(definitions=()) as stage:
        assert await hooks(stage) == []
        stage.load(*KRUISE)
        await stage.passes()
        assert len(await hooks(stage)) == 4
        await stage.delete(DEFINITIONS, DEFINITION)
        await stage.passes()
        assert await hooks(stage) == []


async def test_webhooks_are_registered_again_after_a_reset() -> None:
    async with webhook_stage() as stage:
        stage.cluster.reset()
        await stage.passes(5)
        assert await hooks(stage) == []
        stage.load(*KRUISE)
        await stage.passes(5)
        assert len(await hooks(stage)) == 4


@pytest.mark.parametrize("resource", BOTH, ids=str)
async def test_changes_by_others_are_reverted(resource: Resource) -> None:
    async with webhook_stage() as stage:
        before = await hooks(stage)
        await stage.delete(resource, NAME)
        await stage.passes()
        assert await hooks(stage) == before
        await stage.patch(resource, NAME, {"webhooks": []})
        await stage.passes()
        assert await hooks(stage) == before


async def test_the_definition_has_the_address_of_the_conversion() -> None:
    async with process_stage() as stage:
        found = await stage.get(DEFINITIONS, DEFINITION)
        config = found["spec"]["conversion"]["webhook"]["clientConfig"]
        assert config == {"url": "https://127.0.0.1:1/convert"}


async def test_a_definition_without_conversion_is_unchanged() -> None:
    plain = {**KRUISE[0], "spec": {**KRUISE[0]["spec"], "conversion": {"strategy": "None"}}}
    async with webhook_stage(definitions=(plain, KRUISE[1])) as stage:
        found = await stage.get(DEFINITIONS, DEFINITION)
        assert found["spec"]["conversion"] == {"strategy": "None"}
        assert len(await hooks(stage)) == 4


async def addresses(stage: Stage) -> set[str | None]:
    return {each["clientConfig"].get("url") for each in await hooks(stage)}


async def test_the_last_registration_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    async with webhook_stage() as stage:
        async with processes(stage.cluster):
            await stage.passes(60)
            assert None not in await addresses(stage)
        await stage.cluster.control_plane[SPREAD_WEBHOOKS].stop()
        stage.cluster.control_plane[SPREAD_WEBHOOKS].start()
        await stage.passes()
        assert await addresses(stage) == {None}
    assert capsys.readouterr().out.count("webhooks_taken_over") == 3


async def test_a_fork_calls_webhooks_of_its_own() -> None:
    async with webhook_stage() as stage, stage.cluster.fork() as fork:
        await fork.clock.advance(1)
        await stage.cluster.control_plane[SPREAD_WEBHOOKS].stop()
        await ApiAccess(fork.client).create(PODS, pod_of("web-1"))
        assert len(await ApiAccess(fork.client).all(PODS)) == 1
