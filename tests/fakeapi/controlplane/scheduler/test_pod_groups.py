"""The scheduling cycle of pod groups: all members or none, and preemption for the group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from extender.kube.rest.resources import Resource
from tests.builders import Document, manifest
from tests.fakeapi.controlplane.scheduler.stages import (
    SchedulerStage,
    SetScheduler,
    X,
    configured,
    node,
    player,
    pod,
)

GROUPS: Final = Resource("scheduling.k8s.io", "v1beta1", "podgroups", namespaced=True)
SLOW: Final[Document] = {"terminationGracePeriodSeconds": 30}
NO_FIT: Final = "0/2 nodes are available: 2 Insufficient cpu."
NO_CLAIMS: Final = "deallocation and deletion of ResourceClaims completed"
PREEMPTION: Final = "pod group preemption: "


def group(min_count: int = 3, priority: int = 100, **spec: Any) -> Document:
    """Build the PodGroup ``gang``."""
    policy = {"gang": {"minCount": min_count}}
    spec = {"schedulingPolicy": policy, "priority": priority, **spec}
    return manifest("PodGroup", "gang", namespace="default", spec=spec)


def member(name: str, cpu: str = "1", priority: int = 100, **fields: Any) -> Document:
    """Build a pod of the group ``gang``."""
    spec = {"schedulingGroup": {"podGroupName": "gang"}, **fields.pop("spec", {})}
    return pod(name, cpu, priority=priority, spec=spec, **fields)


def members(count: int, **fields: Any) -> list[Document]:
    return [member(f"m{n}", **fields) for n in range(count)]


@pytest.fixture
def gated(schedule: SetScheduler) -> SetScheduler:
    """Return a function that opens stages with two nodes of two cores, and the gates of 1.37."""

    async def opened(*objects: Document, **options: Any) -> SchedulerStage:
        gates = {"upstream": "1.37", "feature_gates": {"GenericWorkload": True}}
        return await schedule(node("a"), node("b"), *objects, **{**gates, **options})

    return opened


async def condition(stage: SchedulerStage) -> Mapping[str, str]:
    """Return the condition of the group ``gang``."""
    status = await stage.status_of(GROUPS, "gang")
    [written] = status["conditions"]
    assert written["type"] == "PodGroupInitiallyScheduled"
    found: Mapping[str, str] = written
    return found


async def test_members_wait_for_their_group_and_for_enough_of_them(gated: SetScheduler) -> None:
    stage = await gated(member("m0"), member("m1"), seconds=1)
    waiting = {"m0": "", "m1": ""}
    assert await stage.places() == waiting
    stage.load(group(3))
    assert await stage.places(after=1) == waiting
    stage.load(member("m2"))
    assert "" not in (await stage.places(after=1)).values()
    assert (await condition(stage))["reason"] == "Scheduled"
    assert len(await stage.messages("Scheduled")) == 3


async def test_a_group_waits_for_the_scheduling_gates_of_each_member(gated: SetScheduler) -> None:
    closed = member("m2", spec={"schedulingGates": [{"name": "later"}]})
    stage = await gated(group(2), *members(2), closed, seconds=1)
    assert set((await stage.places()).values()) == {""}
    stage.load(member("m2"))
    assert "" not in (await stage.places(after=1)).values()


async def test_a_member_more_is_scheduled_later(gated: SetScheduler) -> None:
    stage = await gated(group(2), *members(2), seconds=5)
    stage.load(member("late"))
    assert "" not in (await stage.places(after=1)).values()


async def test_without_the_gate_members_are_scheduled_one_by_one(schedule: SetScheduler) -> None:
    stage = await schedule(node("a"), *members(3), upstream="1.37", seconds=1)
    assert sorted((await stage.places()).values()) == ["", "a", "a"]


async def test_a_group_that_does_not_fit_preempts_for_all_members(gated: SetScheduler) -> None:
    """The least important pod is evicted, and the members keep their nodes of the simulation."""
    low = [pod(f"low{n}", on="a", priority=n, spec=SLOW, started=1) for n in (1, 2)]
    keeper = pod("keeper", on="b", priority=200)
    stage = await gated(group(2), *low, keeper, *members(2, cpu="1"), seconds=0.5)
    bound = {"keeper": "b", "low2": "a"}
    assert await stage.places() == bound | {"low1": "a", "m0": "→ a", "m1": "→ b"}
    whole = "found a placement for podgroup, preempting 1 victims"
    failure = "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"
    assert (await condition(stage))["message"] == f"{failure}, {PREEMPTION}{whole}"
    assert await stage.refusal("m1") == ("Unschedulable", NO_FIT)
    assert await stage.refusal("m0") == ("Unschedulable", f"{failure}, {PREEMPTION}{whole}")
    uid = (await stage.get(GROUPS, "gang"))["metadata"]["uid"]
    assert await stage.messages("Preempted") == [
        ("low1", f"Preempted by podgroup {uid} on node cluster")
    ]
    [disrupted] = (await stage.pod("low1"))["status"]["conditions"]
    assert disrupted["message"].endswith("a higher priority podgroup")
    await stage.end("low1")
    assert await stage.places(after=5) == bound | {"m0": "a", "m1": "b"}


async def test_a_group_waits_while_its_victims_terminate(gated: SetScheduler) -> None:
    low = [pod(f"low-{n}", "2", on=n, spec=SLOW) for n in "ab"]
    stage = await gated(group(4), *low, *members(4), seconds=0.5)
    await stage.end("low-a")
    await stage.passes(5)
    waits = "ongoing preemption on nominated nodes"
    assert (await condition(stage))["message"].endswith(PREEMPTION + waits)
    places = await stage.places()
    assert sorted(places[f"m{n}"] for n in range(4)) == ["→ a", "→ a", "→ b", "→ b"]
    assert len(await stage.messages("Preempted")) == 2
    await stage.end("low-b")
    assert "" not in (await stage.places(after=15)).values()


async def test_an_extender_filters_in_both_passes_and_is_not_asked_about_victims(
    gated: SetScheduler,
) -> None:
    extender = {"extenders": {X: player()}, "scheduler": configured({})}
    low = [pod(f"low-{n}", "2", on=n, spec=SLOW) for n in "ab"]
    stage = await gated(group(3), *low, *members(3), **extender, seconds=0.5)
    assert stage.asked("filter") == ["m0", "m1", "m2"]
    assert stage.asked("preempt") == []
    for each in ("low-a", "low-b"):
        await stage.end(each)
    await stage.passes(5)
    assert stage.asked("filter") == ["m0", "m1", "m2"] * 2


async def test_a_group_that_an_extender_refuses_on_full_nodes_never_preempts(
    gated: SetScheduler,
) -> None:
    refusing = player(
        filter=lambda asked: {"FailedNodes": dict.fromkeys(asked["NodeNames"], "full")}
    )
    extender = {"extenders": {X: refusing}, "scheduler": configured({})}
    low = [pod(f"low-{n}", "2", on=n) for n in "ab"]
    stage = await gated(group(3), *low, *members(3), **extender, seconds=60)
    assert len(await stage.places()) == 5
    failure = "minCount (3) cannot be satisfied: 0 scheduled, 2 remaining"
    assert (await condition(stage))["message"] == (f"{failure}, {NO_CLAIMS}, {PREEMPTION}{failure}")


async def test_an_error_of_an_extender_fails_all_members(gated: SetScheduler) -> None:
    failing = player(filter=lambda _: {"Error": "broken"})
    extender = {"extenders": {X: failing}, "scheduler": configured({})}
    stage = await gated(group(2), pod("low", "2", on="a"), *members(2), **extender, seconds=0.5)
    shared = "failed to schedule other pod from a pod group: broken"
    assert await stage.refusal("m0") == ("SchedulerError", "broken")
    assert await stage.refusal("m1") == ("SchedulerError", shared)
    assert (await condition(stage))["reason"] == "SchedulerError"
    assert len(await stage.places()) == 3


@pytest.mark.parametrize(
    ("priority", "mode", "victims"), [(1, "single", 1), (1, "all", 2), (200, "all", 0)]
)
async def test_a_group_evicts_whole_units_over_all_nodes(
    gated: SetScheduler, priority: int, mode: str, victims: int
) -> None:
    other = group(2, priority, disruptionMode={mode: {}})
    other["metadata"] = {**other["metadata"], "name": "other"}
    spec = {"schedulingGroup": {"podGroupName": "other"}}
    unit = [pod(f"other-{n}", "2", on=n, priority=priority, spec=spec) for n in "ab"]
    stage = await gated(other, group(1), *unit, *members(1), seconds=30)
    places = await stage.places()
    assert len(places) == 3 - victims
    assert bool(places["m0"]) is bool(victims)


async def test_a_group_that_never_preempts(gated: SetScheduler) -> None:
    never = {"preemptionPolicy": "Never"}
    low = [pod(f"low-{n}", "2", on=n) for n in "ab"]
    stage = await gated(group(1), *low, *members(1, spec=never), seconds=30)
    assert len(await stage.places()) == 3
    reason = "not eligible due to preemptionPolicy=Never."
    failure = "minCount (1) cannot be satisfied: 0 scheduled, 0 remaining"
    assert (await condition(stage))["message"] == (f"{failure}, {NO_CLAIMS}, {PREEMPTION}{reason}")


async def test_members_of_another_priority_than_their_group_are_an_error(
    gated: SetScheduler,
) -> None:
    stage = await gated(group(2, priority=50), *members(2), seconds=0.5)
    reason, message = await stage.refusal("m0")
    assert (reason, message[-14:]) == ("SchedulerError", "got 100 and 50")


async def test_enough_members_are_bound_before_the_others_preempt(gated: SetScheduler) -> None:
    low = pod("low", "2", on="b", priority=1, spec=SLOW)
    stage = await gated(group(2), low, *members(3), seconds=0.5)
    assert (await condition(stage))["reason"] == "Scheduled"
    assert await stage.places() == {"low": "b", "m0": "a", "m1": "a", "m2": "→ b"}
    await stage.end("low")
    assert (await stage.places(after=15))["m2"] == "b"


async def test_a_member_that_could_not_be_bound_is_tried_again(gated: SetScheduler) -> None:
    answers = iter([{"Error": "busy"}])
    binder = player(bind=lambda _: next(answers, {"Error": ""}))
    extender = {"extenders": {X: binder}, "scheduler": configured({"bindVerb": "bind"})}
    stage = await gated(group(2), *members(2), **extender, seconds=10)
    assert sorted(stage.asked("bind")) in (["m0", "m0", "m1"], ["m0", "m1", "m1"])
