"""The command ``record`` and its options; slow imports are deferred until it runs."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from extender.config.strict_decoding import ConfigError
from extender.kube.informers.reflector import ReflectorContext
from extender.kube.informers.shared_informer import cancel_tasks
from extender.kube.rest.api_errors import ApiError, MalformedError
from extender.kube.rest.client import Client
from extender.kube.rest.clock import SystemClock
from extender.kube.rest.connection import connect
from extender.kube.rest.rate_limited_log import quiet_log
from extender.kube.rest.transport import TransportError
from extender.recording.event_writer import REDACTED, UNREDACTED, RecordingWriter, RedactionRules
from extender.recording.files import RecordingError, RecordingFile
from extender.recording.format import FormatError
from extender.recording.recorder import Recorder
from extender.recording.resource_selection import ALL, DEFAULT, ResourceNameError, make_plan
from extender.terminal.command_line import KubeconfigOption, ServerOption, split_names, stop_signal
from extender.terminal.program import log_line
from policies.kubernetes.duration import parse_duration

EXAMPLE: Final = "record --kubeconfig ~/.kube/config --out events.jsonl.gz"

_RESOURCES: Final = (
    f"Plural names, or {ALL}; default: {', '.join(n.split('.')[0] for n in DEFAULT)}."
)


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """The options of the command line; ``seconds`` None means until a stop signal."""

    server: str | None
    kubeconfig: Path | None
    out: str
    resources: tuple[str, ...]
    namespace: str
    seconds: float | None
    redaction: RedactionRules


def record_events(
    out: Annotated[
        str, typer.Option("--out", metavar="F", help="Output file; F.gz: compressed; -: stdout.")
    ],
    kubeconfig: KubeconfigOption = None,
    server: ServerOption = None,
    resources: Annotated[str, typer.Option("--resources", metavar="NAME,…", help=_RESOURCES)] = "",
    namespace: Annotated[
        str,
        typer.Option("--namespace", "-n", metavar="NS", help="Only this namespace; default: all."),
    ] = "",
    duration: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="Such as 90s; default: until Ctrl-C.")
    ] = "",
    include_sensitive: Annotated[  # noqa: FBT002 - a flag of the command line
        bool,
        typer.Option(
            "--include-sensitive", help="Do not redact environment values, arguments, Secrets."
        ),
    ] = False,
) -> None:
    """Record the objects and events of an API server, for reprieve replay."""
    if kubeconfig is not None and server is not None:
        raise ConfigError("--kubeconfig and --server exclude each other")
    seconds = _read_duration(duration)
    redaction = UNREDACTED if include_sensitive else REDACTED
    names = tuple(split_names(resources))
    options = RecordOptions(server, kubeconfig, out, names, namespace, seconds, redaction)
    try:
        asyncio.run(_run_recorder(options))
    except ResourceNameError as error:
        raise ConfigError(f"--resources: {error}") from None
    except (ApiError, MalformedError, TransportError, RecordingError, FormatError) as error:
        log_line(str(error))
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


async def _run_recorder(options: RecordOptions) -> None:
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        transport = await connect(options.server, options.kubeconfig)
        stack.push_async_callback(transport.close)
        client = Client(transport)
        plan = await make_plan(client, options.resources, options.namespace)
        stop = stop_signal()  # before the file is created, which the end of the block completes
        file = stack.enter_context(_open_file(options.out))
        writer = RecordingWriter(file.write, clock, options.redaction)
        # Used for jitter only: no recorded event depends on it.
        context = ReflectorContext(client, clock, random.Random(), quiet_log())  # noqa: S311
        recorder = Recorder(context, plan, writer)
        log_line(f"recording {len(plan.sources)} resources of {transport.url} to {file.name}")
        helpers = [asyncio.create_task(file.flush_periodically(clock))]
        if options.seconds is not None:
            helpers.append(asyncio.create_task(clock.sleep(options.seconds)))
        for helper in helpers:
            helper.add_done_callback(lambda _: stop.set())
        try:
            await recorder.run(stop)
        finally:
            await cancel_tasks(helpers)
        log_line(f"recorded {writer.lines} events to {file.name}")


def _open_file(out: str) -> RecordingFile:
    try:
        return RecordingFile(out)
    except RecordingError as error:
        raise ConfigError(f"--out: {error}") from None
