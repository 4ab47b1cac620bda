"""Small trace files: rows of each format, with values that a test names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from fakeapi.backtest.traces.formats import open_trace
from fakeapi.backtest.traces.node_lists import GPU, make_nodes
from fakeapi.backtest.traces.trace import Trace, TraceJob

SECOND: Final = 10**9
GIB: Final = 2**30
NODES: Final = make_nodes("node", 2, {"cpu": 64_000, "memory": 256 * GIB, GPU: 8})

GENERIC: Final = {
    "name": "a", "tenant": "team", "priority": "0", "submit": "0", "duration": "60", "cpu": "1",
    "memory": "1Gi", "gpu": "", "pods": "1", "checkpoint": "",
}  # fmt: skip
OPENB: Final = {
    "name": "openb-pod-0001", "cpu_milli": "6000", "memory_mib": "12288", "num_gpu": "1",
    "gpu_milli": "460", "gpu_spec": "", "qos": "LS", "pod_phase": "Running", "creation_time": "5",
    "deletion_time": "70", "scheduled_time": "10",
}  # fmt: skip
OPENB_NODES: Final = (
    "sn,cpu_milli,memory_mib,gpu,model\n"
    "openb-node-0000,32000,262144,0,\n"
    "openb-node-0001,96000,393216,8,G2\n"
    "openb-node-0002,96000,786432,8,V100M32\n"
)
GPU_V2025: Final = {
    "instance_sn": "instance_7", "role": "HN", "app_name": "app_0", "cpu_request": "12",
    "cpu_limit": "12", "gpu_request": "1", "gpu_limit": "1", "rdma_request": "25",
    "rdma_limit": "25", "memory_request": "937.5", "memory_limit": "937.5", "disk_request": "680.0",
    "disk_limit": "800.0", "max_instance_per_node": "8", "creation_time": "", "scheduled_time": "",
    "deletion_time": "",
}  # fmt: skip
PHILLY: Final = {
    "timestamp": "2017-10-09 07:01:55", "duration": "66.0", "num_gpus": "1", "gpu_time": "66.0",
    "cluster": "11cb48",
}  # fmt: skip


def csv_text(*rows: dict[str, str]) -> str:
    """Return rows with the header of the first one."""
    return "".join(",".join(cells) + "\n" for cells in (rows[0], *(r.values() for r in rows)))


def write(directory: Path, text: str | bytes, name: str = "trace.csv") -> str:
    """Write a file, and return its path."""
    path = directory / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def generic(directory: Path, *changes: dict[str, str]) -> Trace:
    """Return a trace of generic rows, each with its changes, on two nodes of 64 CPUs and 8 GPUs."""
    rows = [GENERIC | {"name": f"job-{i}"} | change for i, change in enumerate(changes)]
    return open_trace(write(directory, csv_text(*rows)), nodes=NODES)


def only_job(trace: Trace) -> TraceJob:
    """Return the job of a trace that has one."""
    (job,) = trace.jobs()
    return job


def reasons(trace: Trace) -> dict[str, int]:
    """Return how many rows were left out, by reason."""
    return {reason: each.count for reason, each in trace.left_out.items()}


def deployment(name: str = "web", replicas: int = 2, /, **spec: object) -> dict[str, object]:
    """Return a Deployment whose pods request 2 CPUs."""
    containers = [{"name": "c", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "replicas": replicas,
            "template": {"spec": {"containers": containers, **spec}},
        },
    }


def simkube(
    directory: Path,
    events: Iterable[tuple[int, list[object], list[object]]],
    lifecycles: dict[tuple[str, str], dict[int, list[object]]] | None = None,
    version: int = 2,
) -> str:
    """Write a .sktrace of events: a time, the applied and the deleted objects."""
    document = {
        "version": version,
        "config": {"trackedObjects": {}},
        "events": [
            {"ts": at, "applied_objs": applied, "deleted_objs": deleted}
            for at, applied, deleted in events
        ],
        "index": {},
        "pod_lifecycles": lifecycles or {},
    }
    return write(directory, msgspec.msgpack.encode(document), "trace.sktrace")
