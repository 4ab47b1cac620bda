"""``reprieve replay``: plays a recording into a new fakeapi, and compares the results.

At ``max`` speed without a port there are no sockets, and the clock jumps from one event to the
next. With a port the world is served during the replay, and afterwards until a stop signal.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio import FIRST_COMPLETED
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from extender.config.strict_decoding import ConfigError
from extender.controllers.process.controller_manager import UnknownComponentError
from extender.protocol.verb_context import Search
from extender.terminal.command_line import OutputOption, stop_signal
from extender.terminal.output import Answer, OutputFormat, print_answer
from extender.terminal.program import log_line
from fakeapi.cli.serve_command import (
    KubeconfigOut,
    KubeletScriptFile,
    SchedulerConfig,
    UpstreamVersion,
    check_component_runs,
    check_scheduler_options,
    component_option_errors,
    read_component_file,
)
from fakeapi.controlplane.components import parse_run
from policies.kubernetes.duration import parse_duration

if TYPE_CHECKING:
    from extender.recording.files import Recording
    from fakeapi.replay.report import Report
    from fakeapi.testing.cluster import Cluster
    from fakeapi.testing.extenders import InProcessReprieve

EXAMPLE: Final = "replay events.jsonl.gz --run replicaset"
MAX_SPEED: Final = "max"
IN_PROCESS_EXTENDER: Final = "reprieve"

_SPEED: Final = (
    "Speed factor; max: without waiting. Default: max; with --port or --extender URL, 1."
)


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """The options of the command line; ``speed`` None is ``max``.

    ``cluster_options`` are the keyword arguments of the cluster for the attached components.
    ``reprieve`` is an extender in this process, ``remote_extenders`` are the URLs of others.
    ``head_start`` is in seconds of the host's time.
    """

    speed: float | None
    address: tuple[str, int] | None
    kubeconfig_out: Path | None
    cluster_options: dict[str, Any]
    reprieve: InProcessReprieve | None = None
    remote_extenders: tuple[str, ...] = ()
    head_start: float = 0.0


def replay_events(
    file: Annotated[
        str, typer.Argument(metavar="EVENTS.jsonl", help="Recording to replay; -: stdin.")
    ],
    speed: Annotated[str, typer.Option("--speed", metavar="X|max", help=_SPEED)] = "",
    run: Annotated[
        str, typer.Option("--run", metavar="NAME,…", help="Components to attach; default: none.")
    ] = "none",
    port: Annotated[
        int | None,
        typer.Option(
            "--port", min=0, max=65535, help="Port to serve the cluster on; 0: any free port."
        ),
    ] = None,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    kubeconfig_out: KubeconfigOut = None,
    kubelet: KubeletScriptFile = "",
    extender: Annotated[
        str,
        typer.Option(
            "--extender",
            metavar="URL|reprieve",
            help="Extender of the scheduler; reprieve: in this process.",
        ),
    ] = "",
    search: Annotated[
        Search, typer.Option("--search", help="Candidates of the in-process extender.")
    ] = Search.CLUSTER,
    scheduler_config: SchedulerConfig = "",
    upstream: UpstreamVersion = "",
    head_start: Annotated[
        str,
        typer.Option(
            "--head-start", metavar="DURATION", help="Delay before the first event, such as 10s."
        ),
    ] = "",
    seed: Annotated[int, typer.Option("--seed", help="Seed of UIDs and generated names.")] = 0,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Play a recording into a new fakeapi, and report the differences at the end."""
    from extender.recording.files import RecordingError, read_recording
    from fakeapi.replay.component_effects import UnsupportedComponentError, attach
    from fakeapi.replay.player import ReplayError
    from fakeapi.testing.extenders import ExtenderNotReadyError

    try:
        with component_option_errors(kubelet, scheduler_config):
            attach(parse_run(run))
            address = None if port is None else (host, port)
            arguments = SchedulerArguments(extender, search, scheduler_config, upstream)
            cluster_options = {
                "run": run,
                "seed": seed,
                "kubelet": read_component_file("--kubelet", kubelet, "kubelet", run),
            }
            reprieve = _create_in_process_extender(arguments, run, cluster_options)
            remote_extenders = _remote_extenders(cluster_options)
            pace = _read_speed(speed, max_by_default=address is None and not remote_extenders)
            if remote_extenders and pace is None:
                raise ConfigError(
                    "--speed: max is not possible with a remote extender; expected a number"
                )
            options = ReplayOptions(
                pace,
                address,
                kubeconfig_out,
                cluster_options,
                reprieve,
                remote_extenders,
                _read_head_start(head_start),
            )
            recording = read_recording(file)
            if recording.truncated_at:
                log_line(f"{recording.truncated_at}; events up to this point are replayed")
            report = asyncio.run(_replay(recording, options, output))
    except (UnknownComponentError, UnsupportedComponentError) as error:
        raise ConfigError(f"--{error}") from None
    except ExtenderNotReadyError as error:
        log_line(f"--extender: {error}")
        raise typer.Exit(1) from None
    except (RecordingError, ReplayError) as error:
        raise ConfigError(str(error)) from None
    if report is not None and not report.same:
        raise typer.Exit(1)


@dataclass(frozen=True, slots=True)
class SchedulerArguments:
    """The scheduler's options as they were passed on the command line."""

    extender: str
    search: Search
    configuration: str
    upstream: str

    @property
    def is_remote(self) -> bool:
        """Whether the extender runs outside this process."""
        return self.extender not in ("", IN_PROCESS_EXTENDER)


