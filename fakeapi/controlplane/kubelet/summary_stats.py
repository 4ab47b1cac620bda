"""The statistics of a kubelet, as in ``/stats/summary``: the node, its disks, its pods.

Memory usage is the node's own and that of its pods; available memory is the rest of its capacity
(for all pods together: of what is allocatable). Disks are filled by the node itself, images, and
the data of containers; container layers and images are on a separate disk where the node has one.

Source: k8s.io/kubelet/pkg/apis/stats/v1alpha1/types.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from extender.kube.decoders.object_meta import format_time
from fakeapi.controlplane.kubelet.container_lifecycle import ContainerLifecycle, ContainerRunning
from fakeapi.controlplane.kubelet.hollow_node import HollowNode, RunningPod, pod_usage, volume_usage
from fakeapi.controlplane.kubelet.scripts import parse_amount
from policies.kubernetes.quantity import units

Document = dict[str, Any]

MAX_PROCESSES: Final = 32_768

_BYTES_PER_INODE: Final = 16_384
_STORED: Final = ("disk", "logs")


def node_and_pods_summary(hollow: HollowNode, now: int) -> Document:
    """Return the whole summary of a node."""
    return {
        "node": _node(hollow, now),
        "pods": [_pod(running, now) for running in _present(hollow)],
    }


def node_summary(hollow: HollowNode, now: int) -> Document:
    """Return the summary of a node without its pods."""
    return {"node": _node(hollow, now)}


def summary_without_disks(hollow: HollowNode, now: int) -> Document:
    """Return the summary for ``?only_cpu_and_memory=true``."""
    whole = node_and_pods_summary(hollow, now)
    for part in ("fs", "runtime", "rlimit"):
        del whole["node"][part]
    for pod in whole["pods"]:
        for part in ("volume", "ephemeral-storage", "process_stats"):
            del pod[part]
        for container in pod["containers"]:
            del container["rootfs"], container["logs"]
    return whole


def _present(hollow: HollowNode) -> list[RunningPod]:
    """Return the pods with statistics: those that had a sandbox, and are not cleaned up."""
    return [g for g in hollow.pods.values() if g.lifecycle.sandbox and not g.cleaned]


def _node(hollow: HollowNode, now: int) -> Document:
    all_running, time = _present(hollow), format_time(now)
    pods = pod_usage(all_running, "memory", now)
    cpu = hollow.usage("cpu", now) + pod_usage(all_running, "cpu", now)
    memory = hollow.usage("memory", now) + pods
    processes = hollow.usage("processes", now) + pod_usage(all_running, "processes", now)
    allocatable = units(parse_amount(hollow.node.status.allocatable, "memory"))
    system = {
        "name": "pods",
        "startTime": format_time(hollow.began),
        "memory": _memory(time, pods, allocatable),
    }
    return {
        "nodeName": hollow.name,
        "systemContainers": [system],
        "startTime": format_time(hollow.began),
        "cpu": _cpu(time, cpu, now - hollow.began),
        "memory": _memory(time, memory, hollow.capacity("memory")),
        **_disks(hollow, all_running, time, now),
        "rlimit": {"time": time, "maxpid": MAX_PROCESSES, "curproc": processes},
    }


def _disks(hollow: HollowNode, all_running: list[RunningPod], time: str, now: int) -> Document:
    """Return the statistics of the node's disk, and of the disk of images and containers."""
    layers = pod_usage(all_running, "disk", now)
    images = hollow.usage("images", now)
    rest = hollow.usage("disk", now) + pod_usage(all_running, "logs", now)
    rest += sum(sum(volume_usage(running, now).values()) for running in all_running)
    own, pods = hollow.usage("inodes", now), pod_usage(all_running, "inodes", now)
    size = hollow.capacity("ephemeral-storage")
    if not hollow.script.image_disk:
        disk = _disk(time, size, rest + layers + images, own + pods)
        return {"fs": disk, "runtime": {"imageFs": disk, "containerFs": disk}}
    other = _disk(time, hollow.script.image_disk, layers + images, pods)
    return {"fs": _disk(time, size, rest, own), "runtime": {"imageFs": other, "containerFs": other}}


def _disk(time: str, capacity: int, used: int, inodes_used: int) -> Document:
    inodes = capacity // _BYTES_PER_INODE
    return {
        "time": time,
        "availableBytes": max(0, capacity - used),
        "capacityBytes": capacity,
        "usedBytes": min(used, capacity),
        "inodesFree": max(0, inodes - inodes_used),
        "inodes": inodes,
        "inodesUsed": min(inodes_used, inodes),
    }


def _memory(time: str, used: int, capacity: int) -> Document:
    return {
        "time": time,
        "availableBytes": max(0, capacity - used),
        "usageBytes": used,
        "workingSetBytes": used,
        "rssBytes": used,
        "pageFaults": 0,
        "majorPageFaults": 0,
    }


def _cpu(time: str, nanocores: int, lasted: int) -> Document:
    spent = nanocores * max(0, lasted) // 10**9
    return {"time": time, "usageNanoCores": nanocores, "usageCoreNanoSeconds": spent}


def _pod(running: RunningPod, now: int) -> Document:
    meta, time, lifecycle = running.pod.metadata, format_time(now), running.lifecycle
    used = {name: pod_usage([running], name, now) for name in ("cpu", "memory", *_STORED, "inodes")}
    volumes = volume_usage(running, now)
    stored = used["disk"] + used["logs"] + sum(volumes.values())
    started = [each for each in lifecycle.containers if each.ever_started]
    memory = _memory(time, used["memory"], 0)
    del memory["availableBytes"]
    return {
        "podRef": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
        "startTime": format_time(lifecycle.admitted),
        "containers": [_container(each, time, now) for each in started],
        "cpu": _cpu(time, used["cpu"], now - lifecycle.admitted),
        "memory": memory,
        "volume": [_volume(name, size, time) for name, size in volumes.items()],
        "ephemeral-storage": {"time": time, "usedBytes": stored, "inodesUsed": used["inodes"]},
        "process_stats": {"process_count": pod_usage([running], "processes", now)},
    }


def _container(container: ContainerLifecycle, time: str, now: int) -> Document:
    state = container.state
    began = state.since if isinstance(state, ContainerRunning) else now
    memory = _memory(time, container.usage("memory", now), 0)
    del memory["availableBytes"]
    return {
        "name": container.spec.name,
        "startTime": format_time(began),
        "cpu": _cpu(time, container.usage("cpu", now), now - began),
        "memory": memory,
        "rootfs": _written(time, container.usage("disk", now), container.usage("inodes", now)),
        "logs": _written(time, container.usage("logs", now), 1),
    }


def _written(time: str, used: int, inodes: int) -> Document:
    return {"time": time, "usedBytes": used, "inodesUsed": inodes}


def _volume(name: str, used: int, time: str) -> Mapping[str, object]:
    return {"name": name, "time": time, "usedBytes": used, "inodesUsed": 1}
