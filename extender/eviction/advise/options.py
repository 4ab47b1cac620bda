"""Completion and validation of the options of ``advise eviction``, and the start of its run."""

from __future__ import annotations

import asyncio
import gc
import math
import random
import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from extender.config.strict_decoding import ConfigError
from extender.eviction.advise.local_node import PROC
from extender.eviction.advise.output import AdviseMode, Printer, single_printer, watch_printer
from extender.eviction.advise.run import (
    LocalNodeOptions,
    ObservationOptions,
    ReliefOptions,
    RunContext,
    advise,
    advise_local,
)
from extender.eviction.kubelet_flags import KubeletFlags
from extender.eviction.memory.cgroups import ROOT_CGROUP, MemoryReadError
from extender.kube.rest.api_errors import ApiError, MalformedError
from extender.kube.rest.clock import SystemClock
from extender.kube.rest.connection import connect
from extender.kube.rest.transport import TransportError
from extender.terminal.command_line import stop_signal
from extender.terminal.output import OutputFormat
from extender.terminal.program import log_line
from policies.eviction.kubelet_releases import eviction_release
from policies.eviction.proactive_eviction import MIN_TREND_MEASUREMENTS, ReliefLimits
from policies.kubernetes.duration import parse_duration
from policies.kubernetes.releases import NEWEST, release

_SAMPLES: Final = 2
_PER_MINUTE: Final = 6.0
_MAX_NODES: Final = 3
_FAILED: Final = 1
_GC_THRESHOLD: Final = 200_000
"""New objects between garbage collections; reference counting frees a round's objects."""

_SECOND: Final = 10**9


@dataclass(frozen=True, slots=True)
class AdviseOptions:
    """The options of observation and output."""

    kubeconfig: Path | None
    server: str | None
    node: str | None
    watch: bool
    interval: str
    samples: int | None
    top: int
    concurrency: int
    upstream: str | None
    output: OutputFormat


@dataclass(frozen=True, slots=True)
class ReliefFlags:
    """The flags of relief."""

    enabled: bool
    within: str | None
    yes: bool
    rate: float | None
    max_nodes: int | None


@dataclass(frozen=True, slots=True)
class LocalFlags:
    """The flags of local observation."""

    enabled: bool
    cgroup: str | None
    flags: KubeletFlags


AdviseRun = Callable[[RunContext], Coroutine[Any, Any, int]]


def run_advise(options: AdviseOptions, relief_flags: ReliefFlags, local_flags: LocalFlags) -> None:
    """Run, and exit with the run's code. Raise ConfigError, and the errors of files and flags."""
    relief = _relief_options(relief_flags)
    observation = _observation_options(
        options, _SAMPLES if relief is None else MIN_TREND_MEASUREMENTS
    )
    if options.kubeconfig is not None and options.server is not None:
        raise ConfigError("--kubeconfig and --server exclude each other")
    if local_flags.enabled and relief is not None:
        raise ConfigError("--local and --cordon-and-evict exclude each other")
    if not local_flags.enabled and (
        local_flags.cgroup is not None or local_flags.flags != KubeletFlags()
    ):
        raise ConfigError("--cgroup and the kubelet's flags need --local")
    if local_flags.enabled:
        local = LocalNodeOptions(local_flags.cgroup or ROOT_CGROUP, local_flags.flags, PROC)
        work = _local_run(options, observation, local)
    else:
        work = _cluster_run(options, observation, relief)
    gc.set_threshold(_GC_THRESHOLD)
    try:
        code = asyncio.run(_run_printed(_open_printer(options, relief), observation, work))
    except (ApiError, MalformedError, TransportError, MemoryReadError) as error:
        _fail(str(error))
    sys.exit(code)


def _cluster_run(
    options: AdviseOptions, observation: ObservationOptions, relief: ReliefOptions | None
) -> AdviseRun:
    async def work(context: RunContext) -> int:
        transport = await connect(options.server, options.kubeconfig)
        try:
            return await advise(transport, observation, relief, context)
        finally:
            await transport.close()

    return work


def _local_run(
    options: AdviseOptions, observation: ObservationOptions, local: LocalNodeOptions
) -> AdviseRun:
    async def work(context: RunContext) -> int:
        if options.server is None and options.kubeconfig is None:
            return await advise_local(None, local, observation, context)
        transport = await connect(options.server, options.kubeconfig)
        try:
            return await advise_local(transport, local, observation, context)
        finally:
            await transport.close()

    return work


async def _run_printed(
    printing: AbstractContextManager[Printer], observation: ObservationOptions, work: AdviseRun
) -> int:
    """Run until done; with --watch, a stop signal ends the run successfully."""
    with printing as printer:
        # For jitter only: no decision depends on it.
        rng = random.Random()  # noqa: S311
        working = asyncio.create_task(work(RunContext(SystemClock(), rng, printer)))
        if observation.samples is not None:
            return await working
        stop = asyncio.create_task(stop_signal().wait())
        await asyncio.wait((working, stop), return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not working.done():
            working.cancel()
            await asyncio.wait((working,))
        return 0 if working.cancelled() else working.result()


def _open_printer(
    options: AdviseOptions, relief: ReliefOptions | None
) -> AbstractContextManager[Printer]:
    if not options.watch:
        return single_printer(options.output, options.top)
    mode = AdviseMode.OBSERVE
    if relief is not None:
        mode = AdviseMode.LIVE if relief.execute else AdviseMode.DRY_RUN
    return watch_printer(options.output, options.top, mode)


def _observation_options(options: AdviseOptions, least: int) -> ObservationOptions:
    if options.watch and options.samples is not None:
        raise ConfigError("--watch and --samples exclude each other")
    rules = eviction_release(release(options.upstream or NEWEST.name))
    interval = _duration("--interval", options.interval) / _SECOND
    samples = None if options.watch else options.samples or least
    return ObservationOptions(rules, options.node, interval, samples, options.concurrency)


def _relief_options(flags: ReliefFlags) -> ReliefOptions | None:
    if not flags.enabled:
        others = {
            "--within": flags.within is not None,
            "--yes": flags.yes,
            "--rate": flags.rate is not None,
            "--max-nodes": flags.max_nodes is not None,
        }
        misplaced = [name for name, is_set in others.items() if is_set]
        if misplaced:
            raise ConfigError(f"{', '.join(misplaced)}: only with --cordon-and-evict")
        return None
    if flags.within is None:
        raise ConfigError("--cordon-and-evict needs --within DURATION, such as --within 5m")
    rate = _PER_MINUTE if flags.rate is None else flags.rate
    if not (math.isfinite(rate) and rate > 0):
        raise ConfigError(f"--rate: expected a number of evictions above 0, got {rate:g}")
    within = _duration("--within", flags.within)
    limits = ReliefLimits(within, flags.max_nodes or _MAX_NODES)
    return ReliefOptions(limits, rate, flags.yes)


def _duration(flag: str, text: str) -> int:
    """Parse a duration above zero, in nanoseconds. Raise ConfigError."""
    try:
        found = parse_duration(text)
    except ValueError as error:
        raise ConfigError(f"{flag}: {error}; expected a duration such as 90s or 5m") from None
    if found <= 0:
        raise ConfigError(f"{flag}: expected a duration above 0, got {text}")
    return found


def _fail(problem: str) -> NoReturn:
    """Print an error in one line, and exit with 1."""
    log_line(" ".join(problem.split()))
    sys.exit(_FAILED)
