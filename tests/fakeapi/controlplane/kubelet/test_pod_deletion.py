"""Deleted pods: they stop, are removed, and their resources are free."""

from __future__ import annotations

import pytest

from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.resources import PODS
from tests.fakeapi.controlplane.kubelet.stages import KubeletStage, asking, pod


async def history(stage: KubeletStage, name: str) -> list[str]:
    """Return a pod's phases and its deletion, in the order of the writes."""
    lines: list[str] = []
    for change in stage.cluster.history("pods", "default", name):
        marks = "!" if "deletionTimestamp" in change.object["metadata"] else ""
        line = f"{change.type} {change.object['status']['phase']}{marks}"
        lines += [line] if not lines or lines[-1] != line else []
    return lines


async def test_a_deleted_pod_is_removed_once_it_has_stopped(stage: KubeletStage) -> None:
    await stage.run(pod("p", script="{stop: 5s}"), seconds=5)
    await stage.delete_pod("p")
    assert await stage.phases(after=4) == {"p": "Running*"}
    assert await stage.phases(after=2) == {}
    assert await history(stage, "p") == [
        *("ADDED Pending", "MODIFIED Pending", "MODIFIED Running", "MODIFIED Running!"),
        *("MODIFIED Succeeded!", "DELETED Succeeded!"),
    ]


async def test_a_pod_that_does_not_stop_is_killed(stage: KubeletStage) -> None:
    await stage.run(pod("p", script="{stop: 100s}", terminationGracePeriodSeconds=20), seconds=5)
    await stage.delete_pod("p")
    assert await stage.phases(after=19) == {"p": "Running*"}
    await stage.passes(2)
    [*_, last] = stage.cluster.history("pods", "default", "p")
    state = last.object["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (last.type, state["exitCode"], state["reason"]) == ("DELETED", 137, "Error")


async def test_a_second_delete_may_shorten_the_grace_period(stage: KubeletStage) -> None:
    await stage.run(pod("p", script="{stop: 100s}"), seconds=5)
    await stage.delete_pod("p")
    await stage.passes(2)
    await stage.delete_pod("p", 5)
    assert await stage.phases(after=6) == {}


async def test_a_pod_deleted_by_force_frees_its_resources(stage: KubeletStage) -> None:
    await stage.run(pod("p", **asking(cpu="4")), seconds=5)
    await stage.delete_pod("p", 0)
    assert await stage.phases() == {}
    await stage.run(pod("p", **asking(cpu="4")), seconds=5)
    assert await stage.phases() == {"p": "Running*"}


async def test_a_new_pod_of_the_same_name_is_another_one(stage: KubeletStage) -> None:
    await stage.run(pod("p", script="{stages: [{after: 10s, exit: 1}]}"), seconds=9)
    await stage.delete_pod("p", 0)
    await stage.run(pod("p"), seconds=60)
    status = await stage.status("p")
    assert (status["phase"], status["containerStatuses"][0]["restartCount"]) == ("Running", 0)


async def test_finalizers_hold_a_pod_that_has_stopped(stage: KubeletStage) -> None:
    await stage.run(pod("p", finalizers=["example.com/hold"], **asking(cpu="4")), seconds=5)
    await stage.delete_pod("p")
    await stage.passes(60)
    held = await stage.pod("p")
    assert held["metadata"]["deletionGracePeriodSeconds"] == 0
    assert held["status"]["phase"] == "Succeeded"
    await stage.run(pod("q", **asking(cpu="4")))  # its resources are free again
    assert (await stage.phases(after=5))["q"] == "Running*"
    await stage.patch(PODS, "p", {"metadata": {"finalizers": None}})
    assert "p" not in await stage.phases()


async def test_the_least_grace_period_is_a_second(stage: KubeletStage) -> None:
    await stage.run(pod("p", script="{stop: 100s}", finalizers=["example.com/hold"]), seconds=5)
    await stage.delete_pod("p", 0)
    assert await stage.phases(after=0.9) == {"p": "Running*"}
    assert await stage.phases(after=0.2) == {"p": "Failed"}


async def test_a_pod_deleted_before_it_starts(stage: KubeletStage) -> None:
    await stage.run(pod("p", script="{start: 60s}", finalizers=["example.com/hold"]), seconds=5)
    await stage.delete_pod("p")
    await stage.passes(5)
    status = await stage.status("p")
    state = status["containerStatuses"][0]["state"]["terminated"]
    assert (status["phase"], state["reason"]) == ("Failed", "ContainerStatusUnknown")


async def test_a_pod_that_was_deleted_meanwhile_is_no_error(stage: KubeletStage) -> None:
    await stage.run(pod("p"), seconds=5)
    component = stage.cluster.control_plane["kubelet"]
    component.pause()
    await stage.delete_pod("p", 0)
    await stage.run(pod("p"))
    component.resume()
    assert await stage.phases(after=5) == {"p": "Running*"}
    with pytest.raises(ApiError):
        await stage.client.get(PODS.object("q", "default"), bytes)
