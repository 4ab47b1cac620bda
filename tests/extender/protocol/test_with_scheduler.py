"""A scheduler that calls Reprieve, on the same API server."""

from __future__ import annotations

from typing import Any

import pytest

from extender.protocol.verb_context import Search
from fakeapi import VirtualCluster
from fakeapi.testing.extenders import InProcessReprieve
from tests.builders import Document
from tests.extender.protocol.conftest import RUN, SetLoop
from tests.fakeapi.admission_webhooks import answered, configuration, rule, webhook
from tests.fakeapi.controlplane.scheduler.stages import (
    SchedulerStage,
    X,
    configured,
    node,
    pdb_json,
    pod,
)

RELEASES = ["1.30", "1.34", "1.38"]


async def filled(stage: SchedulerStage, nodes: int, **spec: Any) -> None:
    """Fill nodes for two pods each with pods that the scheduler binds."""
    stage.load(*(node(f"n{number}") for number in range(nodes)))
    await stage.passes(5)
    for number in range(nodes * 2):
        await stage.create_pod(pod(f"p{number}", priority=number, spec=spec))
    await stage.passes(5)
    assert "" not in (await stage.places()).values()


@pytest.mark.parametrize("search", Search)
@pytest.mark.parametrize("upstream", RELEASES)
async def test_an_important_pod_preempts_the_least_important_ones(
    close_loop: SetLoop, search: Search, upstream: str
) -> None:
    stage = await close_loop(search, upstream)
    await filled(stage, 3)
    before = await stage.places()
    await stage.create_pod(pod("vip", "2", priority=1000))
    await stage.passes(0.2)
    nominated = (await stage.places())["vip"].removeprefix("→ ")
    [exchange] = stage.trace.calls("preempt")
    [(node_named, victims)] = exchange.answered["NodeNameToMetaVictims"].items()
    assert (node_named, len(victims["Pods"]), exchange.notes) == (nominated, 2, ())
    await stage.passes(60)
    after = await stage.places()
    assert after["vip"] == nominated
    assert {name for name in before if name not in after} == {
        name for name, place in before.items() if place == nominated
    }
    assert stage.problems() == []


async def test_two_preemptors_at_once_do_not_share_one_node(close_loop: SetLoop) -> None:
    stage = await close_loop(Search.CLUSTER)
    await filled(stage, 4)
    for name in ("one", "two"):
        await stage.create_pod(pod(name, "2", priority=1000))
    await stage.passes(60)
    places = await stage.places()
    assert places["one"] != places["two"]
    assert "" not in places.values()
    assert len(places) == 8 + 2 - 4
    assert stage.problems() == []


async def test_searching_the_cluster_reaches_nodes_that_were_not_offered() -> None:
    args = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 1}
    plugins = [{"name": "DefaultPreemption", "args": args}]
    reprieve = InProcessReprieve(Search.CLUSTER)
    config = configured({}, profiles=[{"pluginConfig": plugins}])
    async with VirtualCluster(run=RUN, extenders={X: reprieve}, scheduler=config, seed=2) as made:
        stage = SchedulerStage(made)
        async with reprieve.following(made):
            stage.load(*(node(f"n{number}") for number in range(5)))
            stage.load(
                *(pod(f"p{n}", "2", on=f"n{n}", priority=9 - n, started=1) for n in range(5))
            )
            await stage.passes(5)
            await stage.create_pod(pod("vip", "2", priority=1000))
            await stage.passes(30)
            places = await stage.places()
    [exchange] = stage.trace.calls("preempt")
    [offered] = exchange.asked["NodeNameToMetaVictims"]
    assert places["vip"] == "n4"  # the cheapest of all
    assert offered != "n4"
    assert exchange.notes == ("node n4 was not offered; kube-scheduler takes it",)


async def test_budgets_are_kept_if_there_is_a_choice(close_loop: SetLoop) -> None:
    stage = await close_loop()
    stage.load(node("a"), node("b"))
    stage.load(pdb_json("db", match={"app": "db"}, allowed=0))
    stage.load(
        pod("db", "2", on="a", labels={"app": "db"}, priority=1),
        pod("web", "2", on="b", labels={"app": "web"}, priority=9),
    )
    await stage.passes(5)
    await stage.create_pod(pod("vip", "2", priority=1000))
    await stage.passes(30)
    assert await stage.places() == {"db": "a", "vip": "b"}


@pytest.mark.parametrize("upstream", RELEASES)
async def test_whole_objects_and_names_are_equivalent(close_loop: SetLoop, upstream: str) -> None:
    stage = await close_loop(upstream=upstream, nodeCacheCapable=False)
    await filled(stage, 2)
    await stage.create_pod(pod("vip", "2", priority=1000))
    await stage.passes(60)
    places = await stage.places()
    assert (places["vip"] != "", len(places)) == (True, 3)
    assert stage.problems() == []


async def test_a_verb_that_reprieve_does_not_have_is_an_error(close_loop: SetLoop) -> None:
    stage = await close_loop(filterVerb="sift")
    stage.load(node("a"))
    await stage.passes(5)
    await stage.create_pod(pod("p"))
    await stage.passes(0.5)
    message = f"failed sift with extender at URL {X}/sift, code 404"
    assert await stage.refusal("p") == ("SchedulerError", message)
    assert stage.trace[0].answered.startswith("reprieve: no verb 'sift'")


@pytest.mark.parametrize("search", Search)
@pytest.mark.parametrize("upstream", ["1.34", "1.38"])
async def test_a_preemption_that_fails_is_repeated_at_once_with_the_same_victims(
    close_loop: SetLoop, search: Search, upstream: str
) -> None:
    """Since 1.33 kube-scheduler asks again, with the nomination, if a victim is not deleted."""
    reviewed = []

    def guard(review: Document) -> Document:
        reviewed.append(review["request"]["name"])
        return answered(review, allowed=len(reviewed) > 1)

    stage = await close_loop(search, upstream, {"guard.example.com": guard})
    await filled(stage, 3)
    guarded = webhook("guard.example.com", rules=[rule("pods", operations=["DELETE"])])
    stage.load(configuration("validating", guarded))
    await stage.create_pod(pod("vip", "2", priority=1000))
    await stage.passes(15)
    first, second = stage.trace.calls("preempt")
    [nominated] = first.answered["NodeNameToMetaVictims"]
    assert second.asked["Pod"]["status"]["nominatedNodeName"] == nominated
    assert second.answered == first.answered
    await stage.passes(60)
    assert (await stage.places())["vip"] == nominated
