"""The statistics of a kubelet, as in ``/stats/summary``: the node, its disks, its pods.

Memory usage is the node's own and that of its pods; available memory is the rest of its capacity
(for all pods together: of what is allocatable). Disks are filled by the node itself, images, and
the data of containers; container layers and images are on a separate disk where the node has one.

Source: k8s.io/kubelet/pkg/apis/stats/v1alpha1/types.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from extender.kube.events import rfc3339
from fakeapi.controlplane.kubelet.containers import ContainerLife, Running
from fakeapi.controlplane.kubelet.hosts import Guest, Host, pods_use, volumes_use
from fakeapi.controlplane.kubelet.usage import amount
from policies.quantity import units

Document = dict[str, Any]

MOST_PROCESSES: Final = 32_768

_BYTES_PER_INODE: Final = 16_384
_STORED: Final = ("disk", "logs")


def summary(host: Host, now: int) -> Document:
    """Return the whole summary of a node."""
    return {
        "node": _node(host, now),
        "pods": [_pod(guest, now) for guest in _present(host)],
    }


def node_summary(host: Host, now: int) -> Document:
    """Return the summary of a node without its pods."""
    return {"node": _node(host, now)}


def summary_without_disks(host: Host, now: int) -> Document:
    """Return the summary for ``?only_cpu_and_memory=true``."""
    whole = summary(host, now)
    for part in ("fs", "runtime", "rlimit"):
        del whole["node"][part]
    for pod in whole["pods"]:
        for part in ("volume", "ephemeral-storage", "process_stats"):
            del pod[part]
        for container in pod["containers"]:
            del container["rootfs"], container["logs"]
    return whole


def _present(host: Host) -> list[Guest]:
    """Return the pods with statistics: those that had a sandbox, and are not cleaned up."""
    return [g for g in host.guests.values() if g.life.sandbox and not g.cleaned]


def _node(host: Host, now: int) -> Document:
    guests, time = _present(host), rfc3339(now)
    pods = pods_use(guests, "memory", now)
    cpu = host.use("cpu", now) + pods_use(guests, "cpu", now)
    memory = host.use("memory", now) + pods
    processes = host.use("processes", now) + pods_use(guests, "processes", now)
    allocatable = units(amount(host.node.status.allocatable, "memory"))
    system = {
        "name": "pods",
        "startTime": rfc3339(host.began),
        "memory": _memory(time, pods, allocatable),
    }
    return {
        "nodeName": host.name,
        "systemContainers": [system],
        "startTime": rfc3339(host.began),
        "cpu": _cpu(time, cpu, now - host.began),
        "memory": _memory(time, memory, host.capacity("memory")),
        **_disks(host, guests, time, now),
        "rlimit": {"time": time, "maxpid": MOST_PROCESSES, "curproc": processes},
    }


def _disks(host: Host, guests: list[Guest], time: str, now: int) -> Document:
    """Return the statistics of the node's disk, and of the disk of images and containers."""
    layers = pods_use(guests, "disk", now)
    images = host.use("images", now)
    rest = host.use("disk", now) + pods_use(guests, "logs", now)
    rest += sum(sum(volumes_use(guest, now).values()) for guest in guests)
    own, pods = host.use("inodes", now), pods_use(guests, "inodes", now)
    size = host.capacity("ephemeral-storage")
    if not host.script.image_disk:
        disk = _disk(time, size, rest + layers + images, own + pods)
        return {"fs": disk, "runtime": {"imageFs": disk, "containerFs": disk}}
    other = _disk(time, host.script.image_disk, layers + images, pods)
    return {
        "fs": _disk(time, size, rest, own),
        "runtime": {"imageFs": other, "containerFs": other},
    }


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


def _pod(guest: Guest, now: int) -> Document:
    meta, time, life = guest.pod.metadata, rfc3339(now), guest.life
    used = {name: pods_use([guest], name, now) for name in ("cpu", "memory", *_STORED, "inodes")}
    volumes = volumes_use(guest, now)
    stored = used["disk"] + used["logs"] + sum(volumes.values())
    begun = [each for each in life.containers if each.ever_started]
    memory = _memory(time, used["memory"], 0)
    del memory["availableBytes"]
    return {
        "podRef": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
        "startTime": rfc3339(life.admitted),
        "containers": [_container(each, time, now) for each in begun],
        "cpu": _cpu(time, used["cpu"], now - life.admitted),
        "memory": memory,
        "volume": [_volume(name, size, time) for name, size in volumes.items()],
        "ephemeral-storage": {"time": time, "usedBytes": stored, "inodesUsed": used["inodes"]},
        "process_stats": {"process_count": pods_use([guest], "processes", now)},
    }


def _container(container: ContainerLife, time: str, now: int) -> Document:
    state = container.state
    began = state.since if isinstance(state, Running) else now
    memory = _memory(time, container.use("memory", now), 0)
    del memory["availableBytes"]
    return {
        "name": container.spec.name,
        "startTime": rfc3339(began),
        "cpu": _cpu(time, container.use("cpu", now), now - began),
        "memory": memory,
        "rootfs": _written(time, container.use("disk", now), container.use("inodes", now)),
        "logs": _written(time, container.use("logs", now), 1),
    }


def _written(time: str, used: int, inodes: int) -> Document:
    return {"time": time, "usedBytes": used, "inodesUsed": inodes}


def _volume(name: str, used: int, time: str) -> Mapping[str, object]:
    return {"name": name, "time": time, "usedBytes": used, "inodesUsed": 1}
