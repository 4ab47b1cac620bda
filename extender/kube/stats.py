"""A kubelet's /stats/summary (stats/v1alpha1), decoded to the statistics that eviction reads.

msgspec skips the fields that eviction does not read. Go's zero time (null, or the year 1) is None.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Struct

from extender.kube.manifests import Document, document_as
from extender.kube.pods import epoch_ns
from policies.eviction.stats import (
    ContainerStats,
    DiskUsage,
    FilesystemStats,
    MemoryStats,
    NodeStats,
    PodStats,
    ProcessStats,
    Summary,
    VolumeStats,
)

_PODS = "pods"
Amount = Annotated[int, msgspec.Meta(ge=0)]


class _Memory(Struct, rename="camel"):
    time: datetime | None = None
    available_bytes: Amount | None = None
    working_set_bytes: Amount | None = None
    usage_bytes: Amount | None = None


class _Filesystem(Struct, rename="camel"):
    time: datetime | None = None
    available_bytes: Amount | None = None
    capacity_bytes: Amount | None = None
    inodes_free: Amount | None = None
    inodes: Amount | None = None


class _Usage(Struct, rename="camel"):
    used_bytes: Amount | None = None
    inodes_used: Amount | None = None


class _Volume(_Usage, rename="camel"):
    name: str = ""
    capacity_bytes: Amount | None = None


class _Limits(Struct):
    time: datetime | None = None
    maxpid: int | None = None
    curproc: int | None = None


class _Container(Struct):
    name: str = ""
    memory: _Memory | None = None
    rootfs: _Usage | None = None
    logs: _Usage | None = None


class _Runtime(Struct, rename="camel"):
    image_fs: _Filesystem | None = None
    container_fs: _Filesystem | None = None


class _Node(Struct, rename="camel"):
    node_name: str = ""
    system_containers: list[_Container] | None = None
    memory: _Memory | None = None
    fs: _Filesystem | None = None
    runtime: _Runtime | None = None
    rlimit: _Limits | None = None


class _Processes(Struct):
    process_count: Amount | None = None


class _Reference(Struct):
    name: str = ""
    namespace: str = ""
    uid: str = ""


class _Pod(Struct, rename={"pod_ref": "podRef", "storage": "ephemeral-storage"}):
    pod_ref: _Reference
    containers: list[_Container] | None = None
    memory: _Memory | None = None
    volume: list[_Volume] | None = None
    storage: _Usage | None = None
    process_stats: _Processes | None = None


class SummaryShape(Struct):
    """The Summary document; only the node is required."""

    node: _Node
    pods: list[_Pod] | None = None


_summaries = msgspec.json.Decoder(SummaryShape)


def decode_summary(document: Document) -> tuple[str, Summary]:
    """Decode a summary and the name of its node, "" if it has none. Raise ManifestError."""
    shape = document_as(_summaries, document)
    return shape.node.node_name, summary_of(shape)


def summary_of(shape: SummaryShape) -> Summary:
    """Convert a decoded summary. A pod without a UID has the key ``namespace/name``."""
    return Summary(
        _node(shape.node),
        {
            each.pod_ref.uid or f"{each.pod_ref.namespace}/{each.pod_ref.name}": _pod(each)
            for each in shape.pods or ()
        },
    )


def _node(node: _Node) -> NodeStats:
    runtime = node.runtime or _Runtime()
    together = next((each for each in node.system_containers or () if each.name == _PODS), None)
    return NodeStats(
        memory=_memory(node.memory),
        allocatable=None if together is None else _memory(together.memory),
        node_fs=_filesystem(node.fs),
        image_fs=_filesystem(runtime.image_fs),
        container_fs=_filesystem(runtime.container_fs),
        processes=_processes(node.rlimit),
    )


def _memory(stats: _Memory | None) -> MemoryStats | None:
    if stats is None:
        return None
    return MemoryStats(
        stats.available_bytes, stats.working_set_bytes, stats.usage_bytes, _time(stats.time)
    )


def _filesystem(stats: _Filesystem | None) -> FilesystemStats | None:
    if stats is None:
        return None
    return FilesystemStats(
        stats.available_bytes,
        stats.capacity_bytes,
        stats.inodes_free,
        stats.inodes,
        _time(stats.time),
    )


def _processes(limits: _Limits | None) -> ProcessStats | None:
    if limits is None:
        return None
    return ProcessStats(limits.maxpid, limits.curproc, _time(limits.time))


def _pod(pod: _Pod) -> PodStats:
    return PodStats(
        working_set=_working_set(pod.memory),
        processes=None if pod.process_stats is None else pod.process_stats.process_count,
        storage_used=None if pod.storage is None else pod.storage.used_bytes,
        containers=tuple(map(_container, pod.containers or ())),
        volumes=tuple(_volumes(pod.volume or ())),
    )


def _working_set(memory: _Memory | None) -> int | None:
    # A memory section without a working set is zero to the kubelet.
    return None if memory is None else memory.working_set_bytes or 0


def _container(container: _Container) -> ContainerStats:
    return ContainerStats(
        container.name,
        None if container.memory is None else container.memory.working_set_bytes,
        _usage(container.rootfs),
        _usage(container.logs),
    )


def _volumes(volumes: Iterable[_Volume]) -> Iterable[VolumeStats]:
    for each in volumes:
        yield VolumeStats(
            each.name, DiskUsage(each.used_bytes, each.inodes_used), each.capacity_bytes
        )


def _usage(stats: _Usage | None) -> DiskUsage | None:
    return None if stats is None else DiskUsage(stats.used_bytes, stats.inodes_used)


def _time(moment: datetime | None) -> int | None:
    return None if moment is None or moment.year == 1 else epoch_ns(moment)
