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

from extender.advising.local import PROC
from extender.advising.running import Doing, Local, Looking, Surroundings, advise, advise_here
from extender.advising.screens import Screen, once, watched
from extender.config import ConfigError
from extender.console import say
from extender.eviction.flags import KubeletFlags
from extender.kube.api_error import ApiError, MalformedError
from extender.kube.clock import SystemClock
from extender.kube.connection import connect
from extender.kube.transport import Transport, TransportError
from extender.memory.groups import MACHINE, MeasureError
from extender.options import Output
from extender.stopping import told_to_stop
from policies.eviction.durations import parse_duration
from policies.eviction.forestalling import SURE_READINGS, Terms
from policies.eviction.releases import eviction_release
from policies.upstream import NEWEST, release

_SAMPLES: Final = 2
_PER_MINUTE: Final = 6.0
_MOST_NODES: Final = 3
_FAILED: Final = 1
_COLLECTED: Final = 200_000
"""New objects between garbage collections; reference counting frees a round's objects."""

_SECOND: Final = 10**9


@dataclass(frozen=True, slots=True)
class Asked:
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
    output: Output | None


@dataclass(frozen=True, slots=True)
class Relieving:
    """The flags of relief."""

    wanted: bool
    within: str | None
    yes: bool
    rate: float | None
    max_nodes: int | None


@dataclass(frozen=True, slots=True)
class Here:
    """The flags of local observation."""

    wanted: bool
    cgroup: str | None
    flags: KubeletFlags


Run = Callable[[Surroundings], Coroutine[Any, Any, int]]


def start(asked: Asked, relieving: Relieving, here: Here) -> None:
    """Run, and exit with the run's code. Raise ConfigError, and the errors of files and flags."""
    doing = _doing(relieving)
    looking = _looking(asked, _SAMPLES if doing is None else SURE_READINGS)
    if asked.kubeconfig is not None and asked.server is not None:
        raise ConfigError("--kubeconfig and --server exclude each other")
    if here.wanted and doing is not None:
        raise ConfigError("--local and --cordon-and-evict exclude each other")
    if not here.wanted and (here.cgroup is not None or here.flags != KubeletFlags()):
        raise ConfigError("--cgroup and the kubelet's flags need --local")
    if here.wanted:
        local = Local(here.cgroup or MACHINE, here.flags, PROC)
        work = _here(asked, looking, local)
    else:
        work = _there(asked, looking, doing)
    gc.set_threshold(_COLLECTED)
    try:
        code = asyncio.run(_shown(asked, looking, work))
    except (ApiError, MalformedError, TransportError, MeasureError) as error:
        _fail(str(error))
    sys.exit(code)


def _there(asked: Asked, looking: Looking, doing: Doing | None) -> Run:
    async def work(around: Surroundings) -> int:
        transport = await connect(asked.server, asked.kubeconfig)
        try:
            return await advise(transport, looking, doing, around)
        finally:
            await transport.close()

    return work


def _here(asked: Asked, looking: Looking, local: Local) -> Run:
    async def work(around: Surroundings) -> int:
        if asked.server is None and asked.kubeconfig is None:
            return await advise_here(None, local, looking, around)
        transport: Transport = await connect(asked.server, asked.kubeconfig)
        try:
            return await advise_here(transport, local, looking, around)
        finally:
            await transport.close()

    return work


async def _shown(asked: Asked, looking: Looking, work: Run) -> int:
    """Run until done; with --watch, a stop signal ends the run successfully."""
    with _screen(asked) as screen:
        # For jitter only: no decision depends on it.
        rng = random.Random()  # noqa: S311
        working = asyncio.create_task(work(Surroundings(SystemClock(), rng, screen)))
        if looking.samples is not None:
            return await working
        stop = asyncio.create_task(told_to_stop().wait())
        await asyncio.wait((working, stop), return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not working.done():
            working.cancel()
            await asyncio.wait((working,))
        return 0 if working.cancelled() else working.result()


def _screen(asked: Asked) -> AbstractContextManager[Screen]:
    default = Output.TEXT if sys.stdout.isatty() else Output.JSON
    json = (asked.output or default) is Output.JSON
    return watched(asked.top, json=json) if asked.watch else once(asked.top, json=json)


def _looking(asked: Asked, least: int) -> Looking:
    if asked.watch and asked.samples is not None:
        raise ConfigError("--watch and --samples exclude each other")
    rules = eviction_release(release(asked.upstream or NEWEST.name))
    interval = _duration("--interval", asked.interval) / _SECOND
    samples = None if asked.watch else asked.samples or least
    return Looking(rules, asked.node, interval, samples, asked.concurrency)


def _doing(relieving: Relieving) -> Doing | None:
    if not relieving.wanted:
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
    terms = Terms(within, relieving.max_nodes or _MOST_NODES)
    return Doing(terms, rate, relieving.yes)


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
    say(" ".join(problem.split()))
    sys.exit(_FAILED)
