"""Kubelets of clusters in a process, from the command line, and in a fork."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from extender.kube.rest.resources import NODES
from fakeapi import FakeCluster, VirtualCluster
from fakeapi.testing.process_cluster import ProcessError
from tests.builders import manifest
from tests.commands import reprieve
from tests.fakeapi.controlplane.kubelet.conftest import SetKubelets
from tests.fakeapi.controlplane.kubelet.stages import node, pod

SCRIPT: Final = """
register: [{name: "node-{}", count: 2}]
pods:
- {match: {names: [job]}, stages: [{after: 2s, exit: 0}]}
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.yaml"
    path.write_text(SCRIPT)
    return path


def phases(cluster: Any) -> dict[str, str]:
    *_, last = cluster.history("pods").states()
    return {each["metadata"]["name"]: each["status"]["phase"] for each in last}


DEPLOYMENT: Final = {
    **manifest("Deployment", "web"),
    "apiVersion": "apps/v1",
    "spec": {
        "replicas": 20,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "nginx"}]},
        },
    },
}
PODS: Final = (pod("job", "node-0", restartPolicy="Never"), pod("web", "node-1"))


def test_a_cluster_in_a_process_has_kubelets(script: Path) -> None:
    with FakeCluster.as_process(run="kubelet", kubelet=script) as cluster:
        cluster.load(PODS)
        cluster.advance(10)
        assert phases(cluster) == {"job": "Succeeded", "web": "Running"}


def test_an_invalid_script_starts_no_process(tmp_path: Path) -> None:
    wrong = tmp_path / "script.yaml"
    wrong.write_text("pods: [{stages: [{exit: soon}]}]")
    with pytest.raises(ProcessError):
        FakeCluster.as_process(run="kubelet", kubelet=wrong).__enter__()


def test_a_number_of_nodes_is_registered_beside_those_of_the_script(script: Path) -> None:
    with FakeCluster.as_process(run="kubelet", kubelet=script, nodes=3) as cluster:
        cluster.load(PODS)
        cluster.advance(10)
        sizes = {
            node["metadata"]["name"]: node["status"]["allocatable"]["cpu"]
            for node in cluster.list("nodes")
        }
        assert sizes == {"node-0": "16", "node-1": "16", "node-2": "8"}


@pytest.mark.parametrize("form", [FakeCluster, VirtualCluster])
def test_a_number_of_nodes_needs_kubelets(form: type[FakeCluster]) -> None:
    with pytest.raises(ValueError, match="nodes: no kubelets in run; expected 'kubelet' in it"):
        form(nodes=1)
    with pytest.raises(ValueError, match="nodes: -1; expected 0 to 100000"):
        form(nodes=-1, run="kubelet")


@pytest.mark.fake_cluster(run="all", nodes=2)
async def test_a_deployment_runs_on_the_nodes(virtual_cluster: VirtualCluster) -> None:
    await virtual_cluster.apply(DEPLOYMENT)
    goal = "jsonpath={.status.readyReplicas}=20"
    await virtual_cluster.wait_for("deploy", "web", goal, timeout=60)
    found = await virtual_cluster.list("pods")
    assert {each["spec"]["nodeName"] for each in found} == {"node-0", "node-1"}


async def test_a_fork_has_the_same_script() -> None:
    async with VirtualCluster(run="kubelet", kubelet=SCRIPT) as cluster:
        await cluster.clock.advance(1)
        async with cluster.fork() as fork:
            fork.load(PODS)
            await fork.clock.advance(10)
            assert phases(fork) == {"job": "Succeeded", "web": "Running"}


async def test_a_loaded_cluster_is_not_written_again() -> None:
    async with VirtualCluster(run="kubelet", kubelet=SCRIPT) as first:
        first.load(PODS)
        await first.clock.advance(10)
        exported = first.export()
    kept = [each for each in exported if each["kind"] != "Event"]
    async with VirtualCluster(run="kubelet", kubelet=SCRIPT) as second:
        await second.clock.advance(10)  # to the time of the export
        second.load(kept)
        await second.clock.advance(10)
        assert [each.type for each in second.history("pods")] == ["ADDED", "ADDED"]
        reasons = {each["reason"] for each in second.export() if each["kind"] == "Event"}
    assert reasons <= {"Starting", "NodeReady"}


async def test_a_loaded_pod_without_a_status_of_a_kubelet_gets_one() -> None:
    async with VirtualCluster(run="kubelet", kubelet=SCRIPT) as cluster:
        cluster.load([{**pod("web", "node-1"), "status": {"phase": "Running"}}])
        await cluster.clock.advance(10)
        *_, [last] = cluster.history("pods").states()
        assert last["status"]["containerStatuses"][0]["ready"]


async def test_a_restored_cluster_continues(kubelets: SetKubelets) -> None:
    stage = await kubelets(node("n"), pod("p0"), pod("p1"))
    saved = stage.cluster.snapshot()
    await stage.passes(0.5)
    starting = stage.cluster.snapshot()
    await stage.passes(10)
    await stage.delete_pod("p0")
    for moment in (starting, saved):
        stage.cluster.restore(moment)
        assert await stage.phases(after=10) == {"p0": "Running*", "p1": "Running*"}
        assert (await stage.conditions("n"))["Ready"] == "True"
        found = await stage.get(NODES, "n")
        assert found["status"]["capacity"]["pods"] == "110"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "error"),
    [
        (None, "--kubelet: script.yaml: No such file or directory"),
        ("pods: [{stages: [{exit: soon}]}]", "--kubelet: script.yaml: pods[0].stages[0].exit: "),
        ("pods: [", "--kubelet: script.yaml: "),
        ("nodes: [{stages: [{silent: 5}]}]", "--kubelet: script.yaml: nodes[0].stages[0].silent: "),
        ("podz: []", "--kubelet: script.yaml: "),
    ],
    ids=["missing", "a wrong value", "no YAML", "a wrong type", "an unknown field"],
)
async def test_a_script_error_is_one_line(tmp_path: Path, text: str | None, error: str) -> None:
    path = tmp_path / "script.yaml"
    if text is not None:
        path.write_text(text)
    done = await reprieve("fakeapi", "--port", "0", "--run", "kubelet", "--kubelet", str(path))
    assert (done.code, done.out) == (2, "")
    [line] = done.err.splitlines()
    assert error in line.replace(f"{tmp_path}/", "")


@pytest.mark.slow
async def test_a_script_without_kubelets_is_refused(script: Path) -> None:
    done = await reprieve("fakeapi", "--port", "0", "--kubelet", str(script))
    assert done.code == 2
    expected = (
        "no kubelets in --run gc,namespaces,resourcequota; expected 'kubelet' in it, or 'all'"
    )
    assert done.err == f"reprieve: --kubelet: {expected}\n"
    done = await reprieve("fakeapi", "--port", "0", "--nodes", "3")
    assert (done.code, done.err) == (2, f"reprieve: --nodes: {expected}\n")
