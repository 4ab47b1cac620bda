"""Pods: they are admitted, run by scripts, and terminate, as clients of the API server see it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from extender.kube.rest.resources import NODES, PODS
from fakeapi import FakeCluster
from tests.fakeapi.clients.kubectl import kubectl_for
from tests.fakeapi.controlplane.kubelet.conftest import SetKubelets
from tests.fakeapi.controlplane.kubelet.stages import KubeletStage, asking, node, pod

FOREVER = 3600


async def test_a_pod_starts_and_is_ready(stage: KubeletStage) -> None:
    await stage.run(pod("p"), seconds=0.5)
    waiting = await stage.status("p")
    await stage.passes(1)
    running = await stage.status("p")
    assert (waiting["phase"], running["phase"]) == ("Pending", "Running")
    assert waiting["qosClass"] == running["qosClass"] == "BestEffort"
    assert running["podIP"] == "10.0.0.2"
    assert running["containerStatuses"][0]["state"] == {
        "running": {"startedAt": "2026-01-01T00:00:02Z"}
    }
    types = [each["type"] for each in running["conditions"]]
    assert types == [
        *("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    reasons = [reason for reason, name, _ in await stage.list_events() if name == "p"]
    assert reasons == ["Pulled", "Created", "Started"]


async def test_a_pod_has_two_writes_until_it_runs_and_then_none(stage: KubeletStage) -> None:
    await stage.run(pod("p"))
    await stage.passes(FOREVER)
    assert len(list(stage.cluster.history("pods", "default", "p"))) == 3


async def test_addresses_are_unique(stage: KubeletStage) -> None:
    stage.load(node("m"))
    await stage.run(*(pod(f"p{i}", "nm"[i % 2]) for i in range(20)))
    await stage.run(pod("host", hostNetwork=True), seconds=5)
    addresses = {(await stage.status(f"p{i}"))["podIP"] for i in range(20)}
    assert len(addresses) == 20
    host = await stage.status("host")
    assert host["podIP"] == host["hostIP"]


async def test_jobs_terminate(stage: KubeletStage) -> None:
    await stage.run(
        pod("good", script="{stages: [{after: 10s, exit: 0}]}", restartPolicy="Never"),
        pod("bad", script="{stages: [{after: 10s, exit: 3}]}", restartPolicy="Never"),
        pod("late", restartPolicy="Never", activeDeadlineSeconds=10),
    )
    assert await stage.phases(after=15) == {"good": "Succeeded", "bad": "Failed", "late": "Failed"}
    late = await stage.status("late")
    assert late["reason"] == "DeadlineExceeded"
    assert late["message"] == "Pod was active on the node longer than the specified deadline"
    await stage.delete_pod("good")
    assert "good" not in await stage.phases()


async def test_a_crash_loop_is_reported_by_events(stage: KubeletStage) -> None:
    await stage.run(pod("p", script="{stages: [{after: 1s, exit: 1}]}"), seconds=5)
    [container] = (await stage.status("p"))["containerStatuses"]
    assert container["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert container["lastState"]["terminated"]["exitCode"] == 1
    events = [
        (reason, message) for reason, name, message in await stage.list_events() if name == "p"
    ]
    uid = (await stage.pod("p"))["metadata"]["uid"]
    back_off = f"Back-off restarting failed container c in pod p_default({uid})"
    assert events[-1] == ("BackOff", back_off)


async def test_a_script_can_be_changed_while_it_runs(stage: KubeletStage) -> None:
    await stage.run(pod("p"), seconds=60)
    await stage.say(PODS, "p", "{stages: [{after: 5s, ready: false}, {after: 5s, exit: 1}]}")
    seen = []
    for _ in range(3):
        await stage.passes(4)
        status = await stage.status("p")
        ready = (await stage.phases())["p"].endswith("*")
        seen.append((ready, status["containerStatuses"][0]["restartCount"]))
    assert seen == [(True, 0), (False, 0), (True, 1)]


async def test_scripts_are_found_by_labels(kubelets: SetKubelets) -> None:
    stage = await kubelets(
        kubelet="pods: [{match: {labels: {app: slow}}, start: 30s}, {start: 10s}]"
    )
    stage.load(node("n"))
    slow = pod("slow")
    slow["metadata"]["labels"] = {"app": "slow"}
    await stage.run(slow, pod("other"), pod("own", script="{start: 0}"), seconds=1)
    first = await stage.phases()
    await stage.passes(15)
    second = await stage.phases()
    await stage.passes(20)
    assert (first["own"], first["other"], first["slow"]) == ("Running*", "Pending", "Pending")
    assert (second["other"], second["slow"]) == ("Running*", "Pending")
    assert (await stage.phases())["slow"] == "Running*"


async def test_a_pod_that_does_not_fit_fails(stage: KubeletStage) -> None:
    await stage.run(pod("a", **asking(cpu="3")), pod("b", **asking(cpu="2")), seconds=5)
    assert await stage.phases() == {"a": "Running*", "b": "Failed"}
    status = await stage.status("b")
    assert status == {
        "phase": "Failed",
        "qosClass": "Burstable",
        "reason": "OutOfcpu",
        "message": (
            "Pod was rejected: Node didn't have enough resource: cpu, "
            "requested: 2000, used: 3000, capacity: 4000"
        ),
        "startTime": "2026-01-01T00:00:01Z",
        "observedGeneration": 1,
    }
    [event] = [each for each in await stage.list_events() if each[1] == "b"]
    assert event[0] == "OutOfcpu"


async def test_a_terminated_pod_frees_its_resources(stage: KubeletStage) -> None:
    done = "{stages: [{after: 5s, exit: 0}]}"
    await stage.run(pod("a", script=done, restartPolicy="Never", **asking(cpu="4")), seconds=10)
    await stage.run(pod("b", **asking(cpu="4")), seconds=5)
    assert await stage.phases() == {"a": "Succeeded", "b": "Running*"}


async def test_a_critical_pod_waits_for_its_victims(stage: KubeletStage) -> None:
    await stage.run(pod("a", script="{stop: 10s}", **asking(cpu="3")), seconds=5)
    await stage.run(pod("c", priorityClassName="system-node-critical", **asking(cpu="2")))
    assert await stage.phases(after=5) == {"a": "Running*", "c": "Pending"}
    assert await stage.phases(after=10) == {"a": "Failed", "c": "Running*"}
    status = await stage.status("a")
    assert status["reason"] == "Preempting"
    assert status["message"] == "Preempted in order to admit critical pod"
    [target] = [c for c in status["conditions"] if c["type"] == "DisruptionTarget"]
    assert (target["status"], target["reason"]) == ("True", "TerminationByKubelet")


async def test_a_pod_waits_for_its_node(stage: KubeletStage) -> None:
    await stage.run(pod("p", "later"), seconds=10)
    assert await stage.phases() == {"p": "Pending"}
    stage.load(node("later"))
    assert await stage.phases(after=5) == {"p": "Running*"}


async def test_pods_of_an_earlier_kubelet_continue(kubelets: SetKubelets) -> None:
    stage = await kubelets()
    ran = pod("p", containers=[{"name": "c", "image": "i"}, {"name": "d", "image": "i"}])
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2025-12-31T00:00:00Z"}
    started = {"startedAt": "2025-12-31T00:00:00Z"}
    known = {"name": "c", "image": "i", "imageID": "", "ready": True, "restartCount": 4}
    ran["status"] = {
        "phase": "Running",
        "startTime": "2025-12-31T00:00:00Z",
        "podIP": "10.0.0.3",
        "conditions": [ready],
        "containerStatuses": [{**known, "state": {"running": started}}],
    }
    plain = pod("q")
    plain["status"] = {"phase": "Running", "conditions": [ready]}
    stage.load(node("n"), ran, plain)
    await stage.run(pod("new"), pod("newer"), seconds=5)
    first, second = await stage.status("p"), await stage.status("q")
    assert [each["restartCount"] for each in first["containerStatuses"]] == [4, 0]
    assert first["containerStatuses"][0]["state"] == {"running": started}
    assert first["startTime"] == "2025-12-31T00:00:00Z"
    [since] = [c["lastTransitionTime"] for c in first["conditions"] if c["type"] == "Ready"]
    assert since == "2025-12-31T00:00:00Z"
    assert second["phase"] == "Running"
    addresses = [(await stage.status(name))["podIP"] for name in ("p", "q", "new", "newer")]
    assert addresses[0] == "10.0.0.3"
    assert len(set(addresses)) == 4


async def test_a_final_phase_by_another_client_stays(stage: KubeletStage) -> None:
    await stage.run(pod("p", **asking(cpu="4")), seconds=5)
    await stage.report("p", {"phase": "Failed", "reason": "Odd"})
    await stage.passes(60)
    status = await stage.status("p")
    assert (status["phase"], status["reason"]) == ("Failed", "Odd")
    assert "terminated" in status["containerStatuses"][0]["state"]
    await stage.run(pod("q", **asking(cpu="4")), seconds=5)
    assert (await stage.phases())["q"] == "Running*"


async def test_foreign_writes_of_pod_conditions_are_corrected(stage: KubeletStage) -> None:
    await stage.run(pod("p"), seconds=5)
    await stage.report("p", {"conditions": [{"type": "Ready", "status": "False"}]})
    assert await stage.phases(after=1) == {"p": "Running*"}


async def test_readiness_gates_count(stage: KubeletStage) -> None:
    await stage.run(pod("p", readinessGates=[{"conditionType": "example.com/open"}]), seconds=5)
    assert await stage.phases() == {"p": "Running"}
    await stage.report("p", {"conditions": [{"type": "example.com/open", "status": "True"}]})
    assert await stage.phases(after=1) == {"p": "Running*"}


async def test_events_can_be_left_out(kubelets: SetKubelets) -> None:
    stage = await kubelets(node("n"), kubelet="events: false")
    await stage.run(pod("p"), seconds=5)
    assert await stage.list_events() == []


async def test_a_pod_is_evicted_from_a_silent_node(kubelets: SetKubelets) -> None:
    stage = await kubelets(node("n"), node("m"), run="all", seconds=1)
    brief = {"effect": "NoExecute", "tolerationSeconds": 30, "operator": "Exists"}
    taints = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")
    short = [{"key": key, **brief} for key in taints]
    await stage.run(pod("p", serviceAccountName="default", tolerations=short), seconds=30)
    await stage.say(NODES, "n", "{stages: [{silent: true}]}")
    await stage.passes(120)
    gone = await stage.pod("p")
    assert "deletionTimestamp" in gone["metadata"]  # no kubelet is there to delete it
    await stage.say(NODES, "n", "{}")
    assert await stage.phases(after=15) == {}


@pytest.mark.slow
async def test_kubectl_waits_for_pods_and_deletes_them(tmp_path: Path) -> None:
    script = "{pods: [{match: {names: [job]}, stages: [{after: 1s, exit: 0}]}]}"
    async with FakeCluster(run="kubelet", kubelet=script) as cluster:
        kubectl = kubectl_for(cluster, tmp_path)
        cluster.load([node("n"), pod("web"), pod("job", restartPolicy="Never")])
        waited = await asyncio.gather(
            kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=20s"),
            kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/job", "--timeout=20s"),
        )
        assert [code for code, _ in waited] == [0, 0], waited
        _, listed = await kubectl("get", "pods", "-o", "wide", "--no-headers")
        rows = [line.split() for line in listed.splitlines()]
        assert [row[:4] + row[5:7] for row in rows] == [
            ["job", "0/1", "Completed", "0", "10.0.0.2", "n"],
            ["web", "1/1", "Running", "0", "10.0.0.3", "n"],
        ]
        deleted = await kubectl("delete", "pod", "web", "--timeout=20s")
        assert deleted == (0, 'pod "web" deleted from default namespace\n')
        assert await kubectl("get", "--raw", "/api/v1/nodes/n/proxy/healthz") == (0, "ok")
