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

from extender.config import ConfigError
from extender.console import say
from extender.options import OutputForm, show
from extender.stopping import told_to_stop
from extender.verdict import Search
from fakeapi.controlplane.plane import UnknownPartError
from fakeapi.orders import parse_run
from fakeapi.partoptions import (
    FollowedScheduler,
    KubeconfigOut,
    KubeletBook,
    SchedulerConfig,
    check_part,
    check_scheduler,
    given,
    named,
)
from policies.eviction.durations import parse_duration
from policies.upstream import UnknownReleaseError

if TYPE_CHECKING:
    from extender.recording.files import Recording
    from fakeapi.harness import Cluster
    from fakeapi.insider import Reprieve
    from fakeapi.replaying.report import Report

EXAMPLE: Final = "Example: reprieve replay events.jsonl.gz --run replicaset"
AT_ONCE: Final = "max"
IN_PROCESS: Final = "reprieve"

_SPEED: Final = (
    "So many times as fast as it was; max: at once. Default: max; with --port or --extender URL, 1."
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of the command line; ``speed`` None is ``max``.

    ``cluster_options`` are the keyword arguments of the cluster for the attached components.
    ``reprieve`` is an extender in this process, ``remote_extenders`` are the URLs of others.
    ``head_start`` is in seconds of the host's time.
    """

    speed: float | None
    address: tuple[str, int] | None
    kubeconfig_out: Path | None
    orders: dict[str, Any]
    reprieve: Reprieve | None = None
    outsiders: tuple[str, ...] = ()
    head_start: float = 0.0


def replay_events(
    file: Annotated[str, typer.Argument(metavar="EVENTS.jsonl", help="A recording; -: stdin.")],
    speed: Annotated[str, typer.Option("--speed", metavar="X|max", help=_SPEED)] = "",
    run: Annotated[
        str, typer.Option("--run", metavar="NAME,…", help="Parts to attach to it; default: none.")
    ] = "none",
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, help="Serve it meanwhile; 0: a free one."),
    ] = None,
    host: Annotated[str, typer.Option("--host", help="Where to listen.")] = "127.0.0.1",
    kubeconfig_out: KubeconfigOut = None,
    kubelet: KubeletBook = "",
    extender: Annotated[
        str,
        typer.Option(
            "--extender", metavar="URL|reprieve", help="Whom the scheduler asks; or Reprieve here."
        ),
    ] = "",
    search: Annotated[
        Search, typer.Option("--search", help="How Reprieve here searches, if it is asked.")
    ] = Search.OFFERED,
    scheduler_config: SchedulerConfig = "",
    upstream: FollowedScheduler = "",
    head_start: Annotated[
        str,
        typer.Option("--head-start", metavar="DURATION", help="For who watches, to catch up: 10s."),
    ] = "",
    seed: Annotated[int, typer.Option("--seed", help="For UIDs and generated names.")] = 0,
    output: OutputForm = None,
) -> None:
    """Play a recording into a new fakeapi, and report the differences at the end."""
    from extender.recording.files import RecordingError, read_recording
    from fakeapi.controlplane.kubelet.outfits import ScriptError
    from fakeapi.controlplane.scheduler.outfits import SchedulerError
    from fakeapi.outsider import SilentError
    from fakeapi.replaying.parts import UnplayablePartError, attach
    from fakeapi.replaying.player import ReplayError

    try:
        attach(parse_run(run))
        address = None if port is None else (host, port)
        asked = _Asked(extender, search, scheduler_config, upstream)
        orders = {"run": run, "seed": seed, "kubelet": given("--kubelet", kubelet, "kubelet", run)}
        reprieve = _hire(asked, run, orders)
        outsiders = _outsiders(orders)
        pace = _read_speed(speed, at_once=address is None and not outsiders)
        if outsiders and pace is None:
            raise ConfigError(
                "--speed: max; an extender elsewhere answers in time; expected a number"
            )
        lead = _read_head_start(head_start)
        wanted = Wanted(pace, address, kubeconfig_out, orders, reprieve, outsiders, lead)
        recording = read_recording(file)
        if recording.broken:
            say(f"{recording.broken}; played up to there")
        asyncio.run(_replay(recording, wanted, output))
    except (UnknownPartError, UnplayablePartError) as error:
        raise ConfigError(f"--{error}") from None
    except ScriptError as error:
        raise ConfigError(f"--kubelet: {named(kubelet)}: {error}") from None
    except SchedulerError as error:
        raise ConfigError(f"--scheduler-config: {named(scheduler_config)}: {error}") from None
    except UnknownReleaseError as error:
        raise ConfigError(f"--upstream: {error}") from None
    except SilentError as error:
        say(f"--extender: {error}")
        raise typer.Exit(1) from None
    except (RecordingError, ReplayError) as error:
        raise ConfigError(str(error)) from None


@dataclass(frozen=True, slots=True)
class _Asked:
    """The scheduler's options as they were passed on the command line."""

    extender: str
    search: Search
    configuration: str
    upstream: str

    @property
    def elsewhere(self) -> bool:
        """Whether the extender runs outside this process."""
        return self.extender not in ("", IN_PROCESS)


def _hire(asked: _Asked, run: str, orders: dict[str, Any]) -> Reprieve | None:
    """Add the scheduler's options to ``cluster_options``; return Reprieve if it is the extender."""
    given_file = given("--scheduler-config", asked.configuration, "scheduler", run)
    url = asked.extender if asked.elsewhere else ""
    check_scheduler(run, {"--extender": url, "--upstream": asked.upstream})
    orders |= {"scheduler": given_file, "extender": url, "upstream": asked.upstream}
    if asked.extender != IN_PROCESS:
        return None
    check_part("--extender", "scheduler", run)
    from fakeapi.insider import REPRIEVE, Reprieve  # the import takes a second
    from policies.upstream import NEWEST, release

    reprieve = Reprieve(asked.search, release(asked.upstream) if asked.upstream else NEWEST)
    orders["extenders"] = {REPRIEVE: reprieve}
    return reprieve


def _outsiders(orders: dict[str, Any]) -> tuple[str, ...]:
    """Return the URLs of the extenders that are called over HTTP; raises SchedulerError."""
    from fakeapi.orders import elsewhere, read_orders

    told = orders["scheduler"], orders["extender"], orders.get("extenders"), orders["upstream"]
    return elsewhere(read_orders(*told))


def _read_speed(text: str, *, at_once: bool) -> float | None:
    """Read a speed, None for ``max``; an empty text is ``max`` if ``max_by_default``, else 1."""
    text = text or (AT_ONCE if at_once else "1")
    if text == AT_ONCE:
        return None
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed < float("inf"):
        raise ConfigError(f"--speed: {text!r}; expected {AT_ONCE}, or a number above 0 such as 10")
    return speed


def _read_head_start(text: str) -> float:
    if not text:
        return 0.0
    try:
        return max(parse_duration(text), 0) / 10**9
    except ValueError:
        raise ConfigError(f"--head-start: {text!r}; expected a duration such as 10s") from None


async def _replay(recording: Recording, wanted: Wanted, output: OutputForm) -> None:
    from fakeapi.harness import VirtualCluster

    if wanted.address is not None or wanted.speed is not None:
        await _replay_served(recording, wanted, output)
        return
    start = recording.header.start_ns
    async with (
        VirtualCluster(start_ns=start, **wanted.orders) as cluster,
        _followed(cluster, wanted.reprieve),
    ):
        _tell(await cluster.replay(recording, wanted.head_start), output)


def _followed(cluster: Cluster, reprieve: Reprieve | None) -> AbstractAsyncContextManager[None]:
    return nullcontext() if reprieve is None else reprieve.following(cluster)


async def _replay_served(recording: Recording, wanted: Wanted, output: OutputForm) -> None:
    """Play into a served cluster; its URL is printed only if a port was given."""
    from fakeapi.clock import VirtualClock
    from fakeapi.harness import FakeCluster
    from fakeapi.outsider import standing_still, until_ready

    clock = VirtualClock(recording.header.start_ns)
    host, port = wanted.address or ("127.0.0.1", 0)
    waiting = standing_still(clock) if wanted.outsiders else None
    cluster = FakeCluster(host=host, port=port, clock=clock, waiting=waiting, **wanted.orders)
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(cluster)
            if wanted.kubeconfig_out is not None:
                cluster.write_kubeconfig(wanted.kubeconfig_out)
        except OSError as error:
            raise ConfigError(f"{error.filename or cluster.address}: {error.strerror}") from None
        stop = told_to_stop()
        if wanted.address is not None:
            print(f"listening on {cluster.url}", flush=True)  # noqa: T201 - as all servers
        clock.run(wanted.speed or 0.0)
        await stack.enter_async_context(_followed(cluster, wanted.reprieve))
        lead = wanted.head_start * (wanted.speed or 1.0)
        begin = partial(until_ready, wanted.outsiders)
        report = await _unless_stopped(cluster.replay(recording, lead, begin), stop)
        if report is not None:
            clock.run(1.0)
            _tell(report, output)
            if wanted.address is not None:
                await stop.wait()


async def _unless_stopped(
    playing: Coroutine[Any, Any, Report], stop: asyncio.Event
) -> Report | None:
    """Await the replay; return None if a stop signal arrives before its end."""
    play, told = asyncio.create_task(playing), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((play, told), return_when=FIRST_COMPLETED)
    finally:
        told.cancel()
        if not play.done():
            play.cancel()
    if told.done() and not play.done():
        say("stopped before the end; nothing was compared")
        await asyncio.wait((play,))
        return None
    return play.result()


def _tell(report: Report, output: OutputForm) -> None:
    import msgspec

    from fakeapi.replaying.tables import report_table

    show(output, lambda: msgspec.to_builtins(report), lambda: report_table(report))
    sys.stdout.flush()
