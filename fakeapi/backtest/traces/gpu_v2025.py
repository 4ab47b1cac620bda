"""Alibaba's cluster-trace-gpu-v2025: instances of 156 inference services over 31 days.

Source: github.com/alibaba/clusterdata, folder cluster-trace-gpu-v2025 (README.md).
"""

from __future__ import annotations

from typing import Final

from fakeapi.backtest.traces.node_lists import GPU, make_nodes
from fakeapi.backtest.traces.rows import CellError, Row
from fakeapi.backtest.traces.trace import TraceJob, TraceNode
from policies.kubernetes.quantity import NANOS

COLUMNS: Final = (
    "instance_sn", "role", "app_name", "cpu_request", "gpu_request", "rdma_request",
    "memory_request", "disk_request", "max_instance_per_node", "creation_time", "scheduled_time",
    "deletion_time",
)  # fmt: skip
RDMA: Final = "alibabacloud.com/rdma-percent"
ROLE_LABEL: Final = "alibabacloud.com/node-role"
CLASS_NAMES: Final = {3000: "latency-sensitive"}
ASSUMPTIONS: Final = (
    "All instances are latency sensitive and have the priority 3000, so none preempts another.",
    "Instances are services: a stopped one loses no work.",
    "Instances without a creation_time are submitted at the start, as they existed before.",
    "Instances without a deletion_time run until the end of 31 days.",
    "max_instance_per_node is not enforced: no field of a pod states a limit other than 1.",
    f"An instance requires nodes whose label {ROLE_LABEL} is its role.",
    f"rdma_request is the resource {RDMA}, disk_request is ephemeral-storage.",
    "The app is the namespace; each instance is a job of its own.",
)
NODE_ASSUMPTION: Final = (
    "The trace has no nodes; assumed are 2,100 CN (192 CPUs, 1 TiB, 2 TiB of disk) and 480 HN "
    "(128 CPUs, 1 TiB, 8 GPUs, 4 TiB of disk, two RDMA interfaces), which the peak just fills."
)

_END_NS: Final = 31 * 86_400 * NANOS
_GIB: Final = 2**30
_ROLES: Final = ("CN", "HN")


def assumed_nodes() -> tuple[TraceNode, ...]:
    """Return the nodes of :data:`NODE_ASSUMPTION`.

    At their peaks, the CN instances request 393,616 CPUs, the HN instances 3,414 GPUs and 94,823 %
    of an interface.
    """
    cpu_nodes = {"cpu": 192_000, "memory": 1024 * _GIB, "ephemeral-storage": 2048 * _GIB, RDMA: 100}
    gpu_nodes = {
        "cpu": 128_000, "memory": 1024 * _GIB, "ephemeral-storage": 4096 * _GIB, RDMA: 200, GPU: 8,
    }  # fmt: skip
    return (
        *make_nodes("cn", 2100, cpu_nodes, {ROLE_LABEL: "CN"}),
        *make_nodes("hn", 480, gpu_nodes, {ROLE_LABEL: "HN"}),
    )


def gpu_v2025_job(row: Row) -> TraceJob:
    """Return the job of a row. Raise CellError."""
    role = row.text("role")
    if role not in _ROLES:
        raise CellError("role: expected CN or HN")
    created, scheduled, deleted = (
        row.optional_seconds(column)
        for column in ("creation_time", "scheduled_time", "deletion_time")
    )
    if created is not None and scheduled is None:
        raise CellError("never scheduled, so that its run time is unknown")
    ends = _END_NS if deleted is None else deleted
    if not (created or 0) <= (scheduled or 0) <= ends:
        raise CellError("times: expected creation_time <= scheduled_time <= deletion_time")
    amounts = {
        "cpu": row.number("cpu_request", 1000),
        "memory": row.number("memory_request", _GIB),
        "ephemeral-storage": row.number("disk_request", _GIB),
        RDMA: row.number("rdma_request"),
        GPU: row.number("gpu_request"),
    }
    return TraceJob(
        name=row.dns_label("instance_sn"),
        tenant=row.dns_label("app_name"),
        priority=3000,
        submitted_ns=created or 0,
        run_ns=max(ends - (scheduled or 0), NANOS),
        requests={name: amount for name, amount in amounts.items() if amount},
        node_labels={ROLE_LABEL: (role,)},
        checkpoint_ns=0,
    )
