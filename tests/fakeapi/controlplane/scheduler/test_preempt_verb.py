"""The verb preempt: offered candidates and victims, and the changes that extenders make."""

from __future__ import annotations

import pytest

from fakeapi.controlplane.scheduler.extender_trace import ExtenderOutcome
from fakeapi.controlplane.scheduler.options import Call, ExtenderFunction, Reply
from tests.builders import Document
from tests.fakeapi.controlplane.scheduler.stages import (
    FULL,
    NEW,
    NO_FIT,
    OLD,
    Answer,
    SchedulerStage,
    SetScheduler,
    X,
    Y,
    configured,
    node,
    passing,
    player,
    pod,
    preempted,
    preempting,
    victims,
    vip,
)


async def test_an_extender_replaces_the_offered_candidates(schedule: SetScheduler) -> None:
    stage = await preempted(schedule, player(preempt=preempting(b=victims("b1"))))
    [call] = stage.trace.calls("preempt")
    assert call.asked["NodeNameToVictims"] is None
    assert call.asked["NodeNameToMetaVictims"] == {"a": victims("a2", "a1"), "b": victims("b1")}
    assert await stage.places() == {"a1": "a", "a2": "a", "vip": "→ b"}


async def test_without_a_node_cache_whole_victims_are_sent(schedule: SetScheduler) -> None:
    extend = player(preempt=preempting(b=victims("b1")))
    stage = await preempted(schedule, extend, nodeCacheCapable=False)
    [call] = stage.trace.calls("preempt")
    assert call.asked["NodeNameToMetaVictims"] is None
    offered = call.asked["NodeNameToVictims"]
    assert [pod["metadata"]["name"] for pod in offered["a"]["Pods"]] == ["a2", "a1"]
    assert "kind" not in offered["a"]["Pods"][0]
    assert (await stage.places())["vip"] == "→ b"


async def test_the_next_extender_is_sent_the_result_of_the_last(schedule: SetScheduler) -> None:
    extenders = {X: player(preempt=preempting(a=victims("a1", violations=7))), Y: player()}
    entries = configured({"filterVerb": ""}, {"urlPrefix": Y, "filterVerb": ""})
    stage = await schedule(*FULL, vip(), extenders=extenders, scheduler=entries, seconds=0.5)
    offered = [each.asked["NodeNameToMetaVictims"] for each in stage.trace]
    assert offered[1] == {"a": victims("a1", violations=7)}
    assert await stage.places() == {"a2": "a", "b1": "b", "vip": "→ a"}


async def test_a_node_that_was_not_offered_is_taken(schedule: SetScheduler) -> None:
    more = (node("c", "1"), pod("c1", on="c", priority=3, started=1))
    answer = preempting(c=victims("c1"))
    stage = await preempted(schedule, player(preempt=answer), *more)
    assert (await stage.places())["vip"] == "→ c"
    [exchange] = stage.trace.calls("preempt")
    assert exchange.notes == ("node c was not offered; kube-scheduler takes it",)


async def test_an_extender_may_refuse_every_node(schedule: SetScheduler) -> None:
    nominated = vip(status={"nominatedNodeName": "b"})
    extenders = {X: player(preempt=preempting())}
    stage = await schedule(
        *FULL, nominated, extenders=extenders, scheduler=configured({}), upstream=OLD, seconds=0.5
    )
    none = "preemption: no candidate node for preemption"
    assert await stage.refusal("vip") == ("Unschedulable", f"{NO_FIT} {none}")
    assert (await stage.places())["vip"] == "→ b"


ERRORS: dict[str, tuple[Answer, str]] = {
    "a status": (Reply(500, b""), f"failed preempt with extender at URL {X}/preempt, code 500"),
    "an unknown node": (preempting(z=victims("a1")), 'nodeinfo not found for node name "z"'),
    "a pod on another node": (
        preempting(a=victims("b1")),
        (
            f"extender: {X} claims to preempt pod (UID: &{{b1}}) on node: a, but the pod is not "
            "found on that node"
        ),
    ),
    "an unknown pod": (
        preempting(a=victims("ghost")),
        (
            f"extender: {X} claims to preempt pod (UID: &{{ghost}}) on node: a, but the pod is not "
            "found on that node"
        ),
    ),
}


@pytest.mark.parametrize("name", ERRORS)
async def test_after_an_error_no_pod_is_evicted(schedule: SetScheduler, name: str) -> None:
    answer, problem = ERRORS[name]
    stage = await preempted(schedule, player(preempt=answer))
    assert await stage.refusal("vip") == ("Unschedulable", f"{NO_FIT} preemption: {problem}")
    assert stage.problems() == [problem]
    assert len(await stage.places()) == 4


@pytest.mark.parametrize("name", ERRORS)
async def test_after_an_error_of_an_ignorable_extender_the_candidates_stay(
    schedule: SetScheduler, name: str
) -> None:
    answer, problem = ERRORS[name]
    stage = await preempted(schedule, player(preempt=answer), ignorable=True)
    assert (await stage.places())["vip"] == "→ a"
    assert [(e.verdict, e.problem) for e in stage.trace.calls("preempt")] == [
        (ExtenderOutcome.IGNORED, problem)
    ]


@pytest.mark.parametrize("entry", [{"ignorable": True}, {}])
async def test_null_victims_are_never_ignored(schedule: SetScheduler, entry: Document) -> None:
    answer = player(preempt=preempting(a=None))
    stage = await preempted(schedule, answer, **entry)
    assert stage.problems() == ["the victims of node a are null, and kube-scheduler panics"]
    assert (await stage.places())["vip"] == ""


