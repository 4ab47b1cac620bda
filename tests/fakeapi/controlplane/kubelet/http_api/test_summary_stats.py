"""The usage that nodes report."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from extender.kube.rest.resources import NODES, PODS
from extender.kube.rest.transport import Request
from tests.builders import container_json
from tests.fakeapi.controlplane.kubelet.conftest import SetKubelets
from tests.fakeapi.controlplane.kubelet.stages import KubeletStage, asking, node, pod

MI = 2**20
GI = 2**30


@pytest.fixture
async def stage(kubelets: SetKubelets) -> KubeletStage:
    """Return a stage with a node of 8Gi of memory and a disk of 100Gi."""
    size = {"memory": "8Gi", "ephemeral-storage": "100Gi"}
    return await kubelets(node("n", cpu="4", **size), seconds=1)


async def summary(stage: KubeletStage) -> tuple[Any, dict[str, Any]]:
    """Return the summary of the node, and those of its pods by name."""
    answer = await stage.asked("n", "stats/summary")
    return answer["node"], {each["podRef"]["name"]: each for each in answer["pods"]}


async def test_an_idle_node(stage: KubeletStage) -> None:
    found, pods = await summary(stage)
    assert pods == {}
    assert found["memory"]["workingSetBytes"] == 256 * MI
    assert found["memory"]["availableBytes"] == 8 * GI - 256 * MI
    assert found["fs"]["capacityBytes"] == 100 * GI
    assert found["fs"]["availableBytes"] == 97 * GI  # two of its own, one of images
    assert found["fs"]["inodes"] == 100 * GI // 16_384
    assert found["rlimit"]["maxpid"] == 32_768
    assert found["runtime"]["imageFs"] == found["fs"]


async def test_pods_have_default_usage_without_a_script(stage: KubeletStage) -> None:
    await stage.run(pod("asks", **asking(memory="1Gi", cpu="1")), pod("plain"), seconds=5)
    found, pods = await summary(stage)
    assert pods["asks"]["memory"]["workingSetBytes"] == GI // 2
    assert pods["asks"]["cpu"]["usageNanoCores"] == 10**8
    assert pods["plain"]["memory"]["workingSetBytes"] == 16 * MI
    used = GI // 2 + 16 * MI
    assert found["systemContainers"][0]["memory"]["workingSetBytes"] == used
    assert found["systemContainers"][0]["memory"]["availableBytes"] == 8 * GI - used
    assert found["memory"]["workingSetBytes"] == used + 256 * MI


async def test_usage_follows_the_script(stage: KubeletStage) -> None:
    script = (
        "{start: 0, stages: [{memory: 100Mi, disk: 1Gi, logs: 10Mi, inodes: 500, processes: 7,"
        " cpu: 500m, volumes: {data: 2Gi}}, {after: 10s, memory: 300Mi, over: 20s},"
        " {after: 30s, exit: 0}]}"
    )
    await stage.run(pod("p", script=script, restartPolicy="Never"))
    memory = []
    for _ in range(3):
        await stage.passes(10)
        memory.append((await summary(stage))[1]["p"]["memory"]["workingSetBytes"] // MI)
    assert memory == [100, 200, 300]
    node_stats, pods = await summary(stage)
    found = pods["p"]
    assert found["ephemeral-storage"]["usedBytes"] == 3 * GI + 10 * MI
    assert found["process_stats"] == {"process_count": 7}
    assert found["cpu"]["usageNanoCores"] == 5 * 10**8
    assert [(v["name"], v["usedBytes"]) for v in found["volume"]] == [("data", 2 * GI)]
    [container] = found["containers"]
    assert container["rootfs"]["usedBytes"] == GI
    assert container["rootfs"]["inodesUsed"] == 500
    assert container["logs"]["usedBytes"] == 10 * MI
    assert node_stats["fs"]["usedBytes"] == 3 * GI + 3 * GI + 10 * MI
    assert node_stats["rlimit"]["curproc"] == 107
    await stage.passes(20)  # it has terminated: its files remain
    _, pods = await summary(stage)
    assert pods["p"]["memory"]["workingSetBytes"] == 0
    assert pods["p"]["containers"][0]["rootfs"]["usedBytes"] == GI


async def test_the_usage_of_a_node_follows_its_script(stage: KubeletStage) -> None:
    await stage.say(NODES, "n", "{stages: [{memory: 2Gi, disk: 50Gi, images: 5Gi}]}")
    await stage.passes(1)
    found, _ = await summary(stage)
    assert found["memory"]["workingSetBytes"] == 2 * GI
    assert found["fs"]["usedBytes"] == 55 * GI
    await stage.say(NODES, "n", "{stages: [{memory: 20Gi, disk: 500Gi}]}")
    await stage.passes(1)
    found, _ = await summary(stage)
    assert found["memory"]["availableBytes"] == found["fs"]["availableBytes"] == 0


async def test_images_may_have_their_own_disk(stage: KubeletStage) -> None:
    await stage.say(NODES, "n", "{imageDisk: 20Gi}")
    await stage.run(pod("p", script="{stages: [{disk: 3Gi, logs: 1Gi}]}"), seconds=5)
    found, _ = await summary(stage)
    assert found["fs"]["usedBytes"] == 3 * GI  # its own, and logs
    assert found["runtime"]["imageFs"]["usedBytes"] == 4 * GI  # images, and layers
    assert found["runtime"]["imageFs"]["capacityBytes"] == 20 * GI


async def test_the_short_form_leaves_disks_out(stage: KubeletStage) -> None:
    await stage.run(pod("p"), seconds=5)
    whole, pods = await summary(stage)
    query = (("only_cpu_and_memory", "true"),)
    request = Request("GET", "/api/v1/nodes/n/proxy/stats/summary", query)
    found = orjson.loads((await stage.cluster.local_transport().request(request)).body)
    assert set(whole) - set(found["node"]) == {"fs", "runtime", "rlimit"}
    left_out = set(pods["p"]) - set(found["pods"][0])
    assert left_out == {"volume", "ephemeral-storage", "process_stats"}
    assert set(found["pods"][0]["containers"][0]) == {"name", "startTime", "cpu", "memory"}


async def test_a_pod_that_exceeds_its_memory_is_killed(stage: KubeletStage) -> None:
    container = container_json("c", resources={"limits": {"memory": "100Mi"}})
    script = "{stages: [{after: 5s, memory: 200Mi, over: 10s}]}"
    await stage.run(pod("p", script=script, containers=[container]), seconds=12)
    [status] = (await stage.status("p"))["containerStatuses"]
    assert status["restartCount"] == 1
    assert status["lastState"]["terminated"]["reason"] == "OOMKilled"
    assert (await stage.find(PODS, "p")) is not None
