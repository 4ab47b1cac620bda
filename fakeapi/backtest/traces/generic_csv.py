"""The generic format: jobs in a CSV file whose columns this project defines.

    name,tenant,priority,submit,duration,cpu,memory,gpu,pods,checkpoint
    train-7,research,100,0,5400,16,64Gi,2,4,600

``name``, ``submit``, ``duration`` and ``cpu`` are required. Times are seconds; ``cpu``, ``memory``
and ``gpu`` are Kubernetes quantities for each pod.
"""

from __future__ import annotations

from typing import Final

from fakeapi.backtest.traces.node_lists import GPU
from fakeapi.backtest.traces.rows import CellError, Row
from fakeapi.backtest.traces.trace import HIGHEST_PRIORITY, TraceJob
from policies.kubernetes.integers import parse_integer

COLUMNS: Final = ("name", "submit", "duration", "cpu")
ASSUMPTIONS: Final = (
    "The defaults are: tenant default, priority 0, no memory, no GPU, one pod.",
    "Without a checkpoint a stopped pod loses all its work; with checkpoint 0 it loses none.",
    f"The column gpu is the resource {GPU}.",
)

_MOST_PODS: Final = 150_000
"""The pods of the largest cluster that Kubernetes supports."""


def generic_job(row: Row) -> TraceJob:
    """Return the job of a row. Raise CellError."""
    priority = parse_integer(row.text("priority") or "0", HIGHEST_PRIORITY)
    if priority is None:
        raise CellError(f"priority: expected an integer up to {HIGHEST_PRIORITY}")
    pods = row.number("pods", largest=_MOST_PODS) if row.text("pods") else 1
    run_ns = row.seconds("duration")
    if not pods or not run_ns:
        raise CellError("duration: zero" if pods else "pods: zero")
    amounts = {
        "cpu": row.quantity("cpu", 1000),
        "memory": row.quantity("memory", 1),
        GPU: row.quantity("gpu", 1),
    }
    return TraceJob(
        name=row.dns_label("name"),
        tenant=row.dns_label("tenant") if row.text("tenant") else "default",
        priority=priority,
        submitted_ns=row.seconds("submit"),
        run_ns=run_ns,
        requests={name: amount for name, amount in amounts.items() if amount},
        pods=pods,
        checkpoint_ns=row.optional_seconds("checkpoint"),
    )
