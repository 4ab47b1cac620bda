"""Deletion of namespaces: their content is deleted first."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.resources import NAMESPACES, PODS
from tests.builders import Document, blocking, manifest, running_pod, thing
from tests.fakeapi.controlplane.conftest import SetStage
from tests.stage import CONFIG_MAPS, Stage

SHOP = manifest("Namespace", "shop")


def inside(name: str, *owners: Document, **fields: object) -> Document:
    """Build an object in the namespace."""
    return thing(name, *owners, namespace="shop", **fields)  # type: ignore[arg-type]


class Case(NamedTuple):
    """The content of the namespace; it is deleted after five seconds, or the reason why not."""

    content: tuple[Document, ...]
    remaining: str = ""


CASES = {
    "an empty one": Case(()),
    "config maps": Case((inside("a"), inside("b"))),
    "kinds of many groups": Case(
        (
            inside("q", kind="ResourceQuota"),
            inside("r", kind="Role", version="rbac.authorization.k8s.io/v1"),
            inside("l", kind="Lease", version="coordination.k8s.io/v1"),
            inside("h", kind="HorizontalPodAutoscaler", version="autoscaling/v2"),
        )
    ),
    "owners and what they own": Case((inside("a"), inside("b", blocking("a")))),
    "a pod that has no node": Case((running_pod("p", "", namespace="shop"),)),
    "a pod without a kubelet": Case(
        (running_pod("p", "node", namespace="shop"), inside("a")),
        "Some resources are remaining: pods. has 1 resource instances",
    ),
    "an object with a finalizer": Case(
        (inside("a", finalizers=["example.com/hold"]),),
        "Some resources are remaining: configmaps. has 1 resource instances",
    ),
}


async def condition(stage: Stage, type_: str) -> Document:
    namespace = await stage.get(NAMESPACES, "shop")
    found = [c for c in namespace["status"].get("conditions", ()) if c["type"] == type_]
    return found[0] if found else {}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("run", ["namespaces", "gc,namespaces"])
async def test_content_is_deleted_first(name: str, run: str, set_stage: SetStage) -> None:
    content, remaining = CASES[name]
    stage = await set_stage(run, SHOP, *content)
    await stage.delete(NAMESPACES, "shop")
    await stage.passes(4.9)
    assert await stage.find(NAMESPACES, "shop"), "other servers may not have seen the deletion yet"
    await stage.passes(0.1)
    if remaining:
        await stage.passes(300)
        assert (await condition(stage, "NamespaceContentRemaining"))["message"] == remaining
    else:
        assert await stage.find(NAMESPACES, "shop") is None
        assert await stage.names() == []


async def test_objects_of_other_namespaces_stay(set_stage: SetStage) -> None:
    stage = await set_stage("namespaces", SHOP, inside("a"), thing("mine"))
    await stage.delete(NAMESPACES, "shop")
    assert await stage.names(after=10) == ["mine"]


async def test_pods_are_deleted_first(set_stage: SetStage) -> None:
    pod = running_pod("p", "node", namespace="shop")
    stage = await set_stage("namespaces", SHOP, pod, inside("a"))
    await stage.delete(NAMESPACES, "shop")
    assert await stage.names(after=60) == ["a"]
    await stage.client.delete(PODS.object("p", "shop"), grace_period_seconds=0)
    await stage.passes(60)
    assert await stage.find(NAMESPACES, "shop") is None


async def test_a_namespace_is_synced_again_in_half_a_grace_period(set_stage: SetStage) -> None:
    pod = running_pod("p", "node", namespace="shop", terminationGracePeriodSeconds=40)
    stage = await set_stage("namespaces", SHOP, pod)
    await stage.delete(NAMESPACES, "shop")
    await stage.passes(11)  # at 5 s, and again 5 s after the conditions have been written
    await stage.client.delete(PODS.object("p", "shop"), grace_period_seconds=0)
    await stage.passes(19)
    assert await stage.find(NAMESPACES, "shop")
    await stage.passes(2)
    assert await stage.find(NAMESPACES, "shop") is None


async def test_finalizers_are_reported_and_awaited(set_stage: SetStage) -> None:
    stage = await set_stage("namespaces", SHOP, inside("a", finalizers=["example.com/hold"]))
    await stage.delete(NAMESPACES, "shop")
    await stage.passes(6)
    remaining = await condition(stage, "NamespaceFinalizersRemaining")
    assert (remaining["status"], remaining["message"]) == (
        "True",
        "Some finalizers are remaining: example.com/hold in 1 resource instances",
    )
    await stage.patch(CONFIG_MAPS, "a", {"metadata": {"finalizers": None}}, "shop")
    await stage.passes(9)
    assert await stage.find(NAMESPACES, "shop") is None


async def test_finalizers_of_other_controllers_stay_on_the_namespace(set_stage: SetStage) -> None:
    metadata = {"labels": {"a": "b"}, "finalizers": ["example.com/mine"]}
    shop = manifest("Namespace", "shop", metadata=metadata, spec={"finalizers": ["kubernetes"]})
    stage = await set_stage("namespaces", shop, inside("a"))
    await stage.delete(NAMESPACES, "shop")
    await stage.passes(10)
    namespace = await stage.get(NAMESPACES, "shop")
    assert (namespace["spec"], namespace["metadata"]["labels"]["a"]) == ({}, "b")
    assert await stage.names() == []
    await stage.patch(NAMESPACES, "shop", {"metadata": {"finalizers": None}})
    assert await stage.find(NAMESPACES, "shop") is None


async def test_no_object_is_created_in_a_terminating_namespace(set_stage: SetStage) -> None:
    stage = await set_stage("namespaces", SHOP)
    await stage.delete(NAMESPACES, "shop")
    with pytest.raises(ApiError, match="because it is being terminated") as refusal:
        await stage.create(CONFIG_MAPS, inside("late"))
    assert (refusal.value.status, refusal.value.causes) == (403, ("NamespaceTerminating",))


async def test_a_new_namespace_of_the_same_name_is_empty(set_stage: SetStage) -> None:
    stage = await set_stage("namespaces", SHOP, inside("a"))
    await stage.delete(NAMESPACES, "shop")
    await stage.passes(5)
    await stage.create(NAMESPACES, SHOP)
    await stage.create(CONFIG_MAPS, inside("b"))
    assert await stage.names(after=60) == ["b"]
