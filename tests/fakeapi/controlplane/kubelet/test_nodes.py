"""Nodes: they register, send heartbeats, stop, and recover."""

from __future__ import annotations

import pytest

from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.resources import LEASES, NODES, PODS
from tests.fakeapi.controlplane.kubelet.conftest import SetKubelets
from tests.fakeapi.controlplane.kubelet.stages import SCRIPT, KubeletStage, node, pod

REGISTER = {
    "register": [
        {
            "name": "node-{}",
            "count": 3,
            "labels": {"topology.kubernetes.io/zone": ["a", "b"]},
            "capacity": {"cpu": "8", "memory": "32Gi"},
            "reserved": {"cpu": "500m", "memory": "1Gi"},
            "taints": [{"key": "new", "effect": "NoSchedule"}],
        }
    ]
}
FINE = {
    "MemoryPressure": "False",
    "DiskPressure": "False",
    "PIDPressure": "False",
    "Ready": "True",
}
SILENT = "{stages: [{silent: true}]}"


async def test_nodes_register_themselves(kubelets: SetKubelets) -> None:
    stage = await kubelets(kubelet=REGISTER)
    await stage.passes(1)
    assert await stage.names(NODES) == ["node-0", "node-1", "node-2"]
    found = [await stage.get(NODES, f"node-{index}") for index in range(3)]
    zones = [each["metadata"]["labels"]["topology.kubernetes.io/zone"] for each in found]
    assert zones == ["a", "b", "a"]
    first = found[0]
    assert first["spec"]["taints"] == [{"key": "new", "effect": "NoSchedule"}]
    assert first["status"]["capacity"] | {} == {
        "cpu": "8",
        "memory": "32Gi",
        "pods": "110",
        "ephemeral-storage": "100Gi",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
    }
    assert first["status"]["allocatable"]["cpu"] == "7500m"
    assert first["status"]["allocatable"]["memory"] == str(31 * 2**30)
    assert first["status"]["nodeInfo"]["kubeletVersion"] == "v1.37.0"
    addresses = {tuple(a.values()) for each in found if each for a in each["status"]["addresses"]}
    assert len(addresses) == 6
    assert await stage.conditions("node-0") == FINE
    managers = {entry["manager"] for entry in first["metadata"]["managedFields"]}
    assert managers == {"kubelet"}


async def test_nodes_that_are_there_are_taken_on(kubelets: SetKubelets) -> None:
    stage = await kubelets(kubelet=REGISTER)
    stage.load(node("old", cpu="2"), node("node-1", cpu="3"))
    await stage.passes(1)
    old, mine = await stage.get(NODES, "old"), await stage.get(NODES, "node-1")
    assert (old["status"]["capacity"]["cpu"], old["status"]["capacity"]["pods"]) == ("2", "110")
    assert mine["status"]["capacity"]["cpu"] == "3"
    assert await stage.conditions("old") == FINE


async def test_a_node_may_have_a_kubelet_of_its_own(kubelets: SetKubelets) -> None:
    stage = await kubelets()
    own = node("own")
    own["metadata"]["annotations"] = {"kubelet.fakeapi/simulated": "false"}
    stage.load(own)
    await stage.run(pod("p", "own"))
    await stage.passes(60)
    assert await stage.find(LEASES, "own", "kube-node-lease") is None
    assert await stage.phases() == {"p": "Pending"}