def _create_in_process_extender(
    arguments: SchedulerArguments, run: str, cluster_options: dict[str, Any]
) -> InProcessReprieve | None:
    """Add the scheduler's options to ``cluster_options``; return Reprieve if it is the extender."""
    content = read_component_file("--scheduler-config", arguments.configuration, "scheduler", run)
    url = arguments.extender if arguments.is_remote else ""
    check_scheduler_options(run, {"--extender": url, "--upstream": arguments.upstream})
    cluster_options |= {"scheduler": content, "extender": url, "upstream": arguments.upstream}
    if arguments.extender != IN_PROCESS_EXTENDER:
        return None
    check_component_runs("--extender", "scheduler", run)
    from fakeapi.testing.extenders import (  # the import takes a second
        REPRIEVE_URL,
        InProcessReprieve,
    )
    from policies.kubernetes.releases import NEWEST, release
    from policies.preemption.policy import SchedulerRules

    rules = SchedulerRules(release(arguments.upstream or NEWEST.name))
    reprieve = InProcessReprieve(arguments.search, rules)
    cluster_options["extenders"] = {REPRIEVE_URL: reprieve}
    return reprieve


def _remote_extenders(cluster_options: dict[str, Any]) -> tuple[str, ...]:
    """Return the URLs of the extenders that are called over HTTP; raises SchedulerConfigError."""
    from fakeapi.controlplane.components import read_scheduler_options, remote_extender_urls

    arguments = (
        cluster_options["scheduler"],
        cluster_options["extender"],
        cluster_options.get("extenders"),
        cluster_options["upstream"],
    )
    return remote_extender_urls(read_scheduler_options(*arguments))


def _read_speed(text: str, *, max_by_default: bool) -> float | None:
    """Read a speed, None for ``max``; an empty text is ``max`` if ``max_by_default``, else 1."""
    text = text or (MAX_SPEED if max_by_default else "1")
    if text == MAX_SPEED:
        return None
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed < float("inf"):
        raise ConfigError(
            f"--speed: {text!r}; expected {MAX_SPEED}, or a number above 0 such as 10"
        )
    return speed


def _read_head_start(text: str) -> float:
    if not text:
        return 0.0
    try:
        return max(parse_duration(text), 0) / 10**9
    except ValueError:
        raise ConfigError(f"--head-start: {text!r}; expected a duration such as 10s") from None


async def _replay(
    recording: Recording, options: ReplayOptions, output: OutputOption
) -> Report | None:
    """Play a recording and print the report; return None if a stop signal arrived before."""
    from fakeapi.testing.virtual_cluster import VirtualCluster

    if options.address is not None or options.speed is not None:
        return await _replay_served(recording, options, output)
    start = recording.header.start_ns
    async with (
        VirtualCluster(start_ns=start, **options.cluster_options) as cluster,
        _following(cluster, options.reprieve),
    ):
        report = await cluster.replay(recording, options.head_start)
    _print_report(report, output)
    return report


def _following(
    cluster: Cluster, reprieve: InProcessReprieve | None
) -> AbstractAsyncContextManager[None]:
    return nullcontext() if reprieve is None else reprieve.following(cluster)


async def _replay_served(
    recording: Recording, options: ReplayOptions, output: OutputOption
) -> Report | None:
    """Play into a served cluster; its URL is printed only if a port was given."""
    from fakeapi.apiserver.serving.virtual_clock import VirtualClock
    from fakeapi.testing.extenders import pause_during_calls, wait_extenders_ready
    from fakeapi.testing.fake_cluster import FakeCluster

    clock = VirtualClock(recording.header.start_ns)
    host, port = options.address or ("127.0.0.1", 0)
    wait = pause_during_calls(clock) if options.remote_extenders else None
    cluster = FakeCluster(
        host=host, port=port, clock=clock, waiting=wait, **options.cluster_options
    )
    stop = stop_signal()
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(cluster)
            if options.kubeconfig_out is not None:
                cluster.write_kubeconfig(options.kubeconfig_out)
        except OSError as error:
            raise ConfigError(f"{error.filename or cluster.address}: {error.strerror}") from None
        if options.address is not None:
            print(f"listening on {cluster.url}", flush=True)  # noqa: T201 - as all servers
        clock.run(options.speed or 0.0)
        await stack.enter_async_context(_following(cluster, options.reprieve))
        head_start = options.head_start * (options.speed or 1.0)
        begin = partial(wait_extenders_ready, options.remote_extenders)
        report = await _unless_stopped(cluster.replay(recording, head_start, begin), stop)
        if report is not None:
            clock.run(1.0)
            _print_report(report, output)
            if options.address is not None:
                await stop.wait()
    return report


async def _unless_stopped(
    playing: Coroutine[Any, Any, Report], stop: asyncio.Event
) -> Report | None:
    """Await the replay; return None if a stop signal arrives before its end."""
    play, stopped = asyncio.create_task(playing), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((play, stopped), return_when=FIRST_COMPLETED)
    finally:
        stopped.cancel()
        if not play.done():
            play.cancel()
    if stopped.done() and not play.done():
        log_line("stopped before the end of the recording; nothing was compared")
        await asyncio.wait((play,))
        return None
    return play.result()


def _print_report(report: Report, output: OutputOption) -> None:
    import msgspec

    from fakeapi.replay.report import report_page, report_table

    answer = Answer(
        lambda: msgspec.to_builtins(report),
        lambda rows: report_table(report, rows),
        page=lambda: report_page(report),
    )
    print_answer(output, answer)
    sys.stdout.flush()