@pytest.mark.parametrize("release", [OLD, NEW])
async def test_a_node_without_victims_is_an_error(schedule: SetScheduler, release: str) -> None:
    answer = player(preempt=preempting(a=victims(), b=victims("b1")))
    stage = await preempted(schedule, answer, upstream=release)
    assert stage.problems() == ['expected at least one victim pod on node "a"']
    assert (await stage.places())["vip"] == ""


@pytest.mark.parametrize("release", [OLD, NEW])
async def test_an_ignorable_extender_s_node_without_victims_is_dropped(
    schedule: SetScheduler, release: str
) -> None:
    answer = player(preempt=preempting(a=victims(), b=victims("b1")))
    stage = await preempted(schedule, answer, upstream=release, ignorable=True)
    assert (await stage.places())["vip"] == "→ b"


ROOMY = (node("a", "4"), pod("a1", on="a", priority=1, started=1))


def busy(**preempt: Document | None) -> ExtenderFunction:
    """Build an extender that rejects every pod, and names the victims."""
    refusal = {"NodeNames": [], "FailedNodes": {"a": "gpu busy"}}
    return player(filter=refusal, preempt=preempting(**preempt))


async def short_of_gpus(
    schedule: SetScheduler, extend: ExtenderFunction, upstream: str
) -> SchedulerStage:
    """Open a stage on which only the extender rejects the node for vip."""
    options = {"extenders": {X: extend}, "scheduler": configured({}), "upstream": upstream}
    return await schedule(*ROOMY, vip(), seconds=0.5, **options)


async def test_until_1_37_an_extender_resource_causes_no_preemption(schedule: SetScheduler) -> None:
    stage = await short_of_gpus(schedule, busy(a=victims("a1")), "1.37")
    error = 'preemption: expected at least one victim pod on node "a"'
    message = f"0/1 nodes are available: 1 gpu busy. {error}"
    assert await stage.refusal("vip") == ("Unschedulable", message)
    assert stage.asked("preempt") == []


async def test_since_1_38_an_extender_may_add_victims_to_such_nodes(schedule: SetScheduler) -> None:
    stage = await short_of_gpus(schedule, busy(a=victims("a1")), NEW)
    [call] = stage.trace.calls("preempt")
    assert call.asked["NodeNameToMetaVictims"] == {"a": victims()}
    assert await stage.places() == {"vip": "→ a"}


async def test_such_a_node_without_victims_is_dropped(schedule: SetScheduler) -> None:
    stage = await short_of_gpus(schedule, busy(a=victims()), NEW)
    message = "preemption: no candidate node for preemption"
    assert (await stage.refusal("vip"))[1].endswith(message)
    assert [each.verdict for each in stage.trace.calls("preempt")] == [ExtenderOutcome.ACCEPTED]


async def test_a_node_rejected_without_a_reason_is_not_tried(schedule: SetScheduler) -> None:
    extend = player(filter={"NodeNames": []}, preempt=preempting(a=victims("a1")))
    stage = await short_of_gpus(schedule, extend, NEW)
    assert stage.asked("preempt") == []
    assert stage.trace[0].notes == ("left out without a reason, so preemption skips: a",)


async def test_a_node_rejected_as_unresolvable_is_not_tried(schedule: SetScheduler) -> None:
    result = {"NodeNames": [], "FailedAndUnresolvableNodes": {"a": "no gpu"}}
    stage = await short_of_gpus(schedule, player(filter=result), NEW)
    assert stage.asked("preempt") == []
    assert (await stage.refusal("vip"))[1].endswith("1 Preemption is not helpful for scheduling.")


async def test_a_victim_deleted_during_a_call_is_still_reported(schedule: SetScheduler) -> None:
    """The snapshot contains it, as upstream's does, and its deletion is no error."""
    stages: list[SchedulerStage] = []

    async def deleting(call: Call) -> Reply:
        if call.verb == "preempt" and call.document()["NodeNameToVictims"]:
            await stages[0].end("a1")
            await stages[0].run_pending_tasks()
        return passing(call)

    entries = configured(
        {"filterVerb": "", "nodeCacheCapable": False},
        {"filterVerb": "", "nodeCacheCapable": False, "urlPrefix": Y},
    )
    stage = await schedule(extenders={X: deleting, Y: passing}, scheduler=entries)
    stages.append(stage)
    stage.load(*FULL, vip())
    await stage.passes(3)
    first, second = stage.trace
    for each in (first, second):
        offered = each.asked["NodeNameToVictims"]["a"]["Pods"]
        assert [pod["metadata"]["name"] for pod in offered] == ["a2", "a1"]
    assert await stage.places() == {"b1": "b", "vip": "a"}
    assert [name for name, _ in await stage.messages("Preempted")] == ["a2"]


async def test_a_preemptor_deleted_during_a_call_evicts_no_pod(schedule: SetScheduler) -> None:
    stages: list[SchedulerStage] = []

    async def deleting(call: Call) -> Reply:
        await stages[0].end("vip")
        await stages[0].run_pending_tasks()
        return passing(call)

    stage = await schedule(extenders={X: deleting}, scheduler=configured({"filterVerb": ""}))
    stages.append(stage)
    stage.load(*FULL, vip())
    await stage.passes(3)
    assert sorted(await stage.places()) == ["a1", "a2", "b1"]
    assert await stage.messages("FailedScheduling") == []
