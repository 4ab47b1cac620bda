"""Kubelets that come after others, and those that give a node away."""

from __future__ import annotations

from extender.kube.rest.resources import NODES, PODS
from tests.fakeapi.controlplane.kubelet.conftest import SetKubelets
from tests.fakeapi.controlplane.kubelet.stages import KubeletStage, node, pod

SIMULATED = "kubelet.fakeapi/simulated"


async def test_restarted_kubelets_assign_no_address_twice(
    kubelets: SetKubelets,
) -> None:
    stage = await kubelets()
    stage.load(node("a"), node("b"))
    await stage.run(pod("p", "a"), pod("q", "b"))
    await stage.passes(5)
    part = stage.cluster.control_plane["kubelet"]
    await part.stop()
    await stage.delete(NODES, "a")
    stage.load(node("a"), node("c"))
    await stage.run(pod("r", "c"), pod("s", "b"))
    part.start()
    await stage.passes(5)
    taken = [(await stage.status(name))["podIP"] for name in "pqrs"]
    assert len(set(taken)) == 4, taken
    nodes = [await stage.get(NODES, name) for name in "abc"]
    taken = [each["status"]["addresses"][0]["address"] for each in nodes]
    assert len(set(taken)) == 3, taken


async def test_a_pod_that_has_ended_keeps_the_address_that_it_had(stage: KubeletStage) -> None:
    await stage.run(pod("p", script="{stages: [{after: 5s, exit: 0}]}", restartPolicy="Never"))
    await stage.passes(10)
    had = (await stage.status("p"))["podIP"]
    await stage.patch(PODS, "p", {"metadata": {"labels": {"a": "b"}}})
    await stage.passes(5)
    assert (await stage.status("p"))["podIP"] == had


async def test_a_node_may_be_given_to_a_kubelet_of_its_own_and_taken_back(
    stage: KubeletStage,
) -> None:
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
