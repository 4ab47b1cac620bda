"""Preemption: who goes, what extenders may change about it, and what is written of it."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.resources import PODS
from fakeapi.controlplane.scheduler.outfits import Call, Extend, Reply
from fakeapi.controlplane.scheduler.trace import Verdict
from tests.fakeapi.controlplane.scheduler.conftest import SetScheduler
from tests.fakeapi.controlplane.scheduler.stages import (
    Answer,
    Document,
    SchedulerStage,
    X,
    Y,
    configured,
    node,
    passing,
    pdb_json,
    player,
    pod,
    preempting,
    victims,
)
from tests.fakeapi.reviewing import answered, configuration, rule, webhook

OLD, NEW = "1.30", "1.38"
NO_FIT = "0/2 nodes are available: 2 Insufficient cpu."


def vip(name: str = "vip", cpu: str = "2", priority: int = 100, **more: Any) -> Document:
    """Build an important pod as the API server has it."""
    return pod(name, cpu, priority=priority, **more)


FULL = (
    node("a"),
    node("b"),
    pod("a1", on="a", priority=1, started=1),
    pod("a2", on="a", priority=2, started=1),
    pod("b1", "2", on="b", priority=5, started=1),
)
"""Two full nodes; b has one pod, which is more important than both of a's."""


async def preempted(
    schedule: SetScheduler,
    extend: Extend | None = None,
    *more: Document,
    upstream: str = NEW,
    seconds: float = 0.5,
    **entry: Any,
) -> SchedulerStage:
    """Set a stage on which vip has come to two full nodes."""
    config = configured(*([entry] if extend else []))
    insiders = {X: extend} if extend else {}
    stage = await schedule(extenders=insiders, scheduler=config, upstream=upstream)
    stage.load(*FULL, *more, vip())
    await stage.passes(seconds)
    return stage


@pytest.mark.parametrize("release", [OLD, "1.33", NEW])
async def test_the_least_important_pods_go_and_the_pod_is_nominated_then_placed(
    schedule: SetScheduler, release: str
) -> None:
    stage = await preempted(schedule, upstream=release)
    assert await stage.places() == {"b1": "b", "vip": "→ a"}
    placed = " preemption: found a potential placement for pod on node a, preempting 2 victims"
    told = NO_FIT + (placed if release == NEW else "")
    assert await stage.refusal("vip") == ("Unschedulable", told)
    assert await stage.events("FailedScheduling") == [("vip", told)]
    assert sorted(await stage.events("Preempted")) == [
        (name, "Preempted by pod vip on node a") for name in ("a1", "a2")
    ]
    await stage.passes(2)
    assert await stage.places() == {"b1": "b", "vip": "a"}
    assert await stage.events("Scheduled") == [("vip", "Successfully assigned default/vip to a")]


async def test_victims_are_marked_then_deleted(schedule: SetScheduler) -> None:
    stage = await schedule()
    there = {"terminationGracePeriodSeconds": 30}
    stage.load(node("a"), pod("low", "2", on="a", spec=there), vip())
    await stage.passes(0.5)
    low = await stage.pod("low")
    [condition] = low["status"]["conditions"]
    assert {**condition, "lastTransitionTime": ""} == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": "default-scheduler: preempting to accommodate a higher priority pod",
        "lastTransitionTime": "",
    }
    assert "deletionTimestamp" in low["metadata"]
    assert await stage.places() == {"low": "a", "vip": "→ a"}
    await stage.passes(20)
    assert len(await stage.events("Preempted")) == 1  # it waits for the victim it has


async def test_a_pod_that_may_not_preempt_says_so_and_nobody_goes(schedule: SetScheduler) -> None:
    stage = await schedule()
    stage.load(*FULL, vip(spec={"preemptionPolicy": "Never"}))
    await stage.passes(0.5)
    told = "preemption: not eligible due to preemptionPolicy=Never."
    assert await stage.refusal("vip") == ("Unschedulable", f"{NO_FIT} {told}")
    assert len(await stage.places()) == 4


