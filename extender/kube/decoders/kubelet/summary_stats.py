"""A kubelet's /stats/summary (stats/v1alpha1), decoded to the statistics that eviction reads.

msgspec skips the fields that eviction does not read. Go's zero time (null, or the year 1) is None.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Struct

from extender.kube.decoders.manifests import Document, decode_document
from extender.kube.decoders.replicasets import time_to_ns
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


class _MemoryStats(Struct, rename="camel"):
    time: datetime | None = None
    available_bytes: Amount | None = None
    working_set_bytes: Amount | None = None
    usage_bytes: Amount | None = None


class _FsStats(Struct, rename="camel"):
    time: datetime | None = None
    available_bytes: Amount | None = None
    capacity_bytes: Amount | None = None
    inodes_free: Amount | None = None
    inodes: Amount | None = None


class _FsUsage(Struct, rename="camel"):
    used_bytes: Amount | None = None
    inodes_used: Amount | None = None


class _VolumeStats(_FsUsage, rename="camel"):
    name: str = ""
    capacity_bytes: Amount | None = None


class _RlimitStats(Struct):
    time: datetime | None = None
    maxpid: int | None = None
    curproc: int | None = None


class _ContainerStats(Struct):
    name: str = ""
    memory: _MemoryStats | None = None
    rootfs: _FsUsage | None = None
    logs: _FsUsage | None = None


class _RuntimeStats(Struct, rename="camel"):
    image_fs: _FsStats | None = None
    container_fs: _FsStats | None = None


class _NodeStats(Struct, rename="camel"):
    node_name: str = ""
    system_containers: list[_ContainerStats] | None = None
    memory: _MemoryStats | None = None
    fs: _FsStats | None = None
    runtime: _RuntimeStats | None = None
    rlimit: _RlimitStats | None = None


class _ProcessStats(Struct):
    process_count: Amount | None = None


class _PodReference(Struct):
    name: str = ""
    namespace: str = ""
    uid: str = ""


class _PodStats(Struct, rename={"pod_ref": "podRef", "storage": "ephemeral-storage"}):
    pod_ref: _PodReference
    containers: list[_ContainerStats] | None = None
    memory: _MemoryStats | None = None
    volume: list[_VolumeStats] | None = None
    storage: _FsUsage | None = None
    process_stats: _ProcessStats | None = None


class SummaryV1Alpha1(Struct):
    """The Summary document; only the node is required."""

    node: _NodeStats
    pods: list[_PodStats] | None = None


_summaries = msgspec.json.Decoder(SummaryV1Alpha1)


def decode_summary(document: Document) -> tuple[str, Summary]:
    """Decode a summary and the name of its node, "" if it has none. Raise ManifestError."""
    shape = decode_document(_summaries, document)
    return shape.node.node_name, summary_of(shape)


def summary_of(shape: SummaryV1Alpha1) -> Summary:
    """Convert a decoded summary. A pod without a UID has the key ``namespace/name``."""
    return Summary(
        _node(shape.node),
        {
            each.pod_ref.uid or f"{each.pod_ref.namespace}/{each.pod_ref.name}": _pod(each)
            for each in shape.pods or ()
        },
    )


def _node(node: _NodeStats) -> NodeStats:
    runtime = node.runtime or _RuntimeStats()
    together = next((each for each in node.system_containers or () if each.name == _PODS), None)
    return NodeStats(
        memory=_memory(node.memory),
        allocatable=None if together is None else _memory(together.memory),
        node_fs=_filesystem(node.fs),
        image_fs=_filesystem(runtime.image_fs),
        container_fs=_filesystem(runtime.container_fs),
        processes=_processes(node.rlimit),
    )


def _memory(stats: _MemoryStats | None) -> MemoryStats | None:
    if stats is None:
        return None
    at_ns = time_to_ns(stats.time)
    return MemoryStats(stats.available_bytes, stats.working_set_bytes, stats.usage_bytes, at_ns)


def _filesystem(stats: _FsStats | None) -> FilesystemStats | None:
    if stats is None:
        return None
    return FilesystemStats(
        stats.available_bytes,
        stats.capacity_bytes,
        stats.inodes_free,
        stats.inodes,
        time_to_ns(stats.time),
    )


def _processes(limits: _RlimitStats | None) -> ProcessStats | None:
    if limits is None:
        return None
    return ProcessStats(limits.maxpid, limits.curproc, time_to_ns(limits.time))


def _pod(pod: _PodStats) -> PodStats:
    return PodStats(
        # To the kubelet, a memory section without a working set is zero.
        working_set=None if pod.memory is None else pod.memory.working_set_bytes or 0,
        processes=None if pod.process_stats is None else pod.process_stats.process_count,
        storage_used=None if pod.storage is None else pod.storage.used_bytes,
        containers=tuple(map(_container, pod.containers or ())),
        volumes=tuple(_volumes(pod.volume or ())),
    )


def _container(container: _ContainerStats) -> ContainerStats:
    return ContainerStats(
        container.name,
        None if container.memory is None else container.memory.working_set_bytes,
        _usage(container.rootfs),
        _usage(container.logs),
    )


def _volumes(volumes: Iterable[_VolumeStats]) -> Iterable[VolumeStats]:
    for each in volumes:
        yield VolumeStats(
            each.name, DiskUsage(each.used_bytes, each.inodes_used), each.capacity_bytes
        )


def _usage(stats: _FsUsage | None) -> DiskUsage | None:
    return None if stats is None else DiskUsage(stats.used_bytes, stats.inodes_used)
