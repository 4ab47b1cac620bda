"""The advisor on a virtual clock: forecasts, rankings and errors of rounds."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import orjson
import pytest

from extender.config.strict_decoding import ConfigError
from extender.eviction.advise.documents import round_document
from extender.eviction.advise.rounds import ObservationRound
from extender.eviction.advise.run import RunContext, advise
from extender.eviction.advise.tables import round_lines
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.resources import NODES
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from fakeapi.testing.faults import fault
from tests.extender.eviction.advise.clusters import Recorder, advising, leaking, using, watching
from tests.extender.eviction.advise.conftest import SetAdvisor, small
from tests.fakeapi.controlplane.kubelet.conftest import SetKubelets
from tests.fakeapi.controlplane.kubelet.stages import KubeletStage, node


def node_documents(seen: ObservationRound) -> list[dict[str, Any]]:
    """Return the nodes of a round's document."""
    nodes: list[dict[str, Any]] = orjson.loads(msgspec.json.encode(round_document(seen)))["nodes"]
    return nodes


async def test_the_kubelet_evicts_the_first_pod_of_the_ranking(
    stage: KubeletStage, advisor: SetAdvisor
) -> None:
    stage.load(node("a", cpu="4", memory="2Gi"), node("z", cpu="4", memory="2Gi"))
    await stage.run(using("calm", "a"), leaking("greedy"), using("modest", requests="1Gi"))
    await stage.passes(5)
    recorder = advisor()
    await stage.passes(60)
    nodes = [node_documents(seen)[0] for seen in recorder.rounds[1:]]
    assert {each["node"] for each in nodes} == {"n"}
    assert {each["first"] for each in nodes} == {"default/greedy"}
    assert {each["leading"] for each in nodes} == {"memory.available<100Mi"}
    left = [each["actsInSeconds"] for each in nodes]
    assert left == sorted(left, reverse=True)
    assert left[0] > left[-1] > 0
    await stage.passes(left[-1] + 10)
    assert await stage.phases() == {"calm": "Running*", "greedy": "Failed", "modest": "Running*"}


async def test_one_sample_has_no_trend_and_two_have_one(
    stage: KubeletStage, advisor: SetAdvisor
) -> None:
    await stage.run(leaking("greedy"))
    recorder = advisor()
    await stage.passes(20)
    first, second = (node_documents(seen)[0]["signals"] for seen in recorder.rounds)
    assert {(each["readings"], each["perMinute"]) for each in first} == {(1, None)}
    assert {each["readings"] for each in second} == {2}
    memory = {each["signal"]: each["perMinute"] for each in second}["memory.available"]
    assert memory == pytest.approx(-(4096 - 150) / 10 * 2**20, rel=1e-3)


async def test_a_node_under_pressure_names_its_victims(
    stage: KubeletStage, advisor: SetAdvisor
) -> None:
    await stage.run(leaking("greedy", over="10s"), using("calm"))
    recorder = advisor()
    await stage.passes(35)
    [document] = node_documents(recorder.rounds[-1])
    assert document["conditions"] == ["MemoryPressure"]
    [line] = [line for line in round_lines(recorder.rounds[-1], 9) if " n " in line]
    assert "n under MemoryPressure" in line


async def test_an_unreadable_node_is_reported_and_blocks_no_other(kubelets: SetKubelets) -> None:
    stage = await small(kubelets, "fine", "silent")
    await stage.say(NODES, "silent", "{stages: [{silent: true}]}")
    foreign = node("foreign")
    foreign["metadata"]["annotations"] = {"kubelet.fakeapi/simulated": "false"}
    stage.load(foreign)
    task, recorder = advising(stage.cluster.local_transport(), stage.cluster.clock, watching())
    await stage.passes(20)
    task.cancel()
    seen = recorder.rounds[-1]
    assert [each.node for each in seen.forecasts] == ["fine"]
    refused = "dial tcp silent:10250: connect: connection refused"
    assert seen.unread == {
        "foreign": "stats/summary: 404 NotFound: the server could not find the requested resource",
        "silent": "stats/summary: 503 ServiceUnavailable: error trying to reach service: "
        + refused,
    }
    assert len(list(round_lines(seen, 9))) == 3