async def test_where_nobody_may_go_the_nomination_ends(schedule: SetScheduler) -> None:
    stage = await schedule()
    stage.load(*FULL, vip(priority=1, status={"nominatedNodeName": "a"}))
    await stage.passes(0.5)
    none = "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
    assert await stage.refusal("vip") == ("Unschedulable", f"{NO_FIT} {none}")
    assert (await stage.places())["vip"] == ""


async def test_budgets_are_spared_where_they_can_be(schedule: SetScheduler) -> None:
    stage = await schedule()
    stage.load(
        node("a"), node("b"),
        pod("a1", "2", on="a", labels={"app": "db"}),
        pod("b1", "2", on="b", priority=9),
        pdb_json("db", match={"app": "db"}, allowed=0),
        vip(),
    )  # fmt: skip
    await stage.passes(0.5)
    assert await stage.places() == {"a1": "a", "vip": "→ b"}


# What extenders are sent, and what they may change


async def test_extenders_are_sent_the_candidates_and_their_answer_replaces_them(
    schedule: SetScheduler,
) -> None:
    stage = await preempted(schedule, player(preempt=preempting(b=victims("b1"))))
    [asked] = [each.asked for each in stage.trace.calls("preempt")]
    assert asked["NodeNameToVictims"] is None
    assert asked["NodeNameToMetaVictims"] == {"a": victims("a2", "a1"), "b": victims("b1")}
    assert await stage.places() == {"a1": "a", "a2": "a", "vip": "→ b"}


async def test_one_without_a_node_cache_is_sent_whole_victims(schedule: SetScheduler) -> None:
    stage = await preempted(
        schedule, player(preempt=preempting(b=victims("b1"))), nodeCacheCapable=False
    )
    [asked] = [each.asked for each in stage.trace.calls("preempt")]
    assert asked["NodeNameToMetaVictims"] is None
    offered = asked["NodeNameToVictims"]
    assert [pod["metadata"]["name"] for pod in offered["a"]["Pods"]] == ["a2", "a1"]
    assert "kind" not in offered["a"]["Pods"][0]
    assert (await stage.places())["vip"] == "→ b"


async def test_the_next_extender_is_sent_what_the_last_has_left(schedule: SetScheduler) -> None:
    extenders = {X: player(preempt=preempting(a=victims("a1", violations=7))), Y: player()}
    entries = configured({"filterVerb": ""}, {"urlPrefix": Y, "filterVerb": ""})
    stage = await schedule(extenders=extenders, scheduler=entries)
    stage.load(*FULL, vip())
    await stage.passes(0.5)
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
    nominated = {"nominatedNodeName": "b"}
    stage = await schedule(
        extenders={X: player(preempt=preempting())}, scheduler=configured({}), upstream=OLD
    )
    stage.load(*FULL, vip(status=nominated))
    await stage.passes(0.5)
    none = "preemption: no candidate node for preemption"
    assert await stage.refusal("vip") == ("Unschedulable", f"{NO_FIT} {none}")
    assert (await stage.places())["vip"] == "→ b"


ERRORS: dict[str, tuple[Answer, str]] = {
    "a status": (Reply(500, b""), f"failed preempt with extender at URL {X}/preempt, code 500"),
    "an unknown node": (
        preempting(z=victims("a1")),
        'nodeinfo not found for node name "z"',
    ),
    "a pod that is elsewhere": (
        preempting(a=victims("b1")),
        (
            f"extender: {X} claims to preempt pod (UID: &{{b1}}) on node: a, but the pod is not "
            "found on that node"
        ),
    ),
    "a pod that nobody knows": (
        preempting(a=victims("ghost")),
        (
            f"extender: {X} claims to preempt pod (UID: &{{ghost}}) on node: a, but the pod is not "
            "found on that node"
        ),
    ),
}


@pytest.mark.parametrize("name", ERRORS)
async def test_after_an_error_nobody_goes_and_the_nomination_stays(
    schedule: SetScheduler, name: str
) -> None:
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
        (Verdict.IGNORED, problem)
    ]


@pytest.mark.parametrize("entry", [{"ignorable": True}, {}])
async def test_null_victims_are_never_ignored(schedule: SetScheduler, entry: Document) -> None:
    answer = player(preempt=preempting(a=None))
    stage = await preempted(schedule, answer, **entry)
    told = "the victims of node a are null, and kube-scheduler panics"
    assert stage.problems() == [told]
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


