"""Alibaba's cluster-trace-gpu-v2023 ("openb"): pods of one GPU cluster over 149 days.

Source: github.com/alibaba/clusterdata, folder cluster-trace-gpu-v2023 (README.md, csv/).
"""

from __future__ import annotations

from typing import Final

from fakeapi.backtest.traces.node_lists import GPU_MILLI, GPU_MODEL, MIB
from fakeapi.backtest.traces.rows import CellError, Row
from fakeapi.backtest.traces.trace import TraceJob
from policies.kubernetes.name_validation import invalid_label_value
from policies.kubernetes.quantity import NANOS

COLUMNS: Final = (
    "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase",
    "creation_time", "deletion_time", "scheduled_time",
)  # fmt: skip
NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
PRIORITIES: Final = {"LS": 3000, "Guaranteed": 2000, "Burstable": 1000, "BE": 0}
CLASS_NAMES: Final = {
    3000: "latency-sensitive", 2000: "guaranteed", 1000: "burstable", 0: "best-effort",
}  # fmt: skip
ASSUMPTIONS: Final = (
    "QoS stands for priority: LS is 3000, Guaranteed 2000, Burstable 1000, BE 0.",
    "LS pods are services, which lose no work when stopped; others lose all of it.",
    "A pod runs from scheduled_time to deletion_time, but at least a second.",
    "Pods that were deleted because the trace ended would have run longer.",
    f"GPUs are the resource {GPU_MILLI}, 1000 for each GPU of a node.",
    "A share of a GPU may be spread over several GPUs of a node, unlike on the real cluster.",
    f"gpu_spec is a required node label {GPU_MODEL} with one of its models.",
    "All pods are in one namespace; each pod is a job of its own.",
)

_TENANT: Final = "openb"
_MOST_GPUS: Final = 10_000
_MOST_MODELS: Final = 64


def openb_job(row: Row) -> TraceJob:
    """Return the job of a row. Raise CellError."""
    qos = row.text("qos")
    if qos not in PRIORITIES:
        raise CellError("qos: expected LS, BE, Burstable or Guaranteed")
    created, deleted = row.seconds("creation_time"), row.optional_seconds("deletion_time")
    scheduled = row.optional_seconds("scheduled_time")
    if scheduled is None or deleted is None:
        raise CellError("never scheduled, so that its run time is unknown")
    if not created <= scheduled <= deleted:
        raise CellError("times: expected creation_time <= scheduled_time <= deletion_time")
    return TraceJob(
        name=row.dns_label("name"),
        tenant=_TENANT,
        priority=PRIORITIES[qos],
        submitted_ns=created,
        run_ns=max(deleted - scheduled, NANOS),
        requests=_requests(row),
        node_labels=_node_labels(row.text("gpu_spec")),
        checkpoint_ns=0 if qos == "LS" else None,
    )


def _requests(row: Row) -> dict[str, int]:
    gpus = row.number("num_gpu", largest=_MOST_GPUS)
    share = row.number("gpu_milli", largest=1000) if gpus else 0
    amounts = {
        "cpu": row.number("cpu_milli"),
        "memory": row.number("memory_mib", MIB),
        GPU_MILLI: gpus * share,
    }
    return {name: amount for name, amount in amounts.items() if amount}


def _node_labels(models: str) -> dict[str, tuple[str, ...]]:
    if not models:
        return {}
    names = tuple(sorted(set(models.split("|"))))
    if len(names) > _MOST_MODELS or any(invalid_label_value(name) for name in names):
        raise CellError("gpu_spec: expected models separated by |")
    return {GPU_MODEL: names}
