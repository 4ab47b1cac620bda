"""Garbage collection: dependents are deleted with their last owner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pytest

from extender.kube.rest.client import Propagation
from tests.builders import Document, blocking, owner, thing
from tests.fakeapi.controlplane.conftest import SetStage
from tests.stage import CLUSTER_ROLES, CONFIG_MAPS

BACKGROUND, FOREGROUND, ORPHAN = Propagation.BACKGROUND, Propagation.FOREGROUND, Propagation.ORPHAN
ROLE = {"kind": "ClusterRole", "version": "rbac.authorization.k8s.io/v1"}


class Case(NamedTuple):
    """Objects, those that are deleted and how, and those that are left in the end."""

    objects: tuple[Document, ...]
    deleted: tuple[tuple[str, Propagation | None], ...] = ()
    left: tuple[str, ...] = ()
    owners: Mapping[str, list[str]] = {}


CHAIN = (thing("a"), thing("b", blocking("a")), thing("c", blocking("b")))
SHARED = (thing("a"), thing("b"), thing("both", owner("a"), owner("b")))
CYCLE = (thing("a", blocking("b")), thing("b", blocking("a")))

CASES = {
    "nothing is deleted, all stay": Case(CHAIN, left=("a", "b", "c")),
    "background: dependents go after their owner": Case(CHAIN, (("a", BACKGROUND),)),
    "foreground: dependents go before their owner": Case(CHAIN, (("a", FOREGROUND),)),
    "orphan: dependents stay, without the reference": Case(
        CHAIN, (("a", ORPHAN),), ("b", "c"), {"b": [], "c": ["b"]}
    ),
    "from the middle: the owner stays": Case(CHAIN, (("b", BACKGROUND),), ("a",)),
    "one owner of two is enough": Case(
        SHARED, (("a", BACKGROUND),), ("b", "both"), {"both": ["b"]}
    ),
    "deletion of an owner in the foreground spares dependents of others": Case(
        SHARED, (("a", FOREGROUND),), ("b", "both"), {"both": ["b"]}
    ),
    "without both owners the dependent is deleted": Case(
        SHARED, (("a", BACKGROUND), ("b", FOREGROUND))
    ),
    "a missing owner": Case((thing("x", owner("missing")),)),
    "an owner of another UID is no owner": Case(
        (thing("a"), thing("x", {**owner("a"), "uid": "another"})), left=("a",)
    ),
    "an owner of another name is no owner": Case(
        (thing("a"), thing("x", {**owner("b"), "uid": "a"})), left=("a",)
    ),
    "a missing owner beside an existing one": Case(
        (thing("a"), thing("x", owner("a"), owner("missing"))), left=("a", "x"), owners={"x": ["a"]}
    ),
    "an owner in another namespace is no owner": Case(
        (thing("a", namespace="kube-system"), thing("x", owner("a"))), left=("a",)
    ),
    "a cluster-wide owner owns in every namespace": Case(
        (
            thing("role", namespace="", kind=ROLE["kind"], version=ROLE["version"]),
            thing("x", owner("role", **ROLE)),
        ),
        left=("x",),
        owners={"x": ["role"]},
    ),
    "a dependent with a finalizer is terminating": Case(
        (thing("a"), thing("x", owner("a"), finalizers=["example.com/hold"])),
        (("a", BACKGROUND),),
        ("x",),
    ),
    "in the foreground a blocking dependent with a finalizer holds its owner": Case(
        (thing("a"), thing("x", blocking("a"), finalizers=["example.com/hold"])),
        (("a", FOREGROUND),),
        ("a", "x"),
    ),
    "in the foreground a dependent that does not block does not hold its owner": Case(
        (thing("a"), thing("x", owner("a"), finalizers=["example.com/hold"])),
        (("a", FOREGROUND),),
        ("x",),
    ),
    "objects that own each other are deleted together, in the background": Case(
        CYCLE, (("a", BACKGROUND),)
    ),
    "objects that own each other are deleted together, in the foreground": Case(
        CYCLE, (("a", FOREGROUND),)
    ),
    "a dependent with the finalizer orphan orphans its own": Case(
        (thing("a"), thing("b", owner("a"), finalizers=["orphan"]), thing("c", owner("b"))),
        (("a", BACKGROUND),),
        ("c",),
        {"c": []},
    ),
    "deletion in the foreground during one in the background": Case(
        (thing("a", finalizers=["example.com/hold"]), thing("b", blocking("a"))),
        (("a", BACKGROUND), ("a", FOREGROUND)),
        ("a",),
    ),
    "a dependent that names an owner wrongly is deleted": Case(
        (thing("x", owner("a", "Secret")), thing("y", owner("a")), thing("a")), left=("a", "y")
    ),
    "a wrong reference after a right one": Case(
        (thing("a"), thing("y", owner("a")), thing("x", owner("a", "Secret"))), left=("a", "y")
    ),
    "a missing owner, named in several ways": Case(
        (thing("x", owner("a", "Secret")), thing("y", owner("a")), thing("z", owner("a", "Pod")))
    ),
    "dependents of an unknown kind stay": Case((thing("x", owner("w", "Wisp")),), left=("x",)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("late", [False, True], ids=["watching", "starting late"])
async def test_collection(name: str, late: bool, set_stage: SetStage) -> None:  # noqa: FBT001
    case = CASES[name]
    stage = await set_stage("none" if late else "gc", *case.objects)
    if not late:
        await stage.passes(2)
    for deleted, how in case.deleted:
        await stage.delete(CONFIG_MAPS, deleted, how)
    if late:
        stage.cluster.control_plane["gc"].start()
    assert await stage.names(after=120) == sorted(case.left)
    for dependent, owners in case.owners.items():
        found = await stage.get(CONFIG_MAPS, dependent)
        assert [each["name"] for each in found["metadata"].get("ownerReferences", ())] == owners


async def test_in_the_foreground_the_owner_is_deleted_last(set_stage: SetStage) -> None:
    stage = await set_stage("gc", *CHAIN)
    await stage.delete(CONFIG_MAPS, "a", FOREGROUND)
    await stage.passes(1)
    deleted = [each for each in stage.cluster.history("cm") if each.type == "DELETED"]
    assert [each.object["metadata"]["name"] for each in deleted] == ["c", "b", "a"]


@pytest.mark.parametrize(
    ("change", "seconds", "left"),
    [({"finalizers": None}, 60, []), ({"ownerReferences": [owner("a")]}, 1, ["x"])],
    ids=["without its finalizer", "no longer blocking"],
)
async def test_an_owner_is_deleted_once_its_dependent_does_not_hold_it(
    set_stage: SetStage, change: Document, seconds: float, left: list[str]
) -> None:
    held = thing("x", blocking("a"), finalizers=["example.com/hold"])
    stage = await set_stage("gc", thing("a"), held)
    await stage.delete(CONFIG_MAPS, "a", FOREGROUND)
    await stage.passes(seconds)
    assert await stage.names() == ["a", "x"]
    await stage.patch(CONFIG_MAPS, "x", {"metadata": change})
    assert await stage.names(after=1) == left


async def test_a_cross_namespace_owner_reference_is_reported(set_stage: SetStage) -> None:
    stage = await set_stage("gc", thing("a", namespace="kube-system"), seconds=1)
    stage.load(thing("x", owner("a")))
    await stage.passes(1)
    named = "[v1/ConfigMap, namespace: default, name: a, uid: a]"
    message = f'ownerRef {named} does not exist in namespace "default"'
    assert await stage.list_events() == [("OwnerRefInvalidNamespace", "x", message)]


async def test_a_cluster_wide_object_with_a_namespaced_owner_stays(set_stage: SetStage) -> None:
    stage = await set_stage("gc", thing("a"), thing("role", owner("a"), namespace="", **ROLE))
    await stage.passes(60)
    await stage.delete(CONFIG_MAPS, "a", BACKGROUND)
    await stage.passes(60)
    assert await stage.find(CLUSTER_ROLES, "role")


async def test_collection_continues_after_watches_have_expired(set_stage: SetStage) -> None:
    stage = await set_stage("gc", *CHAIN, seconds=1)
    saved = stage.cluster.snapshot()
    await stage.delete(CONFIG_MAPS, "a", BACKGROUND)
    await stage.passes(1)
    stage.cluster.restore(saved)
    assert await stage.names(after=30) == ["a", "b", "c"]
    await stage.delete(CONFIG_MAPS, "b", BACKGROUND)
    assert await stage.names(after=30) == ["a"]


async def test_a_paused_collector_waits_and_a_step_deletes_one_object(set_stage: SetStage) -> None:
    stage = await set_stage("gc")
    gc = stage.cluster.control_plane["gc"]
    stage.load(thing("a"), thing("x", owner("a")), thing("y", owner("a")))
    await stage.passes(1)
    gc.pause()
    await stage.delete(CONFIG_MAPS, "a", BACKGROUND)
    assert await stage.names(after=600) == ["x", "y"]
    assert (gc.paused, gc.pending) == (True, 2)
    assert "x" in await gc.step()
    assert await stage.names() == ["y"]
    gc.resume()
    assert await stage.names(after=1) == []
    assert await gc.step() == ""


async def test_a_stopped_collector_catches_up_when_it_starts(set_stage: SetStage) -> None:
    stage = await set_stage("gc")
    gc = stage.cluster.control_plane["gc"]
    stage.load(thing("a"), thing("x", owner("a")))
    await stage.passes(1)
    await gc.stop()
    await stage.delete(CONFIG_MAPS, "a", BACKGROUND)
    await stage.passes(600)
    assert (gc.on, await stage.names()) == (False, ["x"])
    gc.start()
    assert await stage.names(after=1) == []


async def test_a_dependent_with_a_new_owner_is_not_deleted(set_stage: SetStage) -> None:
    stage = await set_stage("gc")
    gc = stage.cluster.control_plane["gc"]
    stage.load(thing("a"), thing("x", owner("a")), thing("b"))
    await stage.passes(1)
    gc.pause()
    await stage.delete(CONFIG_MAPS, "a", BACKGROUND)
    await stage.passes(1)
    await stage.patch(CONFIG_MAPS, "x", {"metadata": {"ownerReferences": [owner("b")]}})
    gc.resume()
    assert await stage.names(after=1) == ["b", "x"]


async def test_events_are_never_collected(set_stage: SetStage) -> None:
    stage = await set_stage("gc")
    about = {"namespace": "default", "name": "x"}
    event = thing("e", owner("missing"), kind="Event", involvedObject=about, reason="Because")
    stage.load({**event, "message": "so"})
    await stage.passes(60)
    assert await stage.list_events() == [("Because", "x", "so")]