def busy(**preempt: Document | None) -> Extend:
    """Build an extender that has no room for anybody, and says who has to go."""
    refusal = {"NodeNames": [], "FailedNodes": {"a": "gpu busy"}}
    return player(filter=refusal, preempt=preempting(**preempt))


async def short_of_gpus(schedule: SetScheduler, extend: Extend, upstream: str) -> SchedulerStage:
    """Set a stage on which only the extender has no room for vip."""
    stage = await schedule(extenders={X: extend}, scheduler=configured({}), upstream=upstream)
    stage.load(*ROOMY, vip())
    await stage.passes(0.5)
    return stage


async def test_up_to_1_37_what_only_extenders_lack_preempts_nobody(schedule: SetScheduler) -> None:
    stage = await short_of_gpus(schedule, busy(a=victims("a1")), "1.37")
    told = 'preemption: expected at least one victim pod on node "a"'
    assert await stage.refusal("vip") == (
        "Unschedulable", f"0/1 nodes are available: 1 gpu busy. {told}"
    )  # fmt: skip
    assert stage.asked("preempt") == []


async def test_since_1_38_such_nodes_are_sent_without_victims_and_may_get_some(
    schedule: SetScheduler,
) -> None:
    stage = await short_of_gpus(schedule, busy(a=victims("a1")), NEW)
    [asked] = [each.asked for each in stage.trace.calls("preempt")]
    assert asked["NodeNameToMetaVictims"] == {"a": victims()}
    assert await stage.places() == {"vip": "→ a"}


async def test_one_that_stays_without_victims_is_dropped(schedule: SetScheduler) -> None:
    stage = await short_of_gpus(schedule, busy(a=victims()), NEW)
    told = "preemption: no candidate node for preemption"
    assert (await stage.refusal("vip"))[1].endswith(told)
    assert [each.verdict for each in stage.trace.calls("preempt")] == [Verdict.ACCEPTED]


async def test_a_node_that_an_extender_dropped_silently_is_not_tried(
    schedule: SetScheduler,
) -> None:
    extend = player(filter={"NodeNames": []}, preempt=preempting(a=victims("a1")))
    stage = await short_of_gpus(schedule, extend, NEW)
    assert stage.asked("preempt") == []
    assert stage.trace[0].notes == ("left out without a reason, so preemption skips: a",)


async def test_a_node_that_an_extender_called_hopeless_is_not_tried(schedule: SetScheduler) -> None:
    hopeless = {"NodeNames": [], "FailedAndUnresolvableNodes": {"a": "no gpu"}}
    stage = await short_of_gpus(schedule, player(filter=hopeless), NEW)
    assert stage.asked("preempt") == []
    assert (await stage.refusal("vip"))[1].endswith("1 Preemption is not helpful for scheduling.")


# Nominations


async def test_pods_nominated_to_a_node_count_for_those_of_no_more_priority(
    schedule: SetScheduler,
) -> None:
    stage = await schedule()
    stage.load(node("a"), pod("going", "2", on="a", spec={"terminationGracePeriodSeconds": 30}))
    stage.load(vip())
    await stage.passes(0.5)
    stage.load(vip("second", "1", 100), vip("least", "1", 1))
    await stage.passes(1)
    await stage.delete_now("going")
    await stage.passes(15)
    assert await stage.places() == {"vip": "a", "second": "", "least": ""}


@pytest.mark.parametrize("release", [OLD, NEW])
async def test_a_more_important_preemptor_takes_the_nomination_from_another(
    schedule: SetScheduler, release: str
) -> None:
    stage = await schedule(upstream=release)
    slowly = {"terminationGracePeriodSeconds": 30}
    stage.load(node("a", "3"), pod("low", "2", on="a", spec=slowly), vip(priority=50))
    stage.load(pod("low2", "1", on="a", priority=1, spec=slowly))
    await stage.passes(0.5)
    assert (await stage.places())["vip"] == "→ a"
    stage.load(vip("king", "3", 100))
    await stage.passes(0.5)
    assert await stage.places() == {"low": "a", "low2": "a", "vip": "", "king": "→ a"}


