"""``reprieve tune``: searches better policies, and validates the chosen one on held-out time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console

from extender.config.preemption_policy import decode_policy, read_policy_source
from extender.config.strict_decoding import ConfigError
from extender.ledger_page.amounts import count_of
from extender.terminal.command_line import OutputOption, UpstreamOption
from extender.terminal.output import Answer, OutputFormat, print_answer, show_progress
from extender.terminal.program import log_line, program_version
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

if TYPE_CHECKING:
    from fakeapi.backtest.executors import Finished, Workers
    from fakeapi.backtest.tuning.segment_runner import SegmentRunner
    from fakeapi.backtest.tuning.tuning import TuningPlan, TuningResult

EXAMPLE: Final = "tune synthetic --policy policy.yaml --minimize lost-gpu-hours --out tuned.yaml"

_TRIALS: Final = 40
_SEGMENTS: Final = 6


def tune_policy(
    workload: WorkloadArgument,
    policy: Annotated[
        str,
        typer.Option(
            "--policy", metavar="NAME|F", help="The policy to vary; its guards never change."
        ),
    ],
    minimize: Annotated[
        list[str] | None,
        typer.Option("--minimize", metavar="MEASURE", help="A measure of the report."),
    ] = None,
    maximize: Annotated[
        list[str] | None,
        typer.Option("--maximize", metavar="MEASURE", help="A measure; in all, one or two."),
    ] = None,
    trials: Annotated[
        int, typer.Option("--trials", min=1, max=100_000, help="How many policies are tried.")
    ] = _TRIALS,
    seeds: SeedsOption = SEEDS,
    segments: Annotated[
        int, typer.Option("--segments", min=2, max=MOST, help="Parts of the workload, by time.")
    ] = _SEGMENTS,
    held_out: Annotated[
        int | None,
        typer.Option(
            "--held-out", min=1, help="The last segments, for validation; default: a third."
        ),
    ] = None,
    workers: WorkersOption = None,
    dask: DaskOption = None,
    ray: RayOption = None,
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="Of the search.")] = 0,
    format_name: FormatOption = None,
    nodes: NodesOption = None,
    upstream: UpstreamOption = None,
    drain: DrainOption = "24h",
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write the chosen policy to a file."),
    ] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Search better orders and weights of a policy's criteria by backtests.

    Policies are compared on the first segments of the workload. The chosen one is then compared
    with the given one on the others, which it has not seen. Ctrl-C ends the search, and the best
    policy so far is reported.
    """
    from fakeapi.backtest.simulation.simulated_scheduler import STOCK, SimulatedPolicy
    from fakeapi.backtest.tuning.objectives import parse_objectives
    from fakeapi.backtest.workloads import RunOptions, open_workload

    try:
        from fakeapi.backtest.tuning.segment_runner import SegmentRunner
        from fakeapi.backtest.tuning.table import render_tuning
        from fakeapi.backtest.tuning.tuning import TuningPlan
    except ImportError as error:
        raise ConfigError(
            f"reprieve tune needs the package {error.name}; install it with: "
            "pip install 'reprieve[tune]'"
        ) from None
    if output in (OutputFormat.NAME, OutputFormat.CSV, OutputFormat.HTML):
        raise ConfigError(f"-o {output.value}: expected table, wide, json or yaml")
    if policy == STOCK:
        raise ConfigError(f"--policy {STOCK}: has no criteria; expected kube-scheduler or a file")
    if out is not None and (out.is_dir() or not out.parent.is_dir()):
        raise ConfigError(f"--out {out}: expected a file in a directory that exists")
    options = RunOptions(release(upstream or NEWEST.name).name, read_drain(drain))
    place = choose_place(workers, dask, ray)
    source = read_policy_source(policy)
    file = decode_policy(source)
    with show_progress("reading the workload"):
        opened = open_workload(workload, segments, format_name, nodes)
        seeds = min(seeds, opened.seeds or seeds)
    plan = TuningPlan(
        SimulatedPolicy(file.metadata.name, source),
        file,
        parse_objectives(minimize or (), maximize or (), opened.summary),
        len(opened.segments),
        _read_held_out(held_out, len(opened.segments)),
        trials,
        seed,
    )
    result, code = _run(plan, partial(SegmentRunner, opened, seeds, options), seeds, place)
    print_answer(output, Answer(lambda: result, lambda rows: render_tuning(result, rows)))
    if out is not None:
        _write(out, result, f"{policy} on {opened.summary.name} with --seed {seed}")
    if code:
        raise typer.Exit(code)


def _read_held_out(held_out: int | None, segments: int) -> int:
    """Return how many segments are held out, by default the last third. Raise ConfigError."""
    number = max(1, segments // 3) if held_out is None else held_out
    if number >= segments:
        raise ConfigError(
            f"--held-out {number}: expected less than the {count_of(segments, 'segment')} of the "
            "workload"
        )
    return number


def _run(
    plan: TuningPlan,
    runner: Callable[[Workers, Finished, Callable[[], None]], SegmentRunner],
    seeds: int,
    place: AbstractContextManager[Workers],
) -> tuple[TuningResult, int]:
    """Tune, and show how many units have finished; policies that repeat have none.

    Return the exit code, too: above 0 if the tuning was stopped before its end.
    """
    from fakeapi.backtest.executors import Finished
    from fakeapi.backtest.progress import unit_progress
    from fakeapi.backtest.tuning.search import StoppedError
    from fakeapi.backtest.tuning.tuning import tune

    finished = Finished()
    parts = plan.trials * len(plan.training_segments) + 2 * plan.held_out
    with (
        stop_signals(lambda: finished.put(None)) as arrived,
        place as workers,
        unit_progress(parts * seeds, 0, Console(stderr=True)) as advance,
    ):
        try:
            result = tune(plan, runner(workers, finished, advance))
        except StoppedError:
            log_line("stopped before the first policies were simulated")
            raise typer.Exit(SIGNALED + arrived[0]) from None
    return result, SIGNALED + arrived[0] if result.is_interrupted else 0


def _write(out: Path, result: TuningResult, origin: str) -> None:
    """Write the chosen policy, with its origin in a comment. Raise ConfigError."""
    from fakeapi.backtest.tuning.search_space import policy_text
    from fakeapi.backtest.tuning.table import conclusion

    objectives = ", ".join(f"{each.direction} {each.name}" for each in result.objectives)
    found = f"trial {result.chosen.trial} of {result.planned}, to {objectives}."
    lines = (
        f"Found by reprieve tune {program_version()} from {origin}: {found}",
        conclusion(result),
    )
    comment = "".join(f"# {' '.join(line.split())}\n" for line in lines)
    try:
        out.write_text(comment + policy_text(result.chosen.file), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--out {out}: cannot be written: {error.strerror or error}") from None
