"""The end of namespaces: their content goes first, whatever it is, and then they."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.resources import NAMESPACES, PODS
from tests.builders import Document, blocking, running_pod, thing
from tests.fakeapi.controlplane.conftest import SetStage
from tests.stage import CONFIG_MAPS, Stage

SHOP = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}


def inside(name: str, *owners: Document, **fields: object) -> Document:
    """Build an object in the namespace."""
    return thing(name, *owners, namespace="shop", **fields)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Scene:
    """What is in the namespace, and after how many seconds it is gone (None: never)."""

    title: str
    content: tuple[Document, ...]
    gone_after: int | None
    remaining: str = ""

    def __str__(self) -> str:
        return self.title


SCENES = [
    Scene("an empty one", (), 5),
    Scene("config maps", (inside("a"), inside("b")), 5),
    Scene(
        "kinds of many groups",
        (
            inside("q", kind="ResourceQuota"),
            inside("r", kind="Role", version="rbac.authorization.k8s.io/v1"),
            inside("l", kind="Lease", version="coordination.k8s.io/v1"),
            inside("h", kind="HorizontalPodAutoscaler", version="autoscaling/v2"),
        ),
        5,
    ),
    Scene("owners and what they own", (inside("a"), inside("b", blocking("a"))), 5),
    Scene("a pod that has no node", (running_pod("p", "", namespace="shop"),), 5),
    Scene(
        "a pod that nobody ends",
        (running_pod("p", "node", namespace="shop"), inside("a")),
        None,
        "Some resources are remaining: pods. has 1 resource instances",
    ),
    Scene(
        "an object with a finalizer that nobody takes away",
        (inside("a", finalizers=["example.com/hold"]),),
        None,
        "Some resources are remaining: configmaps. has 1 resource instances",
    ),
]


async def condition(stage: Stage, type_: str) -> Document:
    namespace = await stage.get(NAMESPACES, "shop")
    found = [c for c in namespace["status"].get("conditions", ()) if c["type"] == type_]
    return found[0] if found else {}


@pytest.mark.parametrize("scene", SCENES, ids=str)
@pytest.mark.parametrize("run", ["namespaces", "gc,namespaces"])
async def test_when_it_is_gone(scene: Scene, run: str, set_stage: SetStage) -> None:
    stage = await set_stage(run)
    stage.load(SHOP, *scene.content)
    await stage.delete(NAMESPACES, "shop")
    await stage.passes(4.9)
    assert await stage.find(NAMESPACES, "shop"), "other servers may not have heard of it yet"
    await stage.passes(0.1)
    if scene.gone_after is not None:
        await stage.passes(scene.gone_after - 5)
        assert await stage.find(NAMESPACES, "shop") is None
        assert await stage.names() == []
    else:
        await stage.passes(300)
        assert (await condition(stage, "NamespaceContentRemaining"))["message"] == scene.remaining


async def test_objects_of_other_namespaces_stay(set_stage: SetStage) -> None:
    stage = await set_stage("namespaces")
    stage.load(SHOP, inside("a"), thing("mine"))
    await stage.delete(NAMESPACES, "shop")
    await stage.passes(10)
    assert await stage.names() == ["mine"]


async def test_pods_go_before_everything_else(set_stage: SetStage) -> None:
    stage = await set_stage("namespaces")
    stage.load(SHOP, running_pod("p", "node", namespace="shop"), inside("a"))
    await stage.delete(NAMESPACES, "shop")
    await stage.passes(60)
    assert await stage.names() == ["a"]
    await stage.client.delete(PODS.object("p", "shop"), grace_period_seconds=0)
    await stage.passes(60)
    assert await stage.find(NAMESPACES, "shop") is None


async def test_a_pod_with_time_to_end_is_looked_at_again_in_half_of_it(
    set_stage: SetStage,
) -> None:
    stage = await set_stage("namespaces")
    pod = running_pod("p", "node", namespace="shop", terminationGracePeriodSeconds=40)
    stage.load(SHOP, pod)
    await stage.delete(NAMESPACES, "shop")
    await stage.passes(11)  # at 5 s, and again 5 s after the conditions have been written
    await stage.client.delete(PODS.object("p", "shop"), grace_period_seconds=0)
    await stage.passes(19)
    assert await stage.find(NAMESPACES, "shop")
    await stage.passes(2)
    assert await stage.find(NAMESPACES, "shop") is None


async def test_finalizers_are_reported_and_awaited(set_stage: SetStage) -> None:
    stage = await set_stage("namespaces")
    stage.load(SHOP, inside("a", finalizers=["example.com/hold"]))
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


async def test_finalizers_of_others_on_the_namespace_are_left_to_them(set_stage: SetStage) -> None:
    stage = await set_stage("namespaces")
    labelled = {"name": "shop", "labels": {"a": "b"}, "finalizers": ["example.com/mine"]}
    stage.load({**SHOP, "metadata": labelled, "spec": {"finalizers": ["kubernetes"]}}, inside("a"))
    await stage.delete(NAMESPACES, "shop")
    await stage.passes(10)
    namespace = await stage.get(NAMESPACES, "shop")
    assert (namespace["spec"], namespace["metadata"]["labels"]["a"]) == ({}, "b")
    assert await stage.names() == []
    await stage.patch(NAMESPACES, "shop", {"metadata": {"finalizers": None}})
    assert await stage.find(NAMESPACES, "shop") is None


async def test_nothing_new_comes_into_one_that_goes(set_stage: SetStage) -> None:
    stage = await set_stage("namespaces")
    stage.load(SHOP)
    await stage.delete(NAMESPACES, "shop")
    with pytest.raises(ApiError, match="because it is being terminated") as refusal:
        await stage.create(CONFIG_MAPS, inside("late"))
    assert (refusal.value.status, refusal.value.causes) == (403, ("NamespaceTerminating",))


async def test_one_of_the_same_name_begins_empty(set_stage: SetStage) -> None:
    stage = await set_stage("namespaces")
    stage.load(SHOP, inside("a"))
    await stage.delete(NAMESPACES, "shop")
    await stage.passes(5)
    await stage.create(NAMESPACES, SHOP)
    await stage.create(CONFIG_MAPS, inside("b"))
    await stage.passes(60)
    assert await stage.names() == ["b"]
