"""Microsoft's Philly: training jobs of virtual clusters, by submission, duration and GPUs.

The columns are those of the copy in the artifacts of the paper about Sia. The original (Jeon et
al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads") is JSON.

Source: github.com/siasosp23/artifacts, sia-simulator/traces/philly.csv.
"""

from __future__ import annotations

import zlib
from datetime import UTC, datetime, timedelta
from typing import Final

from fakeapi.backtest.traces.node_lists import GPU, make_nodes
from fakeapi.backtest.traces.rows import LONGEST_TIME_NS, CellError, Row
from fakeapi.backtest.traces.trace import TraceJob, TraceNode
from policies.kubernetes.quantity import NANOS

COLUMNS: Final = ("timestamp", "duration", "num_gpus", "cluster")
CLASS_NAMES: Final = {1000: "production", 0: "batch"}
ASSUMPTIONS: Final = (
    "The trace has no priorities: by a hash of its line, one job in four has 1000, others 0.",
    "A stopped pod loses all its work: the trace has no checkpoints.",
    "A job of more than 8 GPUs is several pods of at most 8, which do not wait for each other.",
    "A pod requests 4 CPUs and 32 GiB for each of its GPUs: the trace has neither.",
    "The duration is the run time of each pod; the virtual cluster is the namespace.",
)
NODE_ASSUMPTION: Final = (
    "The trace has no nodes; assumed are Philly's, 231 with 8 GPUs and 321 with 2, and 8 CPUs and "
    "64 GiB for each GPU."
)

_GIB: Final = 2**30
_GPUS_PER_POD: Final = 8
_MOST_GPUS: Final = 10_000
_LONGEST_TIMESTAMP: Final = 40
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def assumed_nodes() -> tuple[TraceNode, ...]:
    """Return the nodes of :data:`NODE_ASSUMPTION`."""
    large, small = ({"cpu": gpus * 8000, "memory": gpus * 64 * _GIB, GPU: gpus} for gpus in (8, 2))
    return (*make_nodes("gpu-8", 231, large), *make_nodes("gpu-2", 321, small))


def philly_job(row: Row) -> TraceJob:
    """Return the job of a row. Raise CellError."""
    gpus = row.number("num_gpus", largest=_MOST_GPUS)
    if not gpus:
        raise CellError("num_gpus: zero")
    pods = next(n for n in range(-(-gpus // _GPUS_PER_POD), gpus + 1) if gpus % n == 0)
    share = gpus // pods
    return TraceJob(
        name=f"job-{row.line}",
        tenant=f"vc-{row.dns_label('cluster')}"[:63].rstrip("-"),
        priority=0 if zlib.crc32(str(row.line).encode()) % 4 else 1000,
        submitted_ns=_timestamp(row.text("timestamp")),
        run_ns=max(row.seconds("duration"), NANOS),
        requests={"cpu": share * 4000, "memory": share * 32 * _GIB, GPU: share},
        pods=pods,
    )


def _timestamp(text: str) -> int:
    """Return a time such as ``2017-10-09 07:01:55`` in nanoseconds since 1970, in UTC."""
    try:
        moment = datetime.fromisoformat(text[:_LONGEST_TIMESTAMP])
    except ValueError:
        raise CellError("timestamp: expected a time such as 2017-10-09 07:01:55") from None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = (aware - _EPOCH) // timedelta(microseconds=1) * 1000
    if not 0 <= since < LONGEST_TIME_NS:
        raise CellError("timestamp: out of range")
    return since
