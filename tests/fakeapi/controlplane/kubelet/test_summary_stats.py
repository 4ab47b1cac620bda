"""What a node says that it uses."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from extender.kube.rest.resources import NODES, PODS
from extender.kube.rest.transport import Request
from tests.fakeapi.controlplane.kubelet.conftest import SetKubelets
from tests.fakeapi.controlplane.kubelet.stages import KubeletStage, node, pod

MI = 2**20
GI = 2**30


@pytest.fixture
async def stage(kubelets: SetKubelets) -> KubeletStage:
    """Return a stage with a node of 8Gi of memory and a disk of 100Gi."""
    stage = await kubelets()
    size = {"memory": "8Gi", "ephemeral-storage": "100Gi"}
    stage.load(node("n", cpu="4", **size))
    await stage.passes(1)
    return stage


async def summary(stage: KubeletStage) -> tuple[Any, dict[str, Any]]:
    """Return the summary of the node, and those of its pods by name."""
    told = await stage.asked("n", "stats/summary")
    return told["node"], {each["podRef"]["name"]: each for each in told["pods"]}


async def test_an_idle_node(stage: KubeletStage) -> None:
    told, pods = await summary(stage)
    assert pods == {}
    assert told["memory"]["workingSetBytes"] == 256 * MI
    assert told["memory"]["availableBytes"] == 8 * GI - 256 * MI
    assert told["fs"]["capacityBytes"] == 100 * GI
    assert told["fs"]["availableBytes"] == 97 * GI  # two of its own, one of images
    assert told["fs"]["inodes"] == 100 * GI // 16_384
    assert told["rlimit"]["maxpid"] == 32_768
    assert told["runtime"]["imageFs"] == told["fs"]


async def test_pods_have_default_usage_without_a_script(stage: KubeletStage) -> None:
    requests = {"resources": {"requests": {"memory": "1Gi", "cpu": "1"}}}
    await stage.run(pod("asks", containers=[{"name": "c", "image": "i", **requests}]), pod("plain"))
    await stage.passes(5)
    told, pods = await summary(stage)
    assert pods["asks"]["memory"]["workingSetBytes"] == GI // 2
    assert pods["asks"]["cpu"]["usageNanoCores"] == 10**8
    assert pods["plain"]["memory"]["workingSetBytes"] == 16 * MI
    used = GI // 2 + 16 * MI
    assert told["systemContainers"][0]["memory"]["workingSetBytes"] == used
    assert told["systemContainers"][0]["memory"]["availableBytes"] == 8 * GI - used
    assert told["memory"]["workingSetBytes"] == used + 256 * MI


async def test_use_follows_the_script(stage: KubeletStage) -> None:
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
    told, pods = await summary(stage)
    found = pods["p"]
    assert found["ephemeral-storage"]["usedBytes"] == 3 * GI + 10 * MI
    assert found["process_stats"] == {"process_count": 7}
    assert found["cpu"]["usageNanoCores"] == 5 * 10**8
    assert [(v["name"], v["usedBytes"]) for v in found["volume"]] == [("data", 2 * GI)]
    [container] = found["containers"]
    assert container["rootfs"]["usedBytes"] == GI
    assert container["rootfs"]["inodesUsed"] == 500
    assert container["logs"]["usedBytes"] == 10 * MI
    assert told["fs"]["usedBytes"] == 3 * GI + 3 * GI + 10 * MI
    assert told["rlimit"]["curproc"] == 107
    await stage.passes(20)  # it has ended: what it wrote is still there
    _, pods = await summary(stage)
    assert pods["p"]["memory"]["workingSetBytes"] == 0
    assert pods["p"]["containers"][0]["rootfs"]["usedBytes"] == GI


async def test_a_node_uses_what_its_script_says(stage: KubeletStage) -> None:
    await stage.say(NODES, "n", "{stages: [{memory: 2Gi, disk: 50Gi, images: 5Gi}]}")
    await stage.passes(1)
    told, _ = await summary(stage)
    assert told["memory"]["workingSetBytes"] == 2 * GI
    assert told["fs"]["usedBytes"] == 55 * GI
    await stage.say(NODES, "n", "{stages: [{memory: 20Gi, disk: 500Gi}]}")
    await stage.passes(1)
    told, _ = await summary(stage)
    assert told["memory"]["availableBytes"] == told["fs"]["availableBytes"] == 0


async def test_images_may_have_a_disk_of_their_own(stage: KubeletStage) -> None:
    await stage.say(NODES, "n", "{imageDisk: 20Gi}")
    await stage.run(pod("p", script="{stages: [{disk: 3Gi, logs: 1Gi}]}"))
    await stage.passes(5)
    told, _ = await summary(stage)
    assert told["fs"]["usedBytes"] == 3 * GI  # its own, and logs
    assert told["runtime"]["imageFs"]["usedBytes"] == 4 * GI  # images, and layers
    assert told["runtime"]["imageFs"]["capacityBytes"] == 20 * GI


async def test_the_short_form_leaves_disks_out(stage: KubeletStage) -> None:
    await stage.run(pod("p"))
    await stage.passes(5)
    whole, pods = await summary(stage)
    query = (("only_cpu_and_memory", "true"),)
    asked = Request("GET", "/api/v1/nodes/n/proxy/stats/summary", query)
    told = orjson.loads((await stage.cluster.local_transport().request(asked)).body)
    assert set(whole) - set(told["node"]) == {"fs", "runtime", "rlimit"}
    left_out = set(pods["p"]) - set(told["pods"][0])
    assert left_out == {"volume", "ephemeral-storage", "process_stats"}
    assert set(told["pods"][0]["containers"][0]) == {"name", "startTime", "cpu", "memory"}


async def test_a_pod_that_exceeds_its_memory_is_killed(stage: KubeletStage) -> None:
    limits = {"resources": {"limits": {"memory": "100Mi"}}}
    script = "{stages: [{after: 5s, memory: 200Mi, over: 10s}]}"
    await stage.run(pod("p", script=script, containers=[{"name": "c", "image": "i", **limits}]))
    await stage.passes(12)
    [told] = (await stage.status("p"))["containerStatuses"]
    assert told["restartCount"] == 1
    assert told["lastState"]["terminated"]["reason"] == "OOMKilled"
    assert (await stage.find(PODS, "p")) is not None
