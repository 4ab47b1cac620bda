"""Preemption: victims, their conditions and Events, and the effect of nominations."""

from __future__ import annotations

import pytest

from extender.kube.rest.resources import PODS
from tests.builders import Document, pdb_json
from tests.fakeapi.admission_webhooks import answered, configuration, rule, webhook
from tests.fakeapi.controlplane.scheduler.stages import (
    FULL,
    NEW,
    NO_FIT,
    OLD,
    SetScheduler,
    X,
    configured,
    node,
    player,
    pod,
    preempted,
    vip,
)

SLOW: Document = {"terminationGracePeriodSeconds": 30}


@pytest.mark.parametrize("release", [OLD, "1.33", NEW])
async def test_the_least_important_pods_are_preempted(schedule: SetScheduler, release: str) -> None:
    stage = await preempted(schedule, upstream=release)
    assert await stage.places() == {"b1": "b", "vip": "→ a"}
    placed = " preemption: found a potential placement for pod on node a, preempting 2 victims"
    message = NO_FIT + (placed if release == NEW else "")
    assert await stage.refusal("vip") == ("Unschedulable", message)
    assert await stage.messages("FailedScheduling") == [("vip", message)]
    assert sorted(await stage.messages("Preempted")) == [
        (name, "Preempted by pod vip on node a") for name in ("a1", "a2")
    ]
    assert await stage.places(after=2) == {"b1": "b", "vip": "a"}
    assert await stage.messages("Scheduled") == [("vip", "Successfully assigned default/vip to a")]


async def test_victims_are_marked_then_deleted(schedule: SetScheduler) -> None:
    stage = await schedule()
    stage.load(node("a"), pod("low", "2", on="a", spec=SLOW), vip())
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
    assert len(await stage.messages("Preempted")) == 1  # it waits for its victim


async def test_a_pod_with_preemption_policy_never_evicts_no_pod(schedule: SetScheduler) -> None:
    stage = await schedule(*FULL, vip(spec={"preemptionPolicy": "Never"}), seconds=0.5)
    reason = "preemption: not eligible due to preemptionPolicy=Never."
    assert await stage.refusal("vip") == ("Unschedulable", f"{NO_FIT} {reason}")
    assert len(await stage.places()) == 4


async def test_without_candidates_the_nomination_is_cleared(schedule: SetScheduler) -> None:
    stage = await schedule(*FULL, vip(priority=1, status={"nominatedNodeName": "a"}), seconds=0.5)
    none = "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
    assert await stage.refusal("vip") == ("Unschedulable", f"{NO_FIT} {none}")
    assert (await stage.places())["vip"] == ""


async def test_budgets_are_kept_if_possible(schedule: SetScheduler) -> None:
    stage = await schedule()
    stage.load(
        node("a"), node("b"),
        pod("a1", "2", on="a", labels={"app": "db"}),
        pod("b1", "2", on="b", priority=9),
        pdb_json("db", match={"app": "db"}, allowed=0),
        vip(),
    )  # fmt: skip
    assert await stage.places(after=0.5) == {"a1": "a", "vip": "→ b"}


async def test_nominated_pods_count_for_equal_or_lower_priorities(schedule: SetScheduler) -> None:
    stage = await schedule()
    stage.load(node("a"), pod("going", "2", on="a", spec=SLOW))
    stage.load(vip())
    await stage.passes(0.5)
    stage.load(vip("second", "1", 100), vip("least", "1", 1))
    await stage.passes(1)
    await stage.end("going")
    assert await stage.places(after=15) == {"vip": "a", "second": "", "least": ""}


@pytest.mark.parametrize("release", [OLD, NEW])
async def test_a_more_important_preemptor_clears_the_nomination_of_another(
    schedule: SetScheduler, release: str
) -> None:
    stage = await schedule(upstream=release)
    stage.load(node("a", "3"), pod("low", "2", on="a", spec=SLOW), vip(priority=50))
    stage.load(pod("low2", "1", on="a", priority=1, spec=SLOW))
    assert (await stage.places(after=0.5))["vip"] == "→ a"
    stage.load(vip("king", "3", 100))
    assert await stage.places(after=0.5) == {"low": "a", "low2": "a", "vip": "", "king": "→ a"}


