"""The ResourceQuota controller: usage after deletions, changes and loads."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.resources import PODS, SERVICES, Resource
from fakeapi.controlplane.controllers.resource_quota_controller import RESOURCE_QUOTAS
from tests.builders import Document, manifest, running_pod, thing
from tests.builders.definitions import NAME, definition, widget
from tests.fakeapi.controlplane.conftest import SetStage
from tests.stage import CONFIG_MAPS, Stage

RUN = "resourcequota"
WIDGETS = Resource("example.com", "v1", "widgets", namespaced=True)
DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False)


def quota(**hard: str) -> Document:
    """Build the quota q."""
    return manifest("ResourceQuota", "q", spec={"hard": hard})


async def used(stage: Stage) -> Any:
    return (await stage.status_of(RESOURCE_QUOTAS, "q")).get("used")


async def test_a_new_quota_is_counted_and_then_enforced(set_stage: SetStage) -> None:
    stage = await set_stage(RUN, thing("a"), thing("b"))
    await stage.create(RESOURCE_QUOTAS, quota(configmaps="3"))
    await stage.passes(0)
    status = await stage.status_of(RESOURCE_QUOTAS, "q")
    assert status == {"hard": {"configmaps": "3"}, "used": {"configmaps": "2"}}
    await stage.create(CONFIG_MAPS, manifest("ConfigMap", "c"))
    assert await used(stage) == {"configmaps": "3"}
    with pytest.raises(ApiError, match="exceeded quota: q, requested: configmaps=1"):
        await stage.create(CONFIG_MAPS, manifest("ConfigMap", "d"))


async def test_a_deletion_makes_room_for_another_object(set_stage: SetStage) -> None:
    stage = await set_stage(RUN, thing("a"))
    await stage.create(RESOURCE_QUOTAS, quota(configmaps="1"))
    await stage.passes(0)
    await stage.delete(CONFIG_MAPS, "a")
    await stage.passes(0)
    assert await used(stage) == {"configmaps": "0"}
    await stage.create(CONFIG_MAPS, manifest("ConfigMap", "b"))


async def test_changed_limits_are_in_force_at_once(set_stage: SetStage) -> None:
    stage = await set_stage(RUN, thing("a"))
    await stage.create(RESOURCE_QUOTAS, quota(configmaps="1"))
    await stage.passes(0)
    await stage.patch(RESOURCE_QUOTAS, "q", {"spec": {"hard": {"configmaps": "2", "pods": "5"}}})
    await stage.passes(0)
    assert await stage.status_of(RESOURCE_QUOTAS, "q") == {
        "hard": {"configmaps": "2", "pods": "5"},
        "used": {"configmaps": "1", "pods": "0"},
    }


async def test_a_pod_that_finishes_gives_its_resources_back(set_stage: SetStage) -> None:
    stage = await set_stage(RUN)
    await stage.create(RESOURCE_QUOTAS, quota(**{"pods": "1", "count/pods": "2"}))
    await stage.passes(0)
    await stage.create(PODS, running_pod("p", "node"))
    assert await used(stage) == {"pods": "1", "count/pods": "1"}
    await stage.patch(PODS, "p", {"status": {"phase": "Succeeded"}})
    await stage.passes(0)
    assert await used(stage) == {"pods": "0", "count/pods": "1"}


async def test_a_pod_that_outlives_its_grace_period_is_no_longer_charged(
    set_stage: SetStage,
) -> None:
    stage = await set_stage(RUN)
    await stage.create(RESOURCE_QUOTAS, quota(pods="1"))
    await stage.passes(0)
    await stage.create(PODS, running_pod("p", "node"))
    await stage.end("p", grace=30)
    await stage.passes(30)
    assert await used(stage) == {"pods": "1"}
    await stage.passes(600)
    assert await used(stage) == {"pods": "0"}


async def test_loaded_objects_are_counted_a_second_later(set_stage: SetStage) -> None:
    stage = await set_stage(RUN)
    await stage.create(RESOURCE_QUOTAS, quota(configmaps="1"))
    await stage.passes(0)
    stage.load(thing("a"), thing("b"))
    await stage.passes(1)
    assert await used(stage) == {"configmaps": "2"}


async def test_a_changed_service_is_recounted(set_stage: SetStage) -> None:
    stage = await set_stage(RUN)
    await stage.create(RESOURCE_QUOTAS, quota(**{"services.nodeports": "2"}))
    await stage.passes(0)
    spec = {"type": "NodePort", "ports": [{"port": 1}]}
    await stage.create(SERVICES, manifest("Service", "s", spec=spec))
    assert await used(stage) == {"services.nodeports": "1"}
    change = {"spec": {"type": "ClusterIP", "ports": [{"port": 1, "nodePort": None}]}}
    await stage.patch(SERVICES, "s", change)
    await stage.passes(0)
    assert await used(stage) == {"services.nodeports": "0"}


async def test_only_objects_in_scope_are_counted(set_stage: SetStage) -> None:
    stage = await set_stage(RUN, running_pod("urgent", "n"), running_pod("usual", "n"))
    expression = {"scopeName": "PriorityClass", "operator": "In", "values": ["urgent"]}
    of_class = quota(pods="5")
    of_class["spec"]["scopeSelector"] = {"matchExpressions": [expression]}
    named = running_pod("p", "n")
    named["spec"]["priorityClassName"] = "urgent"
    stage.load(named)
    await stage.create(RESOURCE_QUOTAS, of_class)
    await stage.passes(0)
    assert await used(stage) == {"pods": "1"}


async def test_custom_resources_are_counted_once_they_are_defined(set_stage: SetStage) -> None:
    stage = await set_stage(RUN)
    counted = f"count/{NAME}"
    await stage.create(RESOURCE_QUOTAS, quota(**{counted: "1", "count/deployments.apps": "1"}))
    await stage.passes(0)
    assert await used(stage) == {"count/deployments.apps": "0"}
    await stage.create(DEFINITIONS, definition())
    await stage.passes(30)
    await stage.create(WIDGETS, widget())
    assert await used(stage) == {counted: "1", "count/deployments.apps": "0"}


async def test_a_deleted_quota_no_longer_limits(set_stage: SetStage) -> None:
    stage = await set_stage(RUN)
    await stage.create(RESOURCE_QUOTAS, quota(configmaps="0"))
    await stage.passes(0)
    await stage.delete(RESOURCE_QUOTAS, "q")
    await stage.passes(1)
    await stage.create(CONFIG_MAPS, manifest("ConfigMap", "a"))


async def test_unreadable_objects_do_not_stop_the_count(set_stage: SetStage) -> None:
    bad = running_pod("bad", "n")
    bad["spec"]["containers"] = [{"name": "c", "resources": {"requests": "all", "limits": [1]}}]
    stage = await set_stage(RUN, bad, running_pod("good", "n"))
    await stage.create(RESOURCE_QUOTAS, quota(pods="5", cpu="1"))
    await stage.passes(0)
    assert (await used(stage))["pods"] == "2"


async def test_the_count_is_exact_after_writes_at_the_same_time(set_stage: SetStage) -> None:
    stage = await set_stage(RUN, *(thing(f"old-{number}") for number in range(20)))
    await stage.create(RESOURCE_QUOTAS, quota(configmaps="50"))
    await stage.passes(0)
    creates = (stage.create(CONFIG_MAPS, manifest("ConfigMap", f"new-{n}")) for n in range(30))
    deletes = (stage.delete(CONFIG_MAPS, f"old-{n}") for n in range(15))
    await asyncio.gather(*creates, *deletes)
    await stage.passes(5)
    assert await used(stage) == {"configmaps": "35"}
