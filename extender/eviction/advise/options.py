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

from extender.config.component_config import ConfigError
from extender.eviction.advise.local_node import PROC
from extender.eviction.advise.output import Printer, single_printer, watch_printer
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
from extender.kube.rest.kubeconfig import connect
from extender.kube.rest.transport import Transport, TransportError
from extender.terminal.command_line import OutputFormat, log_line, stop_signal
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
    output: OutputFormat | None


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
    doing = _relief_options(relief_flags)
    looking = _observation_options(options, _SAMPLES if doing is None else MIN_TREND_MEASUREMENTS)
    if options.kubeconfig is not None and options.server is not None:
        raise ConfigError("--kubeconfig and --server exclude each other")
    if local_flags.enabled and doing is not None:
        raise ConfigError("--local and --cordon-and-evict exclude each other")
    if not local_flags.enabled and (
        local_flags.cgroup is not None or local_flags.flags != KubeletFlags()
    ):
        raise ConfigError("--cgroup and the kubelet's flags need --local")
    if local_flags.enabled:
        local = LocalNodeOptions(local_flags.cgroup or ROOT_CGROUP, local_flags.flags, PROC)
        work = _local_run(options, looking, local)
    else:
        work = _cluster_run(options, looking, doing)
    gc.set_threshold(_GC_THRESHOLD)
    try:
        code = asyncio.run(_run_printed(options, looking, work))
    except (ApiError, MalformedError, TransportError, MemoryReadError) as error:
        _fail(str(error))
    sys.exit(code)


def _cluster_run(
    asked: AdviseOptions, looking: ObservationOptions, doing: ReliefOptions | None
) -> AdviseRun:
    async def work(around: RunContext) -> int:
        transport = await connect(asked.server, asked.kubeconfig)
        try:
            return await advise(transport, looking, doing, around)
        finally:
            await transport.close()

    return work


def _local_run(
    asked: AdviseOptions, looking: ObservationOptions, local: LocalNodeOptions
) -> AdviseRun:
    async def work(around: RunContext) -> int:
        if asked.server is None and asked.kubeconfig is None:
            return await advise_local(None, local, looking, around)
        transport: Transport = await connect(asked.server, asked.kubeconfig)
        try:
            return await advise_local(transport, local, looking, around)
        finally:
            await transport.close()

    return work


async def _run_printed(asked: AdviseOptions, looking: ObservationOptions, work: AdviseRun) -> int:
    """Run until done; with --watch, a stop signal ends the run successfully."""
    with _open_printer(asked) as screen:
        # For jitter only: no decision depends on it.
        rng = random.Random()  # noqa: S311
        working = asyncio.create_task(work(RunContext(SystemClock(), rng, screen)))
        if looking.samples is not None:
            return await working
        stop = asyncio.create_task(stop_signal().wait())
        await asyncio.wait((working, stop), return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not working.done():
            working.cancel()
            await asyncio.wait((working,))
        return 0 if working.cancelled() else working.result()


def _open_printer(asked: AdviseOptions) -> AbstractContextManager[Printer]:
    default = OutputFormat.TEXT if sys.stdout.isatty() else OutputFormat.JSON
    json = (asked.output or default) is OutputFormat.JSON
    return (
        watch_printer(asked.top, json=json) if asked.watch else single_printer(asked.top, json=json)
    )


def _observation_options(asked: AdviseOptions, least: int) -> ObservationOptions:
    if asked.watch and asked.samples is not None:
        raise ConfigError("--watch and --samples exclude each other")
    rules = eviction_release(release(asked.upstream or NEWEST.name))
    interval = _duration("--interval", asked.interval) / _SECOND
    samples = None if asked.watch else asked.samples or least
    return ObservationOptions(rules, asked.node, interval, samples, asked.concurrency)


def _relief_options(relieving: ReliefFlags) -> ReliefOptions | None:
    if not relieving.enabled:
        beside = {
            "--within": relieving.within is not None,
            "--yes": relieving.yes,
            "--rate": relieving.rate is not None,
            "--max-nodes": relieving.max_nodes is not None,
        }
        given = [name for name, there in beside.items() if there]
        if given:
            raise ConfigError(f"{', '.join(given)}: only with --cordon-and-evict")
        return None
    if relieving.within is None:
        raise ConfigError("--cordon-and-evict needs --within DURATION, such as --within 5m")
    rate = _PER_MINUTE if relieving.rate is None else relieving.rate
    if not (math.isfinite(rate) and rate > 0):
        raise ConfigError(f"--rate: expected a number of evictions above 0, got {rate:g}")
    within = _duration("--within", relieving.within)
    terms = ReliefLimits(within, relieving.max_nodes or _MAX_NODES)
    return ReliefOptions(terms, rate, relieving.yes)


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