async def test_two_preemptors_at_once_take_different_nodes(schedule: SetScheduler) -> None:
    stage = await schedule()
    stage.load(*FULL, vip("one"), vip("two"))
    await stage.passes(10)
    places = await stage.places()
    assert sorted((places["one"], places["two"])) == ["a", "b"]
    assert len(places) == 2


async def test_an_extender_is_asked_about_the_nominated_node_first(schedule: SetScheduler) -> None:
    stage = await preempted(schedule, player(), seconds=5)
    filters = [each.asked["NodeNames"] for each in stage.trace.calls("filter")]
    assert filters == [["a"]]
    assert (await stage.places())["vip"] == "a"


# Trouble on the way


@pytest.mark.parametrize(("release", "seconds"), [(OLD, 303), (NEW, 3)])
async def test_victims_that_cannot_be_deleted_have_the_preemptor_tried_again(
    schedule: SetScheduler, release: str, seconds: float
) -> None:
    """Since 1.33 at once; before, kube-scheduler waits as for any pod that fits nowhere."""
    asked = []

    def guard(review: Document) -> Document:
        asked.append(review["request"]["name"])
        return answered(review, allowed=len(asked) > 1)

    guarded = webhook("guard.example.com", rules=[rule("pods", operations=["DELETE"])])
    stage = await schedule(upstream=release, webhooks={"guard.example.com": guard})
    stage.load(configuration("validating", guarded))
    stage.load(node("a"), pod("low", "2", on="a"), vip())
    await stage.passes(seconds)
    assert (await stage.places(), asked) == ({"vip": "a"}, ["low", "low"])
    assert len(await stage.events("Preempted")) == 1


async def test_a_profile_may_do_without_preemption(schedule: SetScheduler) -> None:
    off = {"plugins": {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}}}
    stage = await schedule(scheduler={"profiles": [{"schedulerName": "default-scheduler", **off}]})
    stage.load(*FULL, vip(status={"nominatedNodeName": "a"}))
    await stage.passes(0.5)
    assert await stage.refusal("vip") == ("Unschedulable", NO_FIT)
    assert (await stage.places())["vip"] == ""


async def test_only_a_sample_is_offered_in_a_large_cluster(schedule: SetScheduler) -> None:
    args = {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 3}
    plugins = {"pluginConfig": [{"name": "DefaultPreemption", "args": args}]}
    stage = await schedule(
        extenders={X: player()}, scheduler=configured({}, profiles=[plugins]), seed=3
    )
    for number in range(20):
        stage.load(node(f"n{number}"), pod(f"p{number}", "2", on=f"n{number}"))
    stage.load(vip())
    await stage.passes(0.5)
    [asked] = [each.asked for each in stage.trace.calls("preempt")]
    assert len(asked["NodeNameToMetaVictims"]) == 3
    assert len((await stage.client.list(PODS, bytes)).items) == 20


async def test_a_victim_that_goes_while_extenders_are_asked_is_still_told_of(
    schedule: SetScheduler,
) -> None:
    """The snapshot holds it, as upstream's does; to delete it then is no error."""
    stages: list[SchedulerStage] = []

    async def deleting(call: Call) -> Reply:
        if call.verb == "preempt" and call.document()["NodeNameToVictims"]:
            await stages[0].delete_now("a1")
            await stages[0].passing_turns()
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
    assert [name for name, _ in await stage.events("Preempted")] == ["a2"]


async def test_a_preemptor_that_goes_while_extenders_are_asked_leaves_others_alone(
    schedule: SetScheduler,
) -> None:
    stages: list[SchedulerStage] = []

    async def deleting(call: Call) -> Reply:
        await stages[0].delete_now("vip")
        await stages[0].passing_turns()
        return passing(call)

    stage = await schedule(extenders={X: deleting}, scheduler=configured({"filterVerb": ""}))
    stages.append(stage)
    stage.load(*FULL, vip())
    await stage.passes(3)
    assert sorted(await stage.places()) == ["a1", "a2", "b1"]
    assert await stage.events("FailedScheduling") == []
