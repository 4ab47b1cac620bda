"""``reprieve replay``: a recording played into a fresh fakeapi, and compared.

At ``max`` speed without a port there are no sockets, and time jumps from one event to the next.
With a port the world is served while it is played, and after that until it is told to stop.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio import FIRST_COMPLETED
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from extender.config import ConfigError
from extender.options import OutputForm, show
from extender.stopping import told_to_stop
from fakeapi.controlplane.plane import UnknownPartError, parse_run

if TYPE_CHECKING:
    from extender.recording.files import Recording  # who needs it, loads it
    from fakeapi.replaying.report import Report

EXAMPLE: Final = "Example: reprieve replay events.jsonl.gz --run replicaset"
AT_ONCE: Final = "max"

_SPEED: Final = "So many times as fast as it was; max: at once. Default: max; with --port, 1."


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for on the command line; ``speed`` None is at once."""

    run: str
    speed: float | None
    address: tuple[str, int] | None
    seed: int
    kubelet: bytes
    kubeconfig_out: Path | None


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
    kubeconfig_out: Annotated[
        Path | None, typer.Option("--kubeconfig-out", metavar="F", help="Write a kubeconfig.")
    ] = None,
    kubelet: Annotated[
        Path | None,
        typer.Option("--kubelet", metavar="FILE", help="What simulated kubelets play."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="For UIDs and generated names.")] = 0,
    output: OutputForm = None,
) -> None:
    """Play a recording into a fresh fakeapi, and say what is different in the end."""
    from extender.recording.files import RecordingError, read_recording
    from fakeapi.controlplane.kubelet.outfits import ScriptError
    from fakeapi.replaying.parts import UnplayablePartError, attach
    from fakeapi.replaying.player import ReplayError

    try:
        attach(parse_run(run))
        address = None if port is None else (host, port)
        pace = _read_speed(speed or ("1" if address else AT_ONCE))
        wanted = Wanted(run, pace, address, seed, _book(kubelet, run), kubeconfig_out)
        recording = read_recording(file)
        if recording.broken:
            _say(f"{recording.broken}; played up to there")
        asyncio.run(_replay(recording, wanted, output))
    except (UnknownPartError, UnplayablePartError) as error:
        raise ConfigError(f"--{error}") from None
    except ScriptError as error:
        raise ConfigError(f"--kubelet: {kubelet}: {error}") from None
    except (RecordingError, ReplayError) as error:
        raise ConfigError(str(error)) from None


def _read_speed(text: str) -> float | None:
    if text == AT_ONCE:
        return None
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed < float("inf"):
        raise ConfigError(f"--speed: {text!r}; expected {AT_ONCE}, or a number above 0 such as 10")
    return speed


def _book(path: Path | None, run: str) -> bytes:
    if path is None:
        return b""
    if "kubelet" not in parse_run(run):
        raise ConfigError(f"--kubelet: no kubelets in --run {run}; expected 'kubelet' in it")
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"--kubelet: {path}: {error.strerror or error}") from None


async def _replay(recording: Recording, wanted: Wanted, output: OutputForm) -> None:
    from fakeapi.harness import VirtualCluster

    if wanted.address is not None or wanted.speed is not None:
        await _replay_served(recording, wanted, output)
        return
    start = recording.header.start_ns
    async with VirtualCluster(
        run=wanted.run, seed=wanted.seed, kubelet=wanted.kubelet, start_ns=start
    ) as cluster:
        _tell(await cluster.replay(recording), output)


async def _replay_served(recording: Recording, wanted: Wanted, output: OutputForm) -> None:
    """Play behind a socket, which nobody hears of unless a port was asked for."""
    from fakeapi.clock import VirtualClock
    from fakeapi.harness import FakeCluster

    clock = VirtualClock(recording.header.start_ns)
    host, port = wanted.address or ("127.0.0.1", 0)
    cluster = FakeCluster(
        run=wanted.run,
        seed=wanted.seed,
        host=host,
        port=port,
        clock=clock,
        kubelet=wanted.kubelet,
    )
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(cluster)
            if wanted.kubeconfig_out is not None:
                cluster.write_kubeconfig(wanted.kubeconfig_out)
        except OSError as error:
            raise ConfigError(f"{error.filename or cluster.address}: {error.strerror}") from None
        stop = told_to_stop()
        if wanted.address is not None:
            print(f"listening on {cluster.url}", flush=True)  # noqa: T201 - as servers promise
        clock.run(wanted.speed or 0.0)
        report = await _unless_stopped(cluster.replay(recording), stop)
        if report is not None:
            clock.run(1.0)
            _tell(report, output)
            if wanted.address is not None:
                await stop.wait()


async def _unless_stopped(
    playing: Coroutine[Any, Any, Report], stop: asyncio.Event
) -> Report | None:
    """Play; None if told to stop before the end."""
    play, told = asyncio.create_task(playing), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((play, told), return_when=FIRST_COMPLETED)
    finally:
        told.cancel()
        if not play.done():
            play.cancel()
    if told.done() and not play.done():
        _say("stopped before the end; nothing was compared")
        await asyncio.wait((play,))
        return None
    return play.result()


def _tell(report: Report, output: OutputForm) -> None:
    import msgspec

    from fakeapi.replaying.tables import report_table

    show(output, lambda: msgspec.to_builtins(report), lambda: report_table(report))
    sys.stdout.flush()


def _say(line: str) -> None:
    print(f"reprieve: {line}", file=sys.stderr)  # noqa: T201 - the command line's voice