async def test_a_node_keeps_its_trend_while_it_is_unreachable(
    stage: KubeletStage, advisor: SetAdvisor
) -> None:
    await stage.run(leaking("greedy", over="3600s"))
    silent = "{stages: [{after: 20s, silent: true}, {after: 30s, silent: false}]}"
    await stage.say(NODES, "n", silent)
    recorder = advisor()
    await stage.passes(80)
    assert [bool(seen.unread) for seen in recorder.rounds] == [False] * 2 + [True] * 2 + [False] * 2
    readings = [
        node_documents(seen)[0]["signals"][0]["readings"]
        for seen in recorder.rounds
        if seen.forecasts
    ]
    assert readings == [1, 2, 3, 4]


async def test_nodes_are_added_and_deleted(stage: KubeletStage, advisor: SetAdvisor) -> None:
    recorder = advisor()
    await stage.passes(1)
    stage.load(node("m", cpu="4", memory="2Gi"))
    await stage.passes(15)
    await stage.client.delete(NODES.object("n"))
    await stage.passes(15)
    seen = [[each.node for each in seen.forecasts] for seen in recorder.rounds]
    assert seen == [["n"], ["n", "m"], ["m"]]


async def test_only_the_requested_node_is_observed(
    stage: KubeletStage, advisor: SetAdvisor
) -> None:
    stage.load(node("m", cpu="4", memory="2Gi"))
    await stage.run(leaking("greedy"), leaking("other", "m"))
    recorder = advisor(None, watching("m"))
    await stage.passes(20)
    [document] = node_documents(recorder.rounds[-1])
    assert document["node"] == "m"
    assert [each["pod"] for each in document["order"]] == ["default/other"]


async def test_a_missing_node_is_refused(stage: KubeletStage) -> None:
    task, _ = advising(stage.cluster.local_transport(), stage.cluster.clock, watching("gone"))
    with pytest.raises(ConfigError, match="--node: no node 'gone' in the cluster"):
        await task


async def test_a_refusing_server_is_reported_at_once(stage: KubeletStage) -> None:
    stage.cluster.faults.plan(fault(403).on("list", "pods"))
    task, _ = advising(stage.cluster.local_transport(), stage.cluster.clock, watching())
    with pytest.raises(ApiError, match="403"):
        await task


async def test_a_single_answer_takes_several_samples(stage: KubeletStage) -> None:
    await stage.run(leaking("greedy"))
    once = watching(samples=3)
    task, recorder = advising(stage.cluster.local_transport(), stage.cluster.clock, once)
    await stage.passes(29)
    assert not recorder.rounds
    await stage.passes(2)
    assert await task == 0
    [seen] = recorder.rounds
    assert node_documents(seen)[0]["signals"][0]["readings"] == 3
    assert recorder.ends == [None]


async def test_a_round_without_readable_nodes_is_a_failure(stage: KubeletStage) -> None:
    await stage.say(NODES, "n", "{stages: [{silent: true}]}")
    await stage.passes(1)
    clock, recorder = stage.cluster.clock, Recorder()
    around = RunContext(clock, Random(1), recorder)
    code = await advise(stage.cluster.local_transport(), watching(samples=1), None, around)
    assert code == 1
    assert list(recorder.rounds[0].unread) == ["n"]


async def test_unchanged_stats_are_stale(stage: KubeletStage) -> None:
    """Advance the advisor's clock while the kubelet's stats do not change."""
    later = VirtualClock(stage.cluster.clock.now_ns() + 185 * 10**9)
    task, recorder = advising(stage.cluster.local_transport(), later, watching(samples=1))
    assert await task == 1
    [seen] = recorder.rounds
    assert seen.unread == {"n": "stats are stale: last measured 3m5s ago"}
