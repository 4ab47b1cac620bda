"""``reprieve backtest``: simulates a workload under policies, and compares them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console

from extender.config.strict_decoding import ConfigError
from extender.terminal.command_line import OutputOption, UpstreamOption
from extender.terminal.output import Answer, OutputFormat, print_answer, show_progress
from extender.terminal.program import log_line
from fakeapi.backtest.command_options import (
    MOST,
    SEEDS,
    DaskOption,
    DrainOption,
    FormatOption,
    NodesOption,
    RayOption,
    SeedsOption,
    WorkersOption,
    WorkloadArgument,
    choose_place,
    read_drain,
)
from fakeapi.backtest.stop_signals import SIGNALED, stop_signals
from policies.kubernetes.releases import NEWEST, release
from policies.preemption.policy import KUBE_SCHEDULER

if TYPE_CHECKING:
    from fakeapi.backtest.executors import Workers
    from fakeapi.backtest.result_file import ResultFile
    from fakeapi.backtest.results import UnitResult
    from fakeapi.backtest.units import Unit

EXAMPLE: Final = "backtest synthetic --policy stock --policy policy.yaml"


def run_backtest(
    workload: WorkloadArgument,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="NAME|F",
            help="A policy to simulate, may be repeated; the others are compared with the first. "
            "stock: kube-scheduler without extender. Default: stock and kube-scheduler.",
        ),
    ] = None,
    seeds: SeedsOption = SEEDS,
    segments: Annotated[
        int,
        typer.Option(
            "--segments", min=1, max=MOST, help="Parts of the workload to simulate separately."
        ),
    ] = 1,
    workers: WorkersOption = None,
    dask: DaskOption = None,
    ray: RayOption = None,
    results: Annotated[
        Path | None,
        typer.Option(
            "--results",
            metavar="FILE",
            help="Keep results in a file, and simulate only what is not in it.",
        ),
    ] = None,
    format_name: FormatOption = None,
    nodes: NodesOption = None,
    upstream: UpstreamOption = None,
    drain: DrainOption = "24h",
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Simulate a workload under preemption policies, and report how they differ.

    Exit code 1 means that some units have no result, because their workers ended again and again.
    """
    from fakeapi.backtest.report.comparison import compare
    from fakeapi.backtest.report.page import render_html
    from fakeapi.backtest.report.table import render_table
    from fakeapi.backtest.results import BacktestResults
    from fakeapi.backtest.simulation.simulated_scheduler import STOCK
    from fakeapi.backtest.units import plan_units, read_policies
    from fakeapi.backtest.workloads import RunOptions, open_workload

    if output in (OutputFormat.NAME, OutputFormat.CSV):
        raise ConfigError(f"-o {output.value}: expected table, wide, json, yaml or html")
    run_options = RunOptions(release(upstream or NEWEST.name).name, read_drain(drain))
    place = choose_place(workers, dask, ray)
    policies = read_policies(policy or (STOCK, KUBE_SCHEDULER.name))
    with show_progress("reading the workload"):
        opened = open_workload(workload, segments, format_name, nodes)
        seeds = min(seeds, opened.seeds or seeds)
        units = plan_units(opened.segments, policies, seeds, run_options)
    found = _run_units(units, place, results)
    missing = len(units) - len(found)
    comparison = compare(
        BacktestResults(
            opened.summary,
            tuple(each.name for each in policies),
            seeds,
            len(opened.segments),
            tuple(found),
            missing,
        )
    )
    print_answer(
        output,
        Answer(
            lambda: comparison,
            lambda rows: render_table(comparison, rows),
            page=lambda: render_html(comparison),
        ),
    )
    if missing:
        raise typer.Exit(1)


def _run_units(
    units: Sequence[Unit], place: AbstractContextManager[Workers], path: Path | None
) -> list[UnitResult]:
    """Return the results of all units but those that are lost, in the order of the units.

    Without ``path``, results are kept in a temporary file until all units have one.
    """
    from fakeapi.backtest.result_file import open_results

    kept_in = path or _temporary_path()
    with open_results(kept_in) as file:
        found = {unit.key: file.results[unit.key] for unit in units if unit.key in file.results}
        try:
            stopped = _run_missing(units, place, file, found) if len(found) < len(units) else None
        finally:
            if path is None and len(found) in (0, len(units)):
                kept_in.unlink()
    if len(found) < len(units):
        why = "workers of the other units ended" if stopped is None else "stopped"
        log_line(f"{why}; {_how_to_continue(len(found), units, kept_in)}")
        if stopped is not None:
            raise typer.Exit(SIGNALED + stopped)
    return [found[unit.key] for unit in units if unit.key in found]


def _run_missing(
    units: Sequence[Unit],
    place: AbstractContextManager[Workers],
    file: ResultFile,
    found: dict[str, UnitResult],
) -> int | None:
    """Run the units that are not in ``found``, and add their results to it and to the file.

    Return the stop signal if one has arrived before the end.
    """
    from fakeapi.backtest.executors import Finished, run_units
    from fakeapi.backtest.progress import unit_progress

    missing = [unit for unit in units if unit.key not in found]
    console, finished = Console(stderr=True), Finished()
    with (
        stop_signals(lambda: finished.put(None)) as arrived,
        place as workers,
        unit_progress(len(units), len(found), console) as advance,
    ):
        for unit, result in run_units(workers, missing, finished):
            if result is not None:
                file.append(unit.key, result)
                found[unit.key] = result
            advance()
    return arrived[0] if arrived else None


def _temporary_path() -> Path:
    descriptor, name = tempfile.mkstemp(prefix="reprieve-backtest-", suffix=".jsonl")
    os.close(descriptor)
    return Path(name)


def _how_to_continue(finished: int, units: Sequence[Unit], path: Path) -> str:
    if not finished:
        return "no unit has finished"
    return (
        f"{finished} of {len(units)} units have finished; to continue, run the command again with "
        f"--results {path}"
    )
