"""Pods that are deleted: they stop, are removed, and leave nothing behind."""

from __future__ import annotations

import pytest

from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.resources import PODS
from tests.fakeapi.controlplane.kubelet.stages import KubeletStage, asking, pod


async def history(stage: KubeletStage, name: str) -> list[str]:
    """Return a pod's phases and its deletion, in the order of the writes."""
    told: list[str] = []
    for change in stage.cluster.history("pods", "default", name):
        marks = "!" if "deletionTimestamp" in change.object["metadata"] else ""
        line = f"{change.type} {change.object['status']['phase']}{marks}"
        told += [line] if not told or told[-1] != line else []
    return told


async def test_a_deleted_pod_is_removed_once_it_has_stopped(stage: KubeletStage) -> None:
    await stage.run(pod("p", script="{stop: 5s}"))
    await stage.passes(5)
    await stage.tell_to_go("p")
    await stage.passes(4)
    assert await stage.phases() == {"p": "Running*"}
    await stage.passes(2)
    assert await stage.phases() == {}
    assert await history(stage, "p") == [
        *("ADDED Pending", "MODIFIED Pending", "MODIFIED Running", "MODIFIED Running!"),
        *("MODIFIED Succeeded!", "DELETED Succeeded!"),
    ]


async def test_a_pod_that_does_not_stop_is_killed(stage: KubeletStage) -> None:
    await stage.run(pod("p", script="{stop: 100s}", terminationGracePeriodSeconds=20))
    await stage.passes(5)
    await stage.tell_to_go("p")
    await stage.passes(19)
    assert await stage.phases() == {"p": "Running*"}
    await stage.passes(2)
    [*_, last] = stage.cluster.history("pods", "default", "p")
    told = last.object["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (last.type, told["exitCode"], told["reason"]) == ("DELETED", 137, "Error")


async def test_a_second_delete_may_shorten_the_time(stage: KubeletStage) -> None:
    await stage.run(pod("p", script="{stop: 100s}"))
    await stage.passes(5)
    await stage.tell_to_go("p")
    await stage.passes(2)
    await stage.tell_to_go("p", 5)
    await stage.passes(6)
    assert await stage.phases() == {}


async def test_a_pod_that_is_deleted_by_force_leaves_nothing_behind(stage: KubeletStage) -> None:
    await stage.run(pod("p", **asking(cpu="4")))
    await stage.passes(5)
    await stage.tell_to_go("p", 0)
    assert await stage.phases() == {}
    await stage.run(pod("p", **asking(cpu="4")))
    await stage.passes(5)
    assert await stage.phases() == {"p": "Running*"}


async def test_a_namesake_is_another_pod(stage: KubeletStage) -> None:
    await stage.run(pod("p", script="{stages: [{after: 10s, exit: 1}]}"))
    await stage.passes(9)
    await stage.tell_to_go("p", 0)
    await stage.run(pod("p"))
    await stage.passes(60)
    status = await stage.status("p")
    assert (status["phase"], status["containerStatuses"][0]["restartCount"]) == ("Running", 0)


async def test_finalizers_hold_a_pod_that_has_stopped(stage: KubeletStage) -> None:
    await stage.run(pod("p", finalizers=["example.com/hold"], **asking(cpu="4")))
    await stage.passes(5)
    await stage.tell_to_go("p")
    await stage.passes(60)
    held = await stage.pod("p")
    assert held["metadata"]["deletionGracePeriodSeconds"] == 0
    assert held["status"]["phase"] == "Succeeded"
    await stage.run(pod("q", **asking(cpu="4")))  # what it took is free again
    await stage.passes(5)
    assert (await stage.phases())["q"] == "Running*"
    await stage.patch(PODS, "p", {"metadata": {"finalizers": None}})
    assert "p" not in await stage.phases()


async def test_a_second_is_the_least_that_a_pod_is_given(stage: KubeletStage) -> None:
    held = pod("p", script="{stop: 100s}", finalizers=["example.com/hold"])
    await stage.run(held)
    await stage.passes(5)
    await stage.tell_to_go("p", 0)
    await stage.passes(0.9)
    assert await stage.phases() == {"p": "Running*"}
    await stage.passes(0.2)
    assert await stage.phases() == {"p": "Failed"}


async def test_a_pod_deleted_before_it_starts(stage: KubeletStage) -> None:
    await stage.run(pod("p", script="{start: 60s}", finalizers=["example.com/hold"]))
    await stage.passes(5)
    await stage.tell_to_go("p")
    await stage.passes(5)
    status = await stage.status("p")
    told = status["containerStatuses"][0]["state"]["terminated"]
    assert (status["phase"], told["reason"]) == ("Failed", "ContainerStatusUnknown")


async def test_a_pod_that_is_gone_meanwhile_is_no_fault(stage: KubeletStage) -> None:
    await stage.run(pod("p"))
    await stage.passes(5)
    part = stage.cluster.control_plane["kubelet"]
    part.pause()
    await stage.tell_to_go("p", 0)
    await stage.run(pod("p"))
    part.resume()
    await stage.passes(5)
    assert await stage.phases() == {"p": "Running*"}
    with pytest.raises(ApiError):
        await stage.client.get(PODS.object("q", "default"), bytes)
