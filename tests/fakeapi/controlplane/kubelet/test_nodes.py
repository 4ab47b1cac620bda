"""Nodes: they register, send heartbeats, stop, recover, and change their kubelet."""

from __future__ import annotations

import pytest

from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.resources import LEASES, NODES, PODS
from tests.builders import manifest
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
FINE = {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True"}
SIMULATED = "kubelet.fakeapi/simulated"
SILENT = "{stages: [{silent: true}]}"


async def test_nodes_register_themselves(kubelets: SetKubelets) -> None:
    stage = await kubelets(kubelet=REGISTER)
    assert await stage.names(NODES, after=1) == ["node-0", "node-1", "node-2"]
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


async def test_existing_nodes_have_kubelets(kubelets: SetKubelets) -> None:
    stage = await kubelets(node("old", cpu="2"), node("node-1", cpu="3"), kubelet=REGISTER)
    await stage.passes(1)
    old, mine = await stage.get(NODES, "old"), await stage.get(NODES, "node-1")
    assert (old["status"]["capacity"]["cpu"], old["status"]["capacity"]["pods"]) == ("2", "110")
    assert mine["status"]["capacity"]["cpu"] == "3"
    assert await stage.conditions("old") == FINE


async def test_a_node_with_a_real_kubelet_is_not_simulated(kubelets: SetKubelets) -> None:
    stage = await kubelets()
    stage.load(manifest("Node", "own", metadata={"annotations": {SIMULATED: "false"}}))
    await stage.run(pod("p", "own"), seconds=60)
    assert await stage.find(LEASES, "own", "kube-node-lease") is None
    assert await stage.phases() == {"p": "Pending"}


async def test_a_lease_is_renewed_every_ten_seconds(kubelets: SetKubelets) -> None:
    stage = await kubelets(node("n"), seconds=1)
    lease = await stage.get(LEASES, "n", "kube-node-lease")
    owner = await stage.get(NODES, "n")
    assert lease["spec"]["holderIdentity"] == "n"
    assert lease["spec"]["leaseDurationSeconds"] == 40
    [reference] = lease["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["uid"]) == ("Node", owner["metadata"]["uid"])
    await stage.passes(600)
    leases = [change.object for change in stage.cluster.history("leases")]
    times = [each["spec"]["renewTime"] for each in leases]
    assert len(times) == 61
    assert len({time[18:] for time in times[1:]}) == 1  # always at the same second


async def test_a_lease_that_other_clients_change_is_renewed(kubelets: SetKubelets) -> None:
    stage = await kubelets(node("n"), seconds=15)
    await stage.patch(LEASES, "n", {"metadata": {"labels": {"a": "b"}}}, "kube-node-lease")
    await stage.passes(10)
    lease = await stage.get(LEASES, "n", "kube-node-lease")
    assert lease["metadata"]["labels"] == {"a": "b"}
    assert lease["spec"]["renewTime"] > "2026-01-01T00:00:15"
    await stage.delete(LEASES, "n", namespace="kube-node-lease")
    await stage.passes(10)
    assert await stage.renewed("n") > "2026-01-01T00:00:25"


async def test_an_existing_lease_is_renewed(kubelets: SetKubelets) -> None:
    stage = await kubelets()
    for name, spec in (("n", {"renewTime": "2020-01-01T00:00:00.000000Z"}), ("m", {})):
        stage.load(node(name), manifest("Lease", name, namespace="kube-node-lease", spec=spec))
    await stage.passes(1)
    assert await stage.renewed("n") == "2026-01-01T00:00:00.000000Z"
    assert await stage.renewed("m") == "2026-01-01T00:00:00.000000Z"


async def test_a_status_is_written_every_five_minutes(kubelets: SetKubelets) -> None:
    stage = await kubelets(node("n"), seconds=1501)
    beats = [
        {c["lastHeartbeatTime"] for c in change.object["status"].get("conditions", ())}
        for change in stage.cluster.history("nodes")
    ]
    assert [len(each) for each in beats] == [0, 1, 1, 1, 1, 1, 1]
    assert len({each.pop()[-3:] for each in beats[2:]}) == 1
    written = await stage.get(NODES, "n")
    since = {c["lastTransitionTime"] for c in written["status"]["conditions"]}
    assert since == {"2026-01-01T00:00:00Z"}


async def test_a_paused_component_silences_all_nodes(kubelets: SetKubelets) -> None:
    stage = await kubelets(kubelet=REGISTER, run="kubelet,nodelifecycle")
    await stage.passes(30)
    stage.cluster.control_plane["kubelet"].pause()
    await stage.passes(120)
    assert set((await stage.conditions("node-0")).values()) == {"Unknown"}
    stage.cluster.control_plane["kubelet"].resume()
    await stage.passes(15)
    assert await stage.conditions("node-0") == FINE


async def test_a_script_silences_a_node_for_a_while(kubelets: SetKubelets) -> None:
    stages = [{"after": "60s", "silent": True}, {"after": "120s", "silent": False}]
    script = {"nodes": [{"match": {"names": ["n"]}, "stages": stages}]}
    stage = await kubelets(node("n"), node("m"), kubelet=script, run="kubelet,nodelifecycle")
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
async def test_changes_during_a_silence_are_not_lost(kubelets: SetKubelets, steps: int) -> None:
    stage = await kubelets(node("n"), seconds=1)
    component = stage.cluster.control_plane["kubelet"]
    component.pause()
    await stage.run(pod("p"))
    await stage.say(NODES, "n", SILENT)
    await stage.passes(0)
    for _ in range(steps):
        await component.step()
    await stage.patch(NODES, "n", {"metadata": {"annotations": {SCRIPT: None}}})
    await stage.passes(0)
    component.resume()
    assert await stage.phases(after=5) == {"p": "Running*"}


async def test_an_annotation_silences_a_node_and_ends_its_silence(kubelets: SetKubelets) -> None:
    stage = await kubelets(node("n"), seconds=15)
    await stage.say(NODES, "n", SILENT)
    await stage.run(pod("p"), seconds=60)
    assert await stage.renewed("n") < "2026-01-01T00:00:16"
    assert await stage.phases() == {"p": "Pending"}
    await stage.patch(NODES, "n", {"metadata": {"annotations": {SCRIPT: None}}})
    await stage.passes(12)
    assert await stage.renewed("n") > "2026-01-01T00:01:15"
    assert await stage.phases() == {"p": "Running*"}


async def test_a_node_reports_that_it_is_not_ready(kubelets: SetKubelets) -> None:
    stage = await kubelets(node("n"), seconds=5)
    await stage.say(NODES, "n", "{stages: [{after: 5s, ready: false}, {after: 5s, ready: true}]}")
    seen = []
    for _ in range(3):
        await stage.passes(4)
        seen.append((await stage.conditions("n"))["Ready"])
    assert seen == ["True", "False", "True"]
    assert ("NodeNotReady", "n", "Node n status is now: NodeNotReady") in await stage.list_events()


async def test_foreign_writes_of_node_conditions_are_corrected(kubelets: SetKubelets) -> None:
    stage = await kubelets(node("n"), seconds=5)
    unknown = {"type": "Ready", "status": "Unknown"}
    await stage.patch(NODES, "n", {"status": {"conditions": [unknown]}})
    await stage.passes(1)
    assert (await stage.conditions("n"))["Ready"] == "True"


async def test_a_deleted_node_has_no_kubelet_until_it_is_recreated(kubelets: SetKubelets) -> None:
    stage = await kubelets(node("n"), run="kubelet,gc")
    await stage.run(pod("p"), seconds=5)
    await stage.delete(NODES, "n")
    await stage.passes(60)
    assert await stage.find(LEASES, "n", "kube-node-lease") is None
    await stage.delete(PODS, "p")
    assert await stage.phases(after=60) == {"p": "Running*"}  # no kubelet is there to end it
    stage.load(node("n"))
    assert await stage.phases(after=5) == {}
    assert await stage.renewed("n") > "2026-01-01T00:02"


async def test_an_invalid_script_is_reported_by_an_event(kubelets: SetKubelets) -> None:
    stage = await kubelets(node("n"))
    await stage.run(pod("p", script="{start: soon}"))
    await stage.say(NODES, "n", "{stagez: []}")
    await stage.passes(5)
    events = await stage.list_events()
    assert [each[1:] for each in events if each[0] == "InvalidScript"] == [
        ("n", "(the document): object contains unknown field stagez"),
        ("p", "start: expected a duration such as 1m30s, got 'soon'"),
    ]
    assert await stage.phases() == {"p": "Running*"}


async def test_nodes_answer_through_the_proxy(kubelets: SetKubelets) -> None:
    stage = await kubelets(node("n"), node("m"))
    await stage.run(pod("p"), seconds=5)
    assert await stage.asked("n", "healthz") == "ok"
    assert (await stage.asked("n", "stats/summary"))["node"]["nodeName"] == "n"
    assert (await stage.asked("n", "configz"))["kubeletconfig"]["maxPods"] == 110
    metrics = await stage.asked("n", "metrics/resource")
    assert 'pod_memory_working_set_bytes{namespace="default",pod="p"}' in metrics
    for path in ("nothing", ""):
        with pytest.raises(ApiError) as error:
            await stage.asked("n", path)
        assert error.value.status == 404
    with pytest.raises(ApiError, match='nodes "x" not found'):
        await stage.asked("x", "healthz")
    await stage.say(NODES, "m", SILENT)
    await stage.passes(1)
    with pytest.raises(ApiError, match="connection refused") as refused:
        await stage.asked("m", "healthz")
    assert refused.value.status == 503


async def test_without_kubelets_the_proxy_answers_404(kubelets: SetKubelets) -> None:
    stage = await kubelets(node("n"), run="none")
    with pytest.raises(ApiError) as error:
        await stage.asked("n", "stats/summary")
    assert error.value.status == 404


async def test_restarted_kubelets_continue(kubelets: SetKubelets) -> None:
    stage = await kubelets(kubelet=REGISTER)
    await stage.run(pod("p", "node-0"), seconds=5)
    before = await stage.pod("p")
    component = stage.cluster.control_plane["kubelet"]
    await component.stop()
    await stage.passes(60)
    component.start()
    await stage.passes(15)
    after = await stage.pod("p")
    assert after["status"] == before["status"]
    assert await stage.renewed("node-0") > "2026-01-01T00:01:05"


async def test_forks_have_kubelets_of_their_own(kubelets: SetKubelets) -> None:
    stage = await kubelets(kubelet=REGISTER)
    await stage.run(pod("p", "node-0", script="{stages: [{after: 60s, exit: 0}]}"), seconds=30)
    async with stage.cluster.fork() as cluster:
        forked = KubeletStage(cluster)  # type: ignore[arg-type]
        await forked.passes(45)
        [container] = (await forked.status("p"))["containerStatuses"]
        assert container["restartCount"] == 1
        assert container["lastState"]["terminated"]["finishedAt"] == "2026-01-01T00:01:01Z"
    assert (await stage.status("p"))["containerStatuses"][0]["restartCount"] == 0


async def test_restarted_kubelets_assign_no_address_twice(kubelets: SetKubelets) -> None:
    stage = await kubelets(node("a"), node("b"))
    await stage.run(pod("p", "a"), pod("q", "b"), seconds=5)
    component = stage.cluster.control_plane["kubelet"]
    await component.stop()
    await stage.delete(NODES, "a")
    stage.load(node("a"), node("c"))
    await stage.run(pod("r", "c"), pod("s", "b"))
    component.start()
    await stage.passes(5)
    taken = [(await stage.status(name))["podIP"] for name in "pqrs"]
    assert len(set(taken)) == 4, taken
    nodes = [await stage.get(NODES, name) for name in "abc"]
    taken = [each["status"]["addresses"][0]["address"] for each in nodes]
    assert len(set(taken)) == 3, taken


async def test_a_terminated_pod_keeps_its_address(stage: KubeletStage) -> None:
    await stage.run(pod("p", script="{stages: [{after: 5s, exit: 0}]}", restartPolicy="Never"))
    await stage.passes(10)
    address = (await stage.status("p"))["podIP"]
    await stage.patch(PODS, "p", {"metadata": {"labels": {"a": "b"}}})
    await stage.passes(5)
    assert (await stage.status("p"))["podIP"] == address


async def test_a_node_changes_to_a_real_kubelet_and_back(stage: KubeletStage) -> None:
    await stage.run(pod("p", script="{stages: [{after: 30s, exit: 1}]}", restartPolicy="Never"))
    await stage.passes(10)
    await stage.patch(NODES, "n", {"metadata": {"annotations": {SIMULATED: "false"}}})
    await stage.passes(60)
    renewed = await stage.renewed("n")
    assert await stage.phases() == {"p": "Running*"}
    await stage.passes(60)
    assert await stage.renewed("n") == renewed
    await stage.patch(NODES, "n", {"metadata": {"annotations": None}})
    await stage.passes(60)
    assert await stage.renewed("n") > renewed
    assert await stage.phases() == {"p": "Failed"}
