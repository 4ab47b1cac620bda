"""Extenders as kube-scheduler calls them: when, in which order, and what an error does."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.rest.clock import Clock
from fakeapi import VirtualCluster
from fakeapi.controlplane.scheduler.extender_trace import ExtenderOutcome
from fakeapi.controlplane.scheduler.options import Call, ExtenderFunction, Reply, UnansweredError
from tests.builders import Document, container_json
from tests.fakeapi.controlplane.scheduler.stages import (
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
)

GPU = "example.com/gpu"


async def one_pod(
    schedule: SetScheduler, extend: ExtenderFunction, pending: Document | None = None, **entry: Any
) -> SchedulerStage:
    """Open a stage on which one extender has been called for the pod p and the nodes a and b."""
    stage = await schedule(node("a"), node("b"), extenders={X: extend}, scheduler=configured(entry))
    await stage.run(pending or pod("p"), seconds=0.5)
    return stage


async def test_an_extender_filters_the_nodes_that_fit(schedule: SetScheduler) -> None:
    stage = await one_pod(schedule, player(filter={"NodeNames": ["b"]}))
    [asked] = stage.trace
    assert (asked.url, asked.pod, asked.verdict) == (
        f"{X}/filter",
        "default/p",
        ExtenderOutcome.ACCEPTED,
    )
    assert asked.asked["NodeNames"] == ["a", "b"]
    assert asked.asked["Nodes"] is None
    assert "kind" not in asked.asked["Pod"]
    assert await stage.places() == {"p": "b"}


async def test_without_a_node_cache_whole_nodes_are_sent(schedule: SetScheduler) -> None:
    stage = await one_pod(schedule, passing, nodeCacheCapable=False)
    [asked] = [each.asked for each in stage.trace]
    assert asked["NodeNames"] is None
    assert [each["metadata"]["name"] for each in asked["Nodes"]["items"]] == ["a", "b"]
    assert {"kind", "apiVersion"}.isdisjoint(asked["Nodes"]["items"][0])
    assert set((await stage.places()).values()) <= {"a", "b"}


async def test_only_nodes_that_pass_the_in_tree_filters_are_sent(schedule: SetScheduler) -> None:
    nodes = node("small", "500m"), node("a"), node("tainted", taints=["k=v:NoSchedule"])
    stage = await schedule(*nodes, extenders={X: passing}, scheduler=configured({}))
    await stage.run(pod("p"), seconds=0.5)
    assert [each.asked["NodeNames"] for each in stage.trace] == [["a"]]


async def test_extenders_are_not_called_for_a_pod_that_fits_no_node(schedule: SetScheduler) -> None:
    stage = await one_pod(schedule, passing, pod("p", "9"))
    assert stage.asked() == []
    assert await stage.refusal("p") == (
        "Unschedulable",
        (
            "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 2 "
            "Preemption is not helpful for scheduling."
        ),
    )


def using(**limits: str) -> Document:
    """Build a pod whose init container has limits of resources."""
    resources = {"limits": limits, "requests": dict.fromkeys(limits, "0")}
    return pod("p", spec={"initContainers": [container_json("i", resources=resources)]})


INTEREST: dict[str, tuple[list[Document], Document, bool]] = {
    "nothing managed": ([], pod("p"), True),
    "another resource": ([{"name": GPU}], pod("p"), False),
    "zero of it, in an init container": ([{"name": GPU}], using(**{GPU: "0"}), True),
}


@pytest.mark.parametrize("name", INTEREST)
async def test_an_extender_is_called_for_its_resources(schedule: SetScheduler, name: str) -> None:
    managed, pending, interested = INTEREST[name]
    stage = await one_pod(schedule, passing, pending, managedResources=managed)
    assert bool(stage.asked()) == interested


async def test_a_resource_ignored_by_the_scheduler_rejects_no_node(schedule: SetScheduler) -> None:
    managed = [{"name": GPU, "ignoredByScheduler": True}]
    resources = {"limits": {GPU: "8"}, "requests": {GPU: "8"}}
    pending = pod("p", containers=[container_json("c", resources=resources)])
    picky = player(filter={"NodeNames": ["a"]})
    stage = await one_pod(schedule, picky, pending, managedResources=managed)
    assert await stage.places() == {"p": "a"}


async def test_ignorable_extenders_are_called_last(schedule: SetScheduler) -> None:
    extenders = {
        X: player(filter={"NodeNames": ["a", "b"]}),
        Y: player(filter={"NodeNames": ["c", "b"]}),
    }
    first = {"urlPrefix": X, "ignorable": True}
    config = configured(first, {"urlPrefix": Y, "ignorable": False})
    stage = await schedule(*map(node, "abc"), extenders=extenders, scheduler=config)
    await stage.run(pod("p"), seconds=0.5)
    seen = [(each.extender, each.asked["NodeNames"], each.verdict) for each in stage.trace]
    assert seen == [
        (Y, ["a", "b", "c"], ExtenderOutcome.ACCEPTED),
        (X, ["c", "b"], ExtenderOutcome.IGNORED),  # it names a, which it was not sent
    ]
    assert (await stage.places())["p"] in {"b", "c"}


async def test_no_extender_is_called_without_remaining_nodes(schedule: SetScheduler) -> None:
    extenders = {X: player(filter={"NodeNames": []}), Y: passing}
    config = configured({}, {"urlPrefix": Y})
    stage = await schedule(node("a"), extenders=extenders, scheduler=config)
    await stage.run(pod("p"), seconds=0.5)
    assert [each.extender for each in stage.trace] == [X]


ERRORS: dict[str, tuple[Answer, str]] = {
    "an error in the answer": ({"NodeNames": ["a"], "Error": "no quota"}, "no quota"),
    "a status": (Reply(503, b"later"), f"failed filter with extender at URL {X}/filter, code 503"),
    "a status other than 200": (
        Reply.of({"NodeNames": ["a"]}, 201),
        f"failed filter with extender at URL {X}/filter, code 201",
    ),
    "no JSON": (Reply(200, b"<p>"), "invalid character '<' looking for beginning of value"),
    "nothing": (Reply(200, b""), "EOF"),
    "another node": (
        {"NodeNames": ["z"]},
        f'extender "{X}" claims a filtered node "z" which is not found in the input node list',
    ),
    "no connection": (
        UnansweredError("dial tcp x.example:80: connect: connection refused"),
        f'Post "{X}/filter": dial tcp x.example:80: connect: connection refused',
    ),
}


@pytest.mark.parametrize("name", ERRORS)
async def test_an_error_causes_no_preemption(schedule: SetScheduler, name: str) -> None:
    answer, problem = ERRORS[name]
    stage = await one_pod(schedule, player(filter=answer))
    assert await stage.refusal("p") == ("SchedulerError", problem)
    assert stage.problems() == [problem]
    assert await stage.messages("FailedScheduling") == [("p", problem)]
    assert stage.asked("preempt") == []


@pytest.mark.parametrize("name", ERRORS)
async def test_an_ignorable_extender_s_error_is_ignored(schedule: SetScheduler, name: str) -> None:
    answer, problem = ERRORS[name]
    stage = await one_pod(schedule, player(filter=answer), ignorable=True)
    assert (await stage.places())["p"] in {"a", "b"}
    assert [(each.verdict, each.problem) for each in stage.trace] == [
        (ExtenderOutcome.IGNORED, problem)
    ]


async def test_after_an_error_a_pod_is_retried_after_its_backoff(schedule: SetScheduler) -> None:
    answers = iter([Reply(500, b""), Reply(500, b""), Reply.of({"NodeNames": ["a"]})])
    stage = await one_pod(schedule, player(filter=lambda _: next(answers)))
    begun = stage.trace[0].at_ns
    await stage.passes(10)
    assert [(each.at_ns - begun) / 1e9 for each in stage.trace] == [0, 1, 3]
    assert await stage.places() == {"p": "a"}


def slow(clock: list[Clock], seconds: float) -> ExtenderFunction:
    """Build an extender that takes some seconds."""

    async def answer(call: Call) -> Reply:
        await clock[0].sleep(seconds)
        return passing(call)

    return answer


TIMES = [("", 4.9, 4.9), ("", 5.1, 5.0), ("1500ms", 1.4, 1.4), ("1.5s", 1.6, 1.5)]
"""httpTimeout, seconds that the extender takes, seconds that the call takes."""


@pytest.mark.parametrize(("limit", "needed", "spent"), TIMES)
async def test_a_call_has_five_seconds_or_the_configured_timeout(
    schedule: SetScheduler, limit: str, needed: float, spent: float
) -> None:
    clock: list[Clock] = []
    entry = {"httpTimeout": limit} if limit else {}
    extenders = {X: slow(clock, needed)}
    stage = await schedule(node("a"), extenders=extenders, scheduler=configured(entry))
    clock.append(stage.cluster.clock)
    await stage.run(pod("p"), seconds=5.2)
    overdue = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    problem = f'Post "{X}/filter": {overdue}' if spent < needed else ""
    assert stage.trace[0].problem == problem
    assert stage.trace[0].seconds == pytest.approx(spent)


async def test_a_pod_may_be_deleted_during_an_extender_call(schedule: SetScheduler) -> None:
    clock: list[Clock] = []
    extenders = {X: slow(clock, 2)}
    stage = await schedule(node("a"), extenders=extenders, scheduler=configured({}))
    clock.append(stage.cluster.clock)
    await stage.run(pod("p"), seconds=1)
    await stage.end("p")
    assert (await stage.places(after=5), await stage.messages("Scheduled")) == ({}, [])


REASONS: dict[str, tuple[Document, str]] = {
    "reasons for nodes": (
        {"FailedNodes": {"a": "gpu busy"}, "FailedAndUnresolvableNodes": {"b": "no gpu"}},
        "0/2 nodes are available: 1 gpu busy, 1 no gpu.",
    ),
    "equal reasons are counted": (
        {"FailedNodes": {"a": "gpu busy", "b": "gpu busy"}},
        "0/2 nodes are available: 2 gpu busy.",
    ),
    "no reasons": ({"NodeNames": []}, "0/2 nodes are available:"),
}


@pytest.mark.parametrize("name", REASONS)
async def test_reasons_are_reported_unchanged(schedule: SetScheduler, name: str) -> None:
    answer, message = REASONS[name]
    stage = await one_pod(schedule, player(filter={"NodeNames": [], **answer}))
    reason, found = await stage.refusal("p")
    assert (reason, found.partition(" preemption: ")[0]) == ("Unschedulable", message)


async def test_scores_are_weighted_and_added(schedule: SetScheduler) -> None:
    scores = [{"Host": "b", "Score": 10}, {"Host": "a", "Score": 0}, {"Host": "z", "Score": 99}]
    entry: Document = {"prioritizeVerb": "prioritize", "weight": 3}
    stage = await one_pod(schedule, player(prioritize=scores), **entry)
    assert await stage.places() == {"p": "b"}
    [asked] = stage.trace.calls("prioritize")
    assert sorted(asked.asked["NodeNames"]) == ["a", "b"]
    assert asked.notes == ("z was not among the nodes sent", "z was scored 99, beyond 0 to 10")


async def test_a_failed_prioritize_call_adds_no_score(schedule: SetScheduler) -> None:
    entry: Document = {"prioritizeVerb": "prioritize", "weight": 1}
    stage = await one_pod(schedule, player(prioritize=Reply(500, b"")), **entry)
    assert (await stage.places())["p"] in {"a", "b"}
    assert [each.verdict for each in stage.trace.calls("prioritize")] == [ExtenderOutcome.IGNORED]


async def test_a_single_node_is_not_scored(schedule: SetScheduler) -> None:
    entry: Document = {"prioritizeVerb": "prioritize", "weight": 1}
    stage = await one_pod(schedule, player(filter={"NodeNames": ["a"]}), **entry)
    assert (await stage.places(), stage.asked("prioritize")) == ({"p": "a"}, [])


async def test_a_binding_extender_replaces_the_default_binder(schedule: SetScheduler) -> None:
    stage = await one_pod(schedule, player(filter={"NodeNames": ["a"]}), bindVerb="bind")
    [asked] = stage.trace.calls("bind")
    assert asked.asked == {
        "PodName": "p",
        "PodNamespace": "default",
        "PodUID": (await stage.pod("p"))["metadata"]["uid"],
        "Node": "a",
    }
    assert await stage.places() == {"p": ""}  # this one does not bind
    assert await stage.messages("Scheduled") == [("p", "Successfully assigned default/p to a")]


async def test_a_pod_that_an_extender_cannot_bind_is_retried(schedule: SetScheduler) -> None:
    answers = iter([{"Error": "not now"}, {"Error": ""}])
    stage = await one_pod(schedule, player(bind=lambda _: next(answers)), bindVerb="bind")
    assert await stage.refusal("p") == ("SchedulerError", "not now")
    await stage.passes(2)
    assert [each.problem for each in stage.trace.calls("bind")] == ["not now", ""]


async def test_an_ignorable_extender_that_cannot_bind_is_ignored(schedule: SetScheduler) -> None:
    broken = player(filter={"NodeNames": ["a"]}, bind={"Error": "not now"})
    stage = await one_pod(schedule, broken, bindVerb="bind", ignorable=True)
    assert await stage.places() == {"p": "a"}


async def test_an_exception_of_an_extender_function_ends_the_cluster() -> None:
    def broken(_call: Call) -> Reply:
        raise ZeroDivisionError

    async def run() -> None:
        async with VirtualCluster(run="scheduler", extenders={X: broken}) as cluster:
            cluster.load([node("a"), pod("p")])
            await cluster.clock.advance(1)

    with pytest.raises(ZeroDivisionError):
        await run()


async def test_in_a_large_cluster_a_part_of_the_nodes_is_filtered(schedule: SetScheduler) -> None:
    def reject(args: Document) -> Document:
        return {"NodeNames": [], "FailedNodes": dict.fromkeys(args["NodeNames"], "full")}

    config = configured({}, profiles=[{"percentageOfNodesToScore": 1}])
    nodes = (node(f"n{number:03}") for number in range(130))
    extenders = {X: player(filter=reject)}
    stage = await schedule(*nodes, extenders=extenders, scheduler=config, seconds=0.5)
    for name in ("p", "q"):
        await stage.run(pod(name), seconds=0.5)
    first, second = (each.asked["NodeNames"] for each in stage.trace)
    assert (len(first), first[0], second[0], second[30]) == (100, "n000", "n100", "n000")
    _, message = await stage.refusal("p")
    assert message.startswith("0/130 nodes are available: 100 full.")
