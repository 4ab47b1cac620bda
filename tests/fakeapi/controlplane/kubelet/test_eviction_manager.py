"""Nodes under pressure: evictions, conditions, and best-effort pods that are rejected."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.rest.resources import NODES, PODS
from tests.builders import Document, container_json
from tests.fakeapi.controlplane.kubelet.conftest import SetKubelets
from tests.fakeapi.controlplane.kubelet.stages import KubeletStage, node, pod

GI = 2**30


@pytest.fixture
async def stage(kubelets: SetKubelets) -> KubeletStage:
    """Return a stage with a node of 2Gi of memory and a disk of 20Gi."""
    return await small_node(kubelets)


async def small_node(kubelets: SetKubelets, script: Any = "", run: str = "kubelet") -> KubeletStage:
    small = node("n", cpu="4", memory="2Gi", **{"ephemeral-storage": "20Gi"})
    return await kubelets(small, kubelet=script, run=run, seconds=1)


def using(name: str, memory: str, script: str, **spec: Any) -> Document:
    """Build a pod that requests some memory, and uses it by its script."""
    container = container_json(requests={"memory": memory} if memory else {})
    return pod(name, containers=[container], script=script, **spec)


def grows(most: str, over: str = "60s") -> str:
    return f"{{start: 0, stages: [{{memory: 50Mi}}, {{after: 5s, memory: {most}, over: {over}}}]}}"


async def test_the_pod_that_exceeds_its_request_is_evicted(stage: KubeletStage) -> None:
    await stage.run(
        using("modest", "1Gi", grows("900Mi")), using("greedy", "100Mi", grows("1200Mi"))
    )
    await stage.passes(120)
    phases = await stage.phases()
    assert phases == {"modest": "Running*", "greedy": "Failed"}
    status = await stage.status("greedy")
    assert status["reason"] == "Evicted"
    assert status["message"].startswith(
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: "
    )
    assert "Container main was using " in status["message"]
    assert status["message"].endswith("request is 100Mi, has larger consumption of memory. ")
    [target] = [c for c in status["conditions"] if c["type"] == "DisruptionTarget"]
    assert (target["status"], target["reason"]) == ("True", "TerminationByKubelet")
    assert target["message"] == status["message"]
    events = await stage.list_events()
    assert ("EvictionThresholdMet", "n", "Attempting to reclaim memory") in events
    assert ("Evicted", "greedy", status["message"]) in events


async def test_pressure_is_reported_for_five_minutes_after_it_ended(stage: KubeletStage) -> None:
    await stage.run(using("greedy", "", grows("1950Mi", "10s")))
    seen = []
    for _ in range(8):
        await stage.passes(50)
        seen.append((await stage.conditions("n"))["MemoryPressure"])
    assert seen == ["True"] * 6 + ["False"] * 2
    assert await stage.phases() == {"greedy": "Failed"}
    reasons = [reason for reason, name, _ in await stage.list_events() if name == "n"]
    assert reasons.count("NodeHasInsufficientMemory") == 1
    assert reasons.count("NodeHasSufficientMemory") == 1


async def test_under_memory_pressure_best_effort_pods_are_rejected(stage: KubeletStage) -> None:
    await stage.run(using("greedy", "", grows("1950Mi", "10s")), seconds=40)
    tolerant = {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}
    await stage.run(
        using("asks", "10Mi", "{}"),
        using("asks-nothing", "", "{}"),
        using("tolerates", "", "{}", tolerations=[tolerant]),
        using("critical", "", "{}", priorityClassName="system-node-critical"),
    )
    assert await stage.phases(after=10) == {
        "greedy": "Failed",
        "asks": "Running*",
        "asks-nothing": "Failed",
        "tolerates": "Running*",
        "critical": "Running*",
    }
    status = await stage.status("asks-nothing")
    assert status["reason"] == "Evicted"
    assert status["message"] == ("Pod was rejected: The node had condition: [MemoryPressure]. ")


async def test_a_node_under_pressure_is_tainted(kubelets: SetKubelets) -> None:
    stage = await small_node(kubelets, run="kubelet,nodelifecycle")
    await stage.say(NODES, "n", "{stages: [{memory: 1990Mi}]}")
    await stage.passes(30)
    found = await stage.get(NODES, "n")
    keys = [taint["key"] for taint in found["spec"]["taints"]]
    assert keys == ["node.kubernetes.io/memory-pressure"]


async def test_one_pod_is_evicted_in_a_round_until_memory_suffices(stage: KubeletStage) -> None:
    await stage.say(NODES, "n", "{stages: [{memory: 200Mi}]}")
    await stage.run(*(using(f"p{i}", "", grows("450Mi", "10s"), priority=None) for i in range(5)))
    await stage.passes(60)
    phases = sorted((await stage.phases()).values())
    assert phases == [*["Failed"] * 2, *["Running*"] * 3]  # two are enough


async def test_a_full_disk_is_cleaned_up_before_an_eviction(stage: KubeletStage) -> None:
    await stage.run(pod("p"))
    await stage.say(NODES, "n", "{stages: [{images: 16500Mi}]}")
    assert await stage.phases(after=40) == {"p": "Running*"}
    assert (await stage.conditions("n"))["DiskPressure"] == "True"  # for five minutes
    fs = (await stage.asked("n", "stats/summary"))["node"]["fs"]
    assert fs["usedBytes"] < 4 * GI
    await stage.passes(300)
    assert (await stage.conditions("n"))["DiskPressure"] == "False"


async def test_a_pod_is_evicted_if_cleanup_does_not_suffice(stage: KubeletStage) -> None:
    writes = "{start: 0, stages: [{disk: 100Mi}, {after: 5s, disk: 16Gi, over: 30s}]}"
    await stage.run(pod("writer", script=writes), pod("other"), seconds=60)
    assert await stage.phases() == {"writer": "Failed", "other": "Running*"}
    status = await stage.status("writer")
    assert status["message"].startswith("The node was low on resource: ephemeral-storage. ")
    assert (await stage.conditions("n"))["DiskPressure"] == "True"


async def test_a_pod_with_a_volume_over_its_limit_is_evicted(stage: KubeletStage) -> None:
    volumes = [{"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}]
    script = "{start: 0, stages: [{after: 5s, volumes: {data: 2Gi}, over: 10s}]}"
    await stage.run(pod("p", script=script, volumes=volumes), pod("other"), seconds=40)
    status = await stage.status("p")
    assert (status["phase"], status["reason"]) == ("Failed", "Evicted")
    assert status["message"] == 'Usage of EmptyDir volume "data" exceeds the limit "1Gi". '
    assert "DisruptionTarget" not in [c["type"] for c in status["conditions"]]
    assert (await stage.conditions("n"))["DiskPressure"] == "False"


async def test_a_pod_is_evicted_by_its_new_script(stage: KubeletStage) -> None:
    await stage.run(pod("p"), seconds=60)
    await stage.say(PODS, "p", "{stages: [{memory: 2000Mi}]}")
    assert await stage.phases(after=30) == {"p": "Failed"}


async def test_a_silent_node_reports_an_eviction_later(stage: KubeletStage) -> None:
    await stage.say(
        NODES, "n", "{stages: [{after: 20s, silent: true}, {after: 90s, silent: false}]}"
    )
    await stage.run(using("greedy", "", "{stages: [{}, {after: 40s, memory: 2000Mi}]}"), seconds=30)
    before = stage.cluster.api.store.version
    await stage.passes(70)
    assert stage.cluster.api.store.version == before
    await stage.passes(30)
    ended = (await stage.status("greedy"))["containerStatuses"][0]["state"]["terminated"]
    assert ended["finishedAt"] < "2026-01-01T00:01:00Z"
    assert (await stage.status("greedy"))["reason"] == "Evicted"
    assert (await stage.conditions("n"))["MemoryPressure"] == "True"


async def test_pods_are_evicted_for_process_ids(stage: KubeletStage) -> None:
    config = '{config: {evictionHard: {pid.available: "1000"}}}'
    await stage.say(NODES, "n", config)
    forks = "{start: 0, stages: [{after: 5s, processes: 32000}]}"
    await stage.run(pod("forks", script=forks), pod("other"), seconds=30)
    assert await stage.phases() == {"forks": "Failed", "other": "Running*"}
    assert (await stage.conditions("n"))["PIDPressure"] == "True"


async def test_soft_thresholds_have_a_grace_period(kubelets: SetKubelets) -> None:
    config = {
        "evictionSoft": {"memory.available": "500Mi"},
        "evictionSoftGracePeriod": {"memory.available": "1m30s"},
        "evictionMaxPodGracePeriod": 20,
        "evictionPressureTransitionPeriod": "30s",
    }
    stage = await small_node(kubelets, {"nodes": [{"config": config}]})
    written = (await stage.asked("n", "configz"))["kubeletconfig"]
    assert written["evictionSoft"] == {"memory.available": "500Mi"}
    stubborn = "{start: 0, stop: 60s, stages: [{memory: 50Mi}, {after: 5s, memory: 1500Mi}]}"
    await stage.run(using("p", "", stubborn), seconds=60)
    assert (await stage.conditions("n"))["MemoryPressure"] == "True"
    assert await stage.phases() == {"p": "Running*"}
    assert await stage.phases(after=45) == {"p": "Running*"}  # it has twenty seconds to stop
    assert await stage.phases(after=30) == {"p": "Failed"}
    await stage.passes(60)
    assert (await stage.conditions("n"))["MemoryPressure"] == "False"


async def test_an_invalid_configuration_is_reported(stage: KubeletStage) -> None:
    await stage.say(NODES, "n", '{config: {evictionHard: {memory.available: "-1"}}}')
    await stage.passes(1)
    events = await stage.list_events()
    expected = "config.evictionHard: eviction threshold memory.available must be positive: -1"
    assert [event[2] for event in events if event[0] == "InvalidScript"] == [expected]


async def test_nodes_far_from_their_thresholds_are_not_checked(stage: KubeletStage) -> None:
    await stage.run(pod("p"), seconds=60)
    switch = stage.cluster.control_plane["kubelet"]
    queue = switch._component.controller.queue  # type: ignore[union-attr]
    assert not [work for work in queue._due if work.kind == "pressure"]
