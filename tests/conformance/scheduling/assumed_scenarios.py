"""Pods that kube-scheduler has assumed on a node, and a running pod that waits for its resize."""

from __future__ import annotations

from typing import Final

from tests.builders import Document, manifest
from tests.conformance.objects import NAMESPACE
from tests.conformance.scheduling.environment import Environment, SchedulingScenario, Setting
from tests.conformance.scheduling.pods import bound_pod, pending_pod, small_node

RESIZE: Final = ("InPlacePodVerticalScalingSchedulerPreemption",)


async def a_pod_that_waits_for_its_volume_is_the_victim(env: Environment) -> None:
    """It leaves kube-scheduler's memory, and no running pod is deleted for the preemptor."""
    delayed = manifest(
        "StorageClass",
        "delayed",
        provisioner="nothing.example.com",
        volumeBindingMode="WaitForFirstConsumer",
    )
    await env.load(small_node("node-0"), bound_pod("dear", "node-0", "1", 10), delayed)
    await env.load(_volume_claim("data"))
    await env.cluster.create(_mounting(pending_pod("early", "1", 5), "data"))
    await env.wait_nominated("early")
    await env.cluster.create(pending_pod("new", "1", 100))
    assert await env.wait_bound("new") == {"new": "node-0"}
    assert env.deleted() == []


async def a_deferred_resize_preempts(env: Environment) -> None:
    """A pod of lower priority is deleted, and the resized pod is nominated to no node."""
    await env.load(small_node("node-0", cpu="4"), small_node("node-1", cpu="4"))
    await env.load(
        bound_pod("cheap", "node-0", "1", 1),
        bound_pod("dear", "node-0", "1", 10),
        bound_pod("elsewhere", "node-1", "1", 1),
        _resized("growing", "node-0", actual="1", desired="3"),
    )
    assert await env.wait_for_deletions(1) == ["cheap"]
    await env.remove_terminating()
    await env.cluster.create(pending_pod("next", "3", 5))
    assert await env.wait_bound("next") == {"next": "node-1"}
    assert env.deleted() == ["cheap"]
    assert env.nomination_of("growing") == ""


def _volume_claim(name: str) -> Document:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "delayed",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return manifest("PersistentVolumeClaim", name, namespace=NAMESPACE, spec=spec)


def _mounting(pod: Document, claim: str) -> Document:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    return {**pod, "spec": {**pod["spec"], "volumes": volumes}}


def _resized(name: str, node: str, *, actual: str, desired: str) -> Document:
    """Return a running pod whose resize the kubelet has deferred."""
    pending = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}
    resources = {"requests": {"cpu": actual}}
    container = {
        "name": "c",
        "image": "registry.example/pause:3",
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "allocatedResources": {"cpu": actual},
        "resources": resources,
    }
    status = {"conditions": [pending], "containerStatuses": [container]}
    spec = {"schedulerName": "default-scheduler"}
    return bound_pod(name, node, desired, 100, status=status, spec=spec)


SCENARIOS: Final = [
    SchedulingScenario(play, Setting(gates=gates, serving={"search": search}))
    for play, gates in (
        (a_pod_that_waits_for_its_volume_is_the_victim, ()),
        (a_deferred_resize_preempts, RESIZE),
    )
    for search in ("offered", "cluster")
]