async def test_a_lease_is_renewed_every_ten_seconds(kubelets: SetKubelets) -> None:
    stage = await kubelets()
    stage.load(node("n"))
    await stage.passes(1)
    lease = await stage.get(LEASES, "n", "kube-node-lease")
    owner = await stage.get(NODES, "n")
    assert lease["spec"]["holderIdentity"] == "n"
    assert lease["spec"]["leaseDurationSeconds"] == 40
    [reference] = lease["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["uid"]) == ("Node", owner["metadata"]["uid"])
    await stage.passes(600)
    times = [
        each["spec"]["renewTime"]
        for change in stage.cluster.history("leases")
        if (each := change.object)
    ]
    assert len(times) == 61
    assert len({time[18:] for time in times[1:]}) == 1  # always at the same second


async def test_a_lease_that_others_meddle_with_is_renewed_all_the_same(
    kubelets: SetKubelets,
) -> None:
    stage = await kubelets()
    stage.load(node("n"))
    await stage.passes(15)
    await stage.patch(LEASES, "n", {"metadata": {"labels": {"a": "b"}}}, "kube-node-lease")
    await stage.passes(10)
    lease = await stage.get(LEASES, "n", "kube-node-lease")
    assert lease["metadata"]["labels"] == {"a": "b"}
    assert lease["spec"]["renewTime"] > "2026-01-01T00:00:15"
    await stage.delete(LEASES, "n", namespace="kube-node-lease")
    await stage.passes(10)
    assert await stage.renewed("n") > "2026-01-01T00:00:25"


async def test_a_lease_that_was_there_before_is_taken_over(kubelets: SetKubelets) -> None:
    stage = await kubelets()
    metadata = {"name": "n", "namespace": "kube-node-lease"}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
    stage.load(node("n"), {**lease, "spec": {"renewTime": "2020-01-01T00:00:00.000000Z"}})
    stage.load(node("m"), {**lease, "metadata": {**metadata, "name": "m"}, "spec": {}})
    await stage.passes(1)
    assert await stage.renewed("n") == "2026-01-01T00:00:00.000000Z"
    assert await stage.renewed("m") == "2026-01-01T00:00:00.000000Z"


async def test_a_status_is_written_every_five_minutes(kubelets: SetKubelets) -> None:
    stage = await kubelets()
    stage.load(node("n"))
    await stage.passes(1501)
    beats = [
        {c["lastHeartbeatTime"] for c in change.object["status"].get("conditions", ())}
        for change in stage.cluster.history("nodes")
    ]
    assert [len(each) for each in beats] == [0, 1, 1, 1, 1, 1, 1]
    assert len({each.pop()[-3:] for each in beats[2:]}) == 1
    told = await stage.get(NODES, "n")
    since = {c["lastTransitionTime"] for c in told["status"]["conditions"]}
    assert since == {"2026-01-01T00:00:00Z"}


async def test_a_paused_part_lets_all_nodes_fall_silent(kubelets: SetKubelets) -> None:
    stage = await kubelets(kubelet=REGISTER, run="kubelet,nodelifecycle")
    await stage.passes(30)
    stage.cluster.control_plane["kubelet"].pause()
    await stage.passes(120)
    assert set((await stage.conditions("node-0")).values()) == {"Unknown"}
    stage.cluster.control_plane["kubelet"].resume()
    await stage.passes(15)
    assert await stage.conditions("node-0") == FINE


async def test_a_node_falls_silent_and_comes_back_by_its_script(kubelets: SetKubelets) -> None:
    script = {
        "nodes": [
            {
                "match": {"names": ["n"]},
                "stages": [{"after": "60s", "silent": True}, {"after": "120s", "silent": False}],
            }
        ]
    }
    stage = await kubelets(kubelet=script, run="kubelet,nodelifecycle")
    stage.load(node("n"), node("m"))
    await stage.run(pod("p", "n"))
    seen = []
    for _ in range(4):
        await stage.passes(50)
        ready = (await stage.conditions("n"))["Ready"]
        seen.append((ready, await stage.phases()))
    assert seen == [
        ("True", {"p": "Running*"}),
        ("True", {"p": "Running*"}),
        ("Unknown", {"p": "Running"}),  # set by the node controller
        ("True", {"p": "Running*"}),
    ]
    assert (await stage.conditions("m"))["Ready"] == "True"


@pytest.mark.parametrize("steps", range(1, 5))
async def test_changes_during_a_short_silence_are_caught_up(
    kubelets: SetKubelets, steps: int
) -> None:
    stage = await kubelets()
    stage.load(node("n"))
    await stage.passes(1)
    part = stage.cluster.control_plane["kubelet"]
    part.pause()
    await stage.run(pod("p"))
    await stage.say(NODES, "n", SILENT)
    await stage.passes(0)
    for _ in range(steps):
        await part.step()
    await stage.patch(NODES, "n", {"metadata": {"annotations": {SCRIPT: None}}})
    await stage.passes(0)
    part.resume()
    await stage.passes(5)
    assert await stage.phases() == {"p": "Running*"}


async def test_an_annotation_silences_a_node_and_has_it_speak_again(kubelets: SetKubelets) -> None:
    stage = await kubelets()
    stage.load(node("n"))
    await stage.passes(15)
    await stage.say(NODES, "n", SILENT)
    await stage.run(pod("p"))
    await stage.passes(60)
    assert await stage.renewed("n") < "2026-01-01T00:00:16"
    assert await stage.phases() == {"p": "Pending"}
    await stage.patch(NODES, "n", {"metadata": {"annotations": {SCRIPT: None}}})
    await stage.passes(12)
    assert await stage.renewed("n") > "2026-01-01T00:01:15"
    assert await stage.phases() == {"p": "Running*"}


async def test_a_node_says_that_it_is_not_ready(kubelets: SetKubelets) -> None:
    stage = await kubelets()
    stage.load(node("n"))
    await stage.passes(5)
    await stage.say(NODES, "n", "{stages: [{after: 5s, ready: false}, {after: 5s, ready: true}]}")
    seen = []
    for _ in range(3):
        await stage.passes(4)
        seen.append((await stage.conditions("n"))["Ready"])
    assert seen == ["True", "False", "True"]
    told = [(reason, message) for reason, _, message in await stage.told()]
    assert ("NodeNotReady", "Node n status is now: NodeNotReady") in told


async def test_foreign_writes_of_node_conditions_are_corrected(kubelets: SetKubelets) -> None:
    stage = await kubelets()
    stage.load(node("n"))
    await stage.passes(5)
    wrong = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    await stage.patch(NODES, "n", wrong)
    await stage.passes(1)
    assert (await stage.conditions("n"))["Ready"] == "True"


async def test_a_deleted_node_has_no_kubelet_until_it_is_made_anew(kubelets: SetKubelets) -> None:
    stage = await kubelets(run="kubelet,gc")
    stage.load(node("n"))
    await stage.run(pod("p"))
    await stage.passes(5)
    await stage.delete(NODES, "n")
    await stage.passes(60)
    assert await stage.find(LEASES, "n", "kube-node-lease") is None
    await stage.delete(PODS, "p")
    await stage.passes(60)
    assert await stage.phases() == {"p": "Running*"}  # no kubelet is there to end it
    stage.load(node("n"))
    await stage.passes(5)
    assert await stage.phases() == {}
    assert await stage.renewed("n") > "2026-01-01T00:02"


async def test_an_invalid_script_is_reported_by_an_event(kubelets: SetKubelets) -> None:
    stage = await kubelets()
    stage.load(node("n"))
    await stage.run(pod("p", script="{start: soon}"))
    await stage.say(NODES, "n", "{stagez: []}")
    await stage.passes(5)
    told = [(name, message) for reason, name, message in await stage.told() if "Inv" in reason]
    assert told == [
        ("n", "(the document): object contains unknown field stagez"),
        ("p", "start: expected a duration such as 1m30s, got 'soon'"),
    ]
    assert await stage.phases() == {"p": "Running*"}


async def test_nodes_are_asked_through_the_proxy(kubelets: SetKubelets) -> None:
    stage = await kubelets()
    stage.load(node("n"), node("m"))
    await stage.run(pod("p"))
    await stage.passes(5)
    assert await stage.asked("n", "healthz") == "ok"
    assert (await stage.asked("n", "stats/summary"))["node"]["nodeName"] == "n"
    assert (await stage.asked("n", "configz"))["kubeletconfig"]["maxPods"] == 110
    metrics = await stage.asked("n", "metrics/resource")
    assert 'pod_memory_working_set_bytes{namespace="default",pod="p"}' in metrics
    for path, status in (("nothing", 404), ("", 404)):
        with pytest.raises(ApiError) as error:
            await stage.asked("n", path)
        assert error.value.status == status
    with pytest.raises(ApiError, match='nodes "x" not found'):
        await stage.asked("x", "healthz")
    await stage.say(NODES, "m", SILENT)
    await stage.passes(1)
    with pytest.raises(ApiError, match="connection refused") as refused:
        await stage.asked("m", "healthz")
    assert refused.value.status == 503


async def test_without_kubelets_the_proxy_leads_nowhere(kubelets: SetKubelets) -> None:
    stage = await kubelets(run="none")
    stage.load(node("n"))
    with pytest.raises(ApiError) as error:
        await stage.asked("n", "stats/summary")
    assert error.value.status == 404


async def test_kubelets_that_are_switched_off_and_on_go_on(kubelets: SetKubelets) -> None:
    stage = await kubelets(kubelet=REGISTER)
    await stage.run(pod("p", "node-0"))
    await stage.passes(5)
    before = await stage.pod("p")
    part = stage.cluster.control_plane["kubelet"]
    await part.stop()
    await stage.passes(60)
    part.start()
    await stage.passes(15)
    after = await stage.pod("p")
    assert after["status"] == before["status"]
    assert await stage.renewed("node-0") > "2026-01-01T00:01:05"


async def test_forks_have_kubelets_of_their_own(kubelets: SetKubelets) -> None:
    stage = await kubelets(kubelet=REGISTER)
    await stage.run(pod("p", "node-0", script="{stages: [{after: 60s, exit: 0}]}"))
    await stage.passes(30)
    async with stage.cluster.fork() as cluster:
        forked = KubeletStage(cluster)  # type: ignore[arg-type]
        await forked.passes(45)
        told = (await forked.status("p"))["containerStatuses"][0]
        assert told["restartCount"] == 1
        assert told["lastState"]["terminated"]["finishedAt"] == "2026-01-01T00:01:01Z"
    assert (await stage.status("p"))["containerStatuses"][0]["restartCount"] == 0
