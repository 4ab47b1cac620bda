"""Pod groups with a scheduler that calls Reprieve: gangs that preempt, and gangs as victims."""

from __future__ import annotations

from typing import Any, Final

import pytest

from extender.kube.rest.resources import Resource
from extender.protocol.verb_context import Search
from tests.builders import Document, manifest
from tests.extender.protocol.conftest import SetLoop
from tests.fakeapi.controlplane.scheduler.stages import SchedulerStage, node, pod

GATES: Final = {"GenericWorkload": True}
GROUPS: Final = Resource("scheduling.k8s.io", "v1beta1", "podgroups", namespaced=True)
SINGLE: Final[Document] = {"single": {}}
ALL: Final[Document] = {"all": {}}
GANG: Final = 8

searches = pytest.mark.parametrize("search", Search)


def group(name: str, min_count: int, priority: int, mode: Document) -> Document:
    """Build the PodGroup of a gang."""
    gang = {"gang": {"minCount": min_count}}
    spec = {"schedulingPolicy": gang, "priority": priority, "disruptionMode": mode}
    return manifest("PodGroup", name, namespace="default", spec=spec)


def member(name: str, of: str = "gang", **fields: Any) -> Document:
    """Build a member of a group."""
    return pod(name, spec={"schedulingGroup": {"podGroupName": of}}, **fields)


def load_gang(stage: SchedulerStage, mode: Document, *nodes: str) -> None:
    """Load a gang of priority 5 with a pod of one core on each of ``nodes``."""
    stage.load(group("gang", len(nodes), 5, mode))
    stage.load(
        *(member(f"member-{n}", on=name, priority=5, started=n + 1) for n, name in enumerate(nodes))
    )


async def opened(
    close_loop: SetLoop, search: Search, *nodes: str, gates: dict[str, bool] = GATES
) -> SchedulerStage:
    """Open a stage with nodes of two cores, and a scheduler and Reprieve with the gates of 1.37."""
    stage = await close_loop(search, "1.37", feature_gates=gates)
    stage.load(*map(node, nodes))
    await stage.passes(1)
    return stage


async def fill_and_create_gang(stage: SchedulerStage, names: list[str]) -> list[str]:
    """Fill nodes with pods of priority 1, and create a gang of twice as many pods as nodes."""
    stage.load(*(pod(f"old-{n}-{x}", on=n, priority=1, started=1) for n in names for x in "ab"))
    stage.load(group("gang", 2 * len(names), 100, SINGLE))
    await stage.passes(1)
    members = [f"new-{n}" for n in range(2 * len(names))]
    for name in members:
        await stage.create_pod(member(name, priority=100))
    return members


@searches
async def test_a_gang_that_fits_only_by_preemption_is_scheduled(
    close_loop: SetLoop, search: Search
) -> None:
    nodes = [f"n{n}" for n in range(GANG // 2)]
    stage = await opened(close_loop, search, *nodes)
    members = await fill_and_create_gang(stage, nodes)
    await stage.passes(60)
    places = await stage.places()
    assert list(places) == sorted(members)
    assert sorted(places.values()) == sorted(nodes * 2)
    assert stage.trace.calls("filter")
    assert stage.trace.calls("preempt") == []
    assert stage.problems() == []
    [condition] = (await stage.status_of(GROUPS, "gang"))["conditions"]
    assert (condition["status"], condition["reason"]) == ("True", "Scheduled")


async def test_without_the_gate_the_members_preempt_one_by_one(close_loop: SetLoop) -> None:
    stage = await opened(close_loop, Search.OFFERED, "n0", "n1", gates={})
    members = await fill_and_create_gang(stage, ["n0", "n1"])
    await stage.passes(120)
    assert list(await stage.places()) == members
    assert {each.pod for each in stage.trace.calls("preempt")} == {f"default/{m}" for m in members}


@searches
async def test_a_gang_that_fits_nowhere_evicts_no_pod(close_loop: SetLoop, search: Search) -> None:
    stage = await opened(close_loop, search, "n0")
    stage.load(pod("old", "2", on="n0", priority=1), group("gang", 3, 100, SINGLE))
    await stage.passes(1)
    for name in ("a", "b", "c"):
        await stage.create_pod(member(name, priority=100))
    await stage.passes(60)
    assert await stage.places() == {"old": "n0", "a": "", "b": "", "c": ""}
    assert {each.pod for each in stage.trace.calls("filter")} == {"default/a", "default/b"}


@searches
async def test_a_pod_preempts_one_member_of_a_gang_in_disruption_mode_single(
    close_loop: SetLoop, search: Search
) -> None:
    stage = await opened(close_loop, search, "n0")
    load_gang(stage, SINGLE, "n0", "n0")
    await stage.create_pod(pod("new", priority=100))
    await stage.passes(30)
    assert await stage.places() == {"member-0": "n0", "new": "n0"}


@searches
async def test_a_pod_preempts_a_whole_gang_in_disruption_mode_all(
    close_loop: SetLoop, search: Search
) -> None:
    stage = await opened(close_loop, search, "n0")
    load_gang(stage, ALL, "n0", "n0")
    await stage.create_pod(pod("new", priority=100))
    await stage.passes(30)
    assert await stage.places() == {"new": "n0"}


@searches
async def test_a_gang_on_several_nodes_is_left_whole(close_loop: SetLoop, search: Search) -> None:
    """An extender cannot name pods of other nodes; a pod of a higher priority goes instead."""
    stage = await opened(close_loop, search, "n0", "n1", "n2")
    stage.load(*(pod(f"filler-{n}", on=n, priority=1000) for n in ("n0", "n1")))
    load_gang(stage, ALL, "n0", "n1")
    stage.load(pod("dear", "2", on="n2", priority=50))
    await stage.create_pod(pod("new", priority=100))
    await stage.passes(30)
    places = await stage.places()
    assert places["new"] == "n2"
    assert {"member-0", "member-1"} <= places.keys()
    assert "dear" not in places
    assert stage.problems() == []


@searches
async def test_a_pod_waits_if_only_a_gang_on_several_nodes_could_go(
    close_loop: SetLoop, search: Search
) -> None:
    stage = await opened(close_loop, search, "n0", "n1")
    stage.load(*(pod(f"filler-{n}", on=n, priority=1000) for n in ("n0", "n1")))
    load_gang(stage, ALL, "n0", "n1")
    await stage.create_pod(pod("new", priority=100))
    await stage.passes(30)
    places = await stage.places()
    assert (places["new"], len(places)) == ("", 5)
    assert stage.trace.calls("preempt")
    assert stage.problems() == []