@pytest.mark.parametrize(
    ("profiles", "second"), [(["default-scheduler"], "a"), (["default-scheduler", "batch"], "")]
)
async def test_nominations_of_another_schedulers_pods_do_not_count(
    schedule: SetScheduler, profiles: list[str], second: str
) -> None:
    written = configured(profiles=[{"schedulerName": each} for each in profiles])
    stage = await schedule(scheduler=written)
    stage.load(node("a"), pod("resident", "1", on="a", priority=5))
    theirs = {"spec": {"schedulerName": "batch", "schedulingGates": [{"name": "later"}]}}
    stage.load(vip("theirs", "1", 100, status={"nominatedNodeName": "a"}, **theirs))
    stage.load(vip("second", "1", 1))
    assert await stage.places(after=1) == {"resident": "a", "theirs": "→ a", "second": second}


async def test_nominations_of_less_important_pods_take_no_room(schedule: SetScheduler) -> None:
    """The scheduler knows which pods it has assumed."""
    stage = await schedule()
    stage.load(node("a"), vip("low", "2", 1, status={"nominatedNodeName": "a"}))
    stage.load(vip("king", "2", 100))
    assert (await stage.places(after=0.5))["king"] == "a"


async def test_another_schedulers_nomination_is_not_cleared(schedule: SetScheduler) -> None:
    stage = await schedule()
    theirs = {"spec": {"schedulerName": "batch"}, "status": {"nominatedNodeName": "a"}}
    stage.load(node("a"), pod("low", "2", on="a", spec=SLOW), vip("theirs", "1", 50, **theirs))
    stage.load(vip("king", "2", 100))
    assert await stage.places(after=0.5) == {"low": "a", "theirs": "→ a", "king": "→ a"}


async def test_two_preemptors_at_once_take_different_nodes(schedule: SetScheduler) -> None:
    stage = await schedule(*FULL, vip("one"), vip("two"), seconds=10)
    places = await stage.places()
    assert sorted((places["one"], places["two"])) == ["a", "b"]
    assert len(places) == 2


async def test_the_nominated_node_is_filtered_first(schedule: SetScheduler) -> None:
    stage = await preempted(schedule, player(), seconds=5)
    filters = [each.asked["NodeNames"] for each in stage.trace.calls("filter")]
    assert filters == [["a"]]
    assert (await stage.places())["vip"] == "a"


@pytest.mark.parametrize(("release", "seconds"), [(OLD, 303), (NEW, 3)])
async def test_a_preemptor_is_retried_if_a_victim_cannot_be_deleted(
    schedule: SetScheduler, release: str, seconds: float
) -> None:
    """Since 1.33 it is retried at once; before, like any unschedulable pod."""
    reviewed = []

    def guard(review: Document) -> Document:
        reviewed.append(review["request"]["name"])
        return answered(review, allowed=len(reviewed) > 1)

    guarded = webhook("guard.example.com", rules=[rule("pods", operations=["DELETE"])])
    stage = await schedule(upstream=release, webhooks={"guard.example.com": guard})
    stage.load(configuration("validating", guarded))
    stage.load(node("a"), pod("low", "2", on="a"), vip())
    await stage.passes(seconds)
    assert (await stage.places(), reviewed) == ({"vip": "a"}, ["low", "low"])
    assert len(await stage.messages("Preempted")) == 1


async def test_a_profile_may_disable_preemption(schedule: SetScheduler) -> None:
    off = {"plugins": {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}}}
    stage = await schedule(scheduler={"profiles": [{"schedulerName": "default-scheduler", **off}]})
    stage.load(*FULL, vip(status={"nominatedNodeName": "a"}))
    await stage.passes(0.5)
    assert await stage.refusal("vip") == ("Unschedulable", NO_FIT)
    assert (await stage.places())["vip"] == ""


async def test_a_sample_of_candidates_is_offered_in_a_large_cluster(schedule: SetScheduler) -> None:
    args = {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 3}
    plugins = {"pluginConfig": [{"name": "DefaultPreemption", "args": args}]}
    config = configured({}, profiles=[plugins])
    stage = await schedule(extenders={X: player()}, scheduler=config, seed=3)
    for number in range(20):
        stage.load(node(f"n{number}"), pod(f"p{number}", "2", on=f"n{number}"))
    stage.load(vip())
    await stage.passes(0.5)
    [asked] = [each.asked for each in stage.trace.calls("preempt")]
    assert len(asked["NodeNameToMetaVictims"]) == 3
    assert len((await stage.client.list(PODS, bytes)).items) == 20
