"""The options that commands share which simulate workloads: what is simulated, and where."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from extender.config.strict_decoding import ConfigError
from policies.kubernetes.duration import parse_duration

if TYPE_CHECKING:
    from fakeapi.backtest.executors import Workers

SEEDS: Final = 5
MOST: Final = 1000

WorkloadArgument = Annotated[
    str,
    typer.Argument(
        metavar="WORKLOAD",
        help="A recording (.jsonl or .jsonl.gz), a ledger with snapshots (.db, or "
        "postgresql://…), or a trace: a file, a directory, or "
        "synthetic:nodes=N,pods=N,days=N,seed=N,load=X.",
    ),
]
SeedsOption = Annotated[
    int, typer.Option("--seeds", min=1, max=MOST, help="How often each policy is simulated.")
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, max=MOST, help="Processes on this machine; default: its cores."
    ),
]
DaskOption = Annotated[
    str | None,
    typer.Option("--dask", metavar="ADDRESS", help="Simulate on this Dask scheduler's workers."),
]
RayOption = Annotated[
    str | None,
    typer.Option("--ray", metavar="ADDRESS", help="Simulate on this Ray cluster: HOST:PORT."),
]
FormatOption = Annotated[
    str | None,
    typer.Option("--format", metavar="NAME", help="Format of the trace; default: by columns."),
]
NodesOption = Annotated[
    Path | None,
    typer.Option("--nodes", metavar="FILE", help="The nodes, if the trace has none."),
]
DrainOption = Annotated[
    str,
    typer.Option(
        "--drain", metavar="DURATION", help="The longest time to simulate after the last job."
    ),
]


def choose_place(
    workers: int | None, dask: str | None, ray: str | None
) -> AbstractContextManager[Workers]:
    """Return where units run: in processes of this machine by default. Raise ConfigError."""
    from fakeapi.backtest.executors import dask_cluster, local_processes, ray_cluster

    options = {"--workers": workers, "--dask": dask, "--ray": ray}
    chosen = [option for option, value in options.items() if value is not None]
    if len(chosen) > 1:
        raise ConfigError(f"{' and '.join(chosen)}: expected only one of them")
    if dask is not None:
        return dask_cluster(dask)
    if ray is not None:
        return ray_cluster(ray)
    return local_processes(workers or os.cpu_count() or 1)


def read_drain(text: str) -> int:
    """Return the nanoseconds of the option. Raise ConfigError."""
    try:
        drain_ns = parse_duration(text)
    except ValueError:
        drain_ns = -1
    if drain_ns < 0:
        raise ConfigError(f"--drain: {text!r}; expected a duration such as 24h")
    return drain_ns
