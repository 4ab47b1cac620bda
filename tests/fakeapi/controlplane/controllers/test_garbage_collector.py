"""Garbage collection: which objects are deleted with an owner, and which stay."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from extender.kube.rest.client import Propagation
from tests.builders import Document, blocking, owner, thing
from tests.fakeapi.controlplane.conftest import SetStage
from tests.stage import CLUSTER_ROLES, CONFIG_MAPS, Stage

BACKGROUND, FOREGROUND, ORPHAN = Propagation.BACKGROUND, Propagation.FOREGROUND, Propagation.ORPHAN
ROLE = {"kind": "ClusterRole", "version": "rbac.authorization.k8s.io/v1"}


@dataclass(frozen=True)
class Scene:
    """What there is, what is deleted and how, and what is left in the end."""

    title: str
    things: tuple[Document, ...]
    deleted: tuple[tuple[str, Propagation | None], ...] = ()
    left: tuple[str, ...] = ()
    owners: dict[str, list[str]] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.title


CHAIN = (thing("a"), thing("b", blocking("a")), thing("c", blocking("b")))
SHARED = (thing("a"), thing("b"), thing("both", owner("a"), owner("b")))
CYCLE = (thing("a", blocking("b")), thing("b", blocking("a")))

SCENES = [
    Scene("nobody is deleted, all stay", CHAIN, left=("a", "b", "c")),
    Scene("background: dependents go after their owner", CHAIN, (("a", BACKGROUND),)),
    Scene("foreground: dependents go before their owner", CHAIN, (("a", FOREGROUND),)),
    Scene(
        "orphan: dependents stay, without the reference",
        CHAIN,
        (("a", ORPHAN),),
        ("b", "c"),
        {"b": [], "c": ["b"]},
    ),
    Scene("from the middle: the owner stays", CHAIN, (("b", BACKGROUND),), ("a",)),
    Scene(
        "one owner of two is enough",
        SHARED,
        (("a", BACKGROUND),),
        ("b", "both"),
        {"both": ["b"]},
    ),
    Scene(
        "an owner in the foreground lets go of what others own",
        SHARED,
        (("a", FOREGROUND),),
        ("b", "both"),
        {"both": ["b"]},
    ),
    Scene("without both owners it goes", SHARED, (("a", BACKGROUND), ("b", FOREGROUND))),
    Scene("an owner that never was", (thing("x", owner("nobody")),)),
    Scene(
        "an owner of another UID is no owner",
        (thing("a"), thing("x", {**owner("a"), "uid": "another"})),
        left=("a",),
    ),
    Scene(
        "an owner of another name is no owner",
        (thing("a"), thing("x", {**owner("b"), "uid": "a"})),
        left=("a",),
    ),
    Scene(
        "an owner that never was beside one that is",
        (thing("a"), thing("x", owner("a"), owner("nobody"))),
        left=("a", "x"),
        owners={"x": ["a"]},
    ),
    Scene(
        "an owner in another namespace is no owner",
        (thing("a", namespace="kube-system"), thing("x", owner("a"))),
        left=("a",),
    ),
    Scene(
        "a cluster-wide owner owns in every namespace",
        (
            thing("role", namespace="", kind=ROLE["kind"], version=ROLE["version"]),
            thing("x", owner("role", **ROLE)),
        ),
        left=("x",),
        owners={"x": ["role"]},
    ),
    Scene(
        "a dependent with a finalizer waits, marked",
        (thing("a"), thing("x", owner("a"), finalizers=["example.com/hold"])),
        (("a", BACKGROUND),),
        ("x",),
    ),
    Scene(
        "in the foreground a blocking dependent with a finalizer holds its owner",
        (thing("a"), thing("x", blocking("a"), finalizers=["example.com/hold"])),
        (("a", FOREGROUND),),
        ("a", "x"),
    ),
    Scene(
        "in the foreground a dependent that does not block holds nobody",
        (thing("a"), thing("x", owner("a"), finalizers=["example.com/hold"])),
        (("a", FOREGROUND),),
        ("x",),
    ),
    Scene("who owns each other goes together, in the background", CYCLE, (("a", BACKGROUND),)),
    Scene("who owns each other goes together, in the foreground", CYCLE, (("a", FOREGROUND),)),
    Scene(
        "a dependent that was to be orphaning orphans",
        (thing("a"), thing("b", owner("a"), finalizers=["orphan"]), thing("c", owner("b"))),
        (("a", BACKGROUND),),
        ("c",),
        {"c": []},
    ),
    Scene(
        "deleted in the foreground while it was deleted in the background already",
        (thing("a", finalizers=["example.com/hold"]), thing("b", blocking("a"))),
        (("a", BACKGROUND), ("a", FOREGROUND)),
        ("a",),
    ),
    Scene(
        "who names an owner wrongly goes, who names it rightly stays",
        (thing("x", owner("a", "Secret")), thing("y", owner("a")), thing("a")),
        left=("a", "y"),
    ),
    Scene(
        "in whatever order they come",
        (thing("a"), thing("y", owner("a")), thing("x", owner("a", "Secret"))),
        left=("a", "y"),
    ),
    Scene(
        "an owner that never was, named in several ways",
        (thing("x", owner("a", "Secret")), thing("y", owner("a")), thing("z", owner("a", "Pod"))),
    ),
    Scene("an unknown kind keeps what it owns", (thing("x", owner("w", "Wisp")),), left=("x",)),
]


async def owners_of(stage: Stage, name: str) -> list[str]:
    document = await stage.get(CONFIG_MAPS, name)
    return [each["name"] for each in document["metadata"].get("ownerReferences", ())]


@pytest.mark.parametrize("scene", SCENES, ids=str)
@pytest.mark.parametrize("late", [False, True], ids=["watching", "starting late"])
async def test_what_is_left(scene: Scene, late: bool, set_stage: SetStage) -> None:  # noqa: FBT001
    stage = await set_stage("none" if late else "gc")
    stage.load(*scene.things)
    if not late:
        await stage.passes(2)
    for name, how in scene.deleted:
        await stage.delete(CONFIG_MAPS, name, how)
    if late:
        stage.cluster.control_plane["gc"].start()
    await stage.passes(120)
    assert await stage.names() == sorted(scene.left)
    for name, owners in scene.owners.items():
        assert await owners_of(stage, name) == owners


async def test_in_the_foreground_the_owner_goes_last(set_stage: SetStage) -> None:
    stage = await set_stage("gc")
    stage.load(*CHAIN)
    await stage.delete(CONFIG_MAPS, "a", FOREGROUND)
    await stage.passes(1)
    gone = [
        c.object["metadata"]["name"] for c in stage.cluster.history("cm") if c.type == "DELETED"
    ]
    assert gone == ["c", "b", "a"]


async def test_a_released_dependent_lets_its_owner_be_deleted(set_stage: SetStage) -> None:
    stage = await set_stage("gc")
    stage.load(thing("a"), thing("x", blocking("a"), finalizers=["example.com/hold"]))
    await stage.delete(CONFIG_MAPS, "a", FOREGROUND)
    await stage.passes(60)
    assert await stage.names() == ["a", "x"]
    await stage.patch(CONFIG_MAPS, "x", {"metadata": {"finalizers": None}})
    await stage.passes(1)
    assert await stage.names() == []


async def test_a_reference_that_no_longer_blocks_lets_the_owner_go(set_stage: SetStage) -> None:
    stage = await set_stage("gc")
    stage.load(thing("a"), thing("x", blocking("a"), finalizers=["example.com/hold"]))
    await stage.delete(CONFIG_MAPS, "a", FOREGROUND)
    await stage.passes(1)
    await stage.patch(CONFIG_MAPS, "x", {"metadata": {"ownerReferences": [owner("a")]}})
    await stage.passes(1)
    assert await stage.names() == ["x"]


async def test_a_cross_namespace_owner_reference_is_reported(set_stage: SetStage) -> None:
    stage = await set_stage("gc")
    stage.load(thing("a", namespace="kube-system"))
    await stage.passes(1)
    stage.load(thing("x", owner("a")))
    await stage.passes(1)
    named = "[v1/ConfigMap, namespace: default, name: a, uid: a]"
    message = f'ownerRef {named} does not exist in namespace "default"'
    assert await stage.told() == [("OwnerRefInvalidNamespace", "x", message)]


async def test_a_cluster_wide_object_with_a_namespaced_owner_is_left_alone(
    set_stage: SetStage,
) -> None:
    stage = await set_stage("gc")
    stage.load(thing("a"), thing("role", owner("a"), namespace="", **ROLE))
    await stage.passes(60)
    await stage.delete(CONFIG_MAPS, "a", BACKGROUND)
    await stage.passes(60)
    assert await stage.find(CLUSTER_ROLES, "role")


async def test_it_finds_its_way_after_the_watches_expired(set_stage: SetStage) -> None:
    stage = await set_stage("gc")
    stage.load(*CHAIN)
    await stage.passes(1)
    saved = stage.cluster.snapshot()
    await stage.delete(CONFIG_MAPS, "a", BACKGROUND)
    await stage.passes(1)
    stage.cluster.restore(saved)
    await stage.passes(30)
    assert await stage.names() == ["a", "b", "c"]
    await stage.delete(CONFIG_MAPS, "b", BACKGROUND)
    await stage.passes(30)
    assert await stage.names() == ["a"]


async def test_paused_it_waits_and_stepped_it_does_one_thing(set_stage: SetStage) -> None:
    stage = await set_stage("gc")
    gc = stage.cluster.control_plane["gc"]
    stage.load(thing("a"), thing("x", owner("a")), thing("y", owner("a")))
    await stage.passes(1)
    gc.pause()
    await stage.delete(CONFIG_MAPS, "a", BACKGROUND)
    await stage.passes(600)
    assert await stage.names() == ["x", "y"]
    assert (gc.paused, gc.pending) == (True, 2)
    assert "x" in await gc.step()
    assert await stage.names() == ["y"]
    gc.resume()
    await stage.passes(1)
    assert await stage.names() == []
    assert await gc.step() == ""


async def test_switched_off_it_does_nothing_and_on_again_it_catches_up(
    set_stage: SetStage,
) -> None:
    stage = await set_stage("gc")
    gc = stage.cluster.control_plane["gc"]
    stage.load(thing("a"), thing("x", owner("a")))
    await stage.passes(1)
    await gc.stop()
    await stage.delete(CONFIG_MAPS, "a", BACKGROUND)
    await stage.passes(600)
    assert (gc.on, await stage.names()) == (False, ["x"])
    gc.start()
    await stage.passes(1)
    assert await stage.names() == []


async def test_a_dependent_with_a_new_owner_is_not_deleted(
    set_stage: SetStage,
) -> None:
    stage = await set_stage("gc")
    gc = stage.cluster.control_plane["gc"]
    stage.load(thing("a"), thing("x", owner("a")), thing("b"))
    await stage.passes(1)
    gc.pause()
    await stage.delete(CONFIG_MAPS, "a", BACKGROUND)
    await stage.passes(1)
    await stage.patch(CONFIG_MAPS, "x", {"metadata": {"ownerReferences": [owner("b")]}})
    gc.resume()
    await stage.passes(1)
    assert await stage.names() == ["b", "x"]


async def test_events_are_never_collected(set_stage: SetStage) -> None:
    stage = await set_stage("gc")
    about = {"namespace": "default", "name": "x"}
    event = thing("e", owner("nobody"), kind="Event")
    stage.load({**event, "involvedObject": about, "reason": "Because", "message": "so"})
    await stage.passes(60)
    assert await stage.told() == [("Because", "x", "so")]
