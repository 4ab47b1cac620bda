"""The command ``record`` and its options; slow imports are deferred until it runs."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from extender.config import ConfigError
from extender.console import say
from extender.kube.api_error import ApiError, MalformedError
from extender.kube.client import Client
from extender.kube.clock import SystemClock
from extender.kube.informers import end
from extender.kube.transport import TransportError
from extender.options import KubeconfigFile, ServerURL, split
from extender.recording.choosing import ALL, DEFAULT, ResourceNameError, make_plan
from extender.recording.files import RecordingError, RecordingFile
from extender.recording.format import FormatError
from extender.recording.recorder import Recorder, Source
from extender.recording.tape import DISCREET, OPEN, Discretion, Tape
from extender.stopping import told_to_stop
from policies.eviction.durations import parse_duration

if TYPE_CHECKING:
    from extender.kube.http_transport import AiohttpTransport

EXAMPLE: Final = "Example: reprieve record --kubeconfig ~/.kube/config --out events.jsonl.gz"

_RESOURCES: Final = f"Plurals, or {ALL}; default: {', '.join(n.split('.')[0] for n in DEFAULT)}."


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of the command line; ``seconds`` None means until a stop signal."""

    server: str | None
    kubeconfig: Path | None
    out: str
    resources: tuple[str, ...]
    namespace: str
    seconds: float | None
    discretion: Discretion


def record_events(
    out: Annotated[
        str, typer.Option("--out", metavar="F", help="Where to; F.gz: compressed; -: stdout.")
    ],
    kubeconfig: KubeconfigFile = None,
    server: ServerURL = None,
    resources: Annotated[str, typer.Option("--resources", metavar="NAME,…", help=_RESOURCES)] = "",
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NS", help="One; default: all.")
    ] = "",
    duration: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="Such as 90s; default: till Ctrl-C.")
    ] = "",
    include_sensitive: Annotated[  # noqa: FBT002 - a flag of the command line
        bool,
        typer.Option("--include-sensitive", help="Keep environment values, arguments, Secrets."),
    ] = False,
) -> None:
    """Record the objects and events of an API server, for reprieve replay."""
    if kubeconfig is not None and server is not None:
        raise ConfigError("--kubeconfig and --server exclude each other")
    seconds = _read_duration(duration)
    discretion = OPEN if include_sensitive else DISCREET
    wanted = Wanted(
        server, kubeconfig, out, tuple(split(resources)), namespace, seconds, discretion
    )
    try:
        asyncio.run(_record(wanted))
    except ResourceNameError as error:
        raise ConfigError(f"--resources: {error}") from None
    except (ApiError, MalformedError, TransportError, RecordingError, FormatError) as error:
        say(str(error))
        raise typer.Exit(1) from None


def _read_duration(text: str) -> float | None:
    if not text:
        return None
    try:
        nanoseconds = parse_duration(text)
    except ValueError:
        nanoseconds = 0
    if nanoseconds <= 0:
        raise ConfigError(f"--for: {text!r}; expected a duration such as 90s or 1h30m")
    return nanoseconds / 10**9


async def _record(wanted: Wanted) -> None:
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        transport = await _connected(wanted)
        stack.push_async_callback(transport.close)
        stop = told_to_stop()
        client = Client(transport)
        plan = await make_plan(client, wanted.resources, wanted.namespace)
        file = stack.enter_context(_opened(wanted.out))
        tape = Tape(file.write, clock, wanted.discretion)
        # Used for jitter only: no recorded event depends on it.
        source = Source(client, clock, random.Random())  # noqa: S311
        recorder = Recorder(source, plan, tape)
        say(f"recording {len(plan.followed)} resources of {transport.url} to {file.name}")
        helpers = [asyncio.create_task(file.keep_flushed(clock))]
        if wanted.seconds is not None:
            helpers.append(asyncio.create_task(clock.sleep(wanted.seconds)))
        for helper in helpers:
            helper.add_done_callback(lambda _: stop.set())
        try:
            await recorder.run(stop)
        finally:
            await end(helpers)
        say(f"recorded {tape.lines} events to {file.name}")


async def _connected(wanted: Wanted) -> AiohttpTransport:
    from extender.kube.connection import ConnectionConfigError, connect  # takes half a second

    try:
        return await connect(wanted.server, wanted.kubeconfig)
    except ConnectionConfigError as error:
        raise ConfigError(str(error)) from None


def _opened(out: str) -> RecordingFile:
    try:
        return RecordingFile(out)
    except RecordingError as error:
        raise ConfigError(f"--out: {error}") from None
