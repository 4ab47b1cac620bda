"""``reprieve serve``: the extender as a process, in a live cluster or an embedded one."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from extender.cli.config_validation import (
    LedgerFlags,
    load_serving_config,
    log_engine_warning,
    log_gate_warnings,
    log_interval_warnings,
)
from extender.config.component_config import Config
from extender.config.strict_decoding import ConfigError
from extender.kube.rest.clock import SystemClock
from extender.kube.rest.connection import connect
from extender.kube.rest.transport import Transport
from extender.observability.decision_log import DecisionLog
from extender.protocol.verb_context import Search
from extender.secure_serving.open_files import require_open_files
from extender.server.process import ServerProcess, run_server
from extender.server.python_gc import limit_collections
from extender.server.worker_processes import WorkerGroup, fork_workers
from extender.terminal.command_line import (
    FeatureGatesOption,
    KubeconfigOption,
    ServerOption,
    UpstreamOption,
    stop_signal,
)
from extender.terminal.log_output import log_to_stderr
from extender.terminal.loop_errors import log_loop_errors
from extender.terminal.program import log_line

EXAMPLE: Final = "serve --embedded demo --port 0"


@dataclass(frozen=True, slots=True)
class EmbeddedCluster:
    """A cluster in this process, a decision log, and a callback for when the extender is served."""

    transport: Transport
    decision_log: DecisionLog
    on_serving: Callable[[ServerProcess], Awaitable[None]]


StartEmbedded = Callable[[str], AbstractAsyncContextManager[EmbeddedCluster]]
"""Starts the cluster of a shipped scenario by name; raises ConfigError."""


_SWITCH_SECONDS: Final = 1e-5
"""A thread that writes the ledger waits so long for the interpreter after each execution while the
event loop has calls to decide. With Python's 5 ms, a busy process adds more entries than it writes.
"""


def serve_command(embed: StartEmbedded) -> Callable[..., None]:
    """Return the command; ``embed`` starts the cluster that ``--embedded`` names."""

    def serve(
        config: Annotated[
            Path | None, typer.Option("--config", metavar="F", help="A configuration file.")
        ] = None,
        kubeconfig: KubeconfigOption = None,
        server: ServerOption = None,
        embedded: Annotated[
            str | None,
            typer.Option("--embedded", metavar="SCENARIO", help="Start a bundled fake cluster."),
        ] = None,
        host: Annotated[str | None, typer.Option("--host", help="Default 127.0.0.1.")] = None,
        port: Annotated[
            int | None,
            typer.Option("--port", min=0, max=65535, help="Default 8888; 0: any free port."),
        ] = None,
        workers: Annotated[
            int | None,
            typer.Option("--workers", min=1, max=64, help="Processes that share the address."),
        ] = None,
        policy: Annotated[
            str | None, typer.Option("--policy", metavar="NAME|FILE", help="Order of victims.")
        ] = None,
        search: Annotated[
            Search | None, typer.Option("--search", help="Nodes that preempt considers.")
        ] = None,
        upstream: UpstreamOption = None,
        feature_gates: FeatureGatesOption = None,
        ledger: Annotated[
            str | None,
            typer.Option(
                "--ledger", metavar="PATH|DSN", help="Keep decisions in a file or in PostgreSQL."
            ),
        ] = None,
        ledger_snapshots: Annotated[  # noqa: FBT002 - a flag of the command line
            bool,
            typer.Option("--ledger-snapshots", help="Keep the input of each decision, too."),
        ] = False,
        ui_port: Annotated[
            int | None,
            typer.Option(
                "--ui-port",
                min=0,
                max=65535,
                help="Serve the pages of the ledger; 0: any free port. Needs $REPRIEVE_TOKEN.",
            ),
        ] = None,
    ) -> None:
        """Answer kube-scheduler's filter and preempt calls."""
        flags = {
            "host": host,
            "port": port,
            "workers": workers,
            "policy": policy,
            "search": search,
            "upstream": upstream,
            "feature_gates": feature_gates,
        }
        overrides = {name: value for name, value in flags.items() if value is not None}
        flags_of_ledger = LedgerFlags(ledger, ledger_snapshots, ui_port)
        settings = load_serving_config(config, overrides, SystemClock(), flags_of_ledger)
        log_to_stderr(settings.log.level, settings.log.format)
        log_gate_warnings(settings)
        log_interval_warnings(settings)
        if sum(source is not None for source in (kubeconfig, server, embedded)) > 1:
            raise ConfigError("--kubeconfig, --server and --embedded exclude each other")
        if embedded is not None and settings.tls is not None:
            raise ConfigError("--embedded serves plain HTTP; expected no tls")
        if embedded is None:
            log_engine_warning()
        if embedded is not None and settings.workers > 1:
            raise ConfigError("--embedded serves from one process; expected no workers")
        require_open_files(settings.limits.connections)
        sys.setswitchinterval(_SWITCH_SECONDS)
        group = _fork(settings) if settings.workers > 1 else None
        asyncio.run(_serve(settings, kubeconfig, server, embedded, embed, group))
        if group is not None and (problem := group.problem()):
            log_line(problem)
            raise typer.Exit(1)

    return serve


def _fork(config: Config) -> WorkerGroup:
    try:
        return fork_workers(config.workers, config.host, config.port)
    except OSError as error:
        raise _unusable_address(config, error) from None


def _unusable_address(config: Config, error: OSError) -> ConfigError:
    return ConfigError(f"{config.host}:{config.port}: {error.strerror}")


async def _serve(
    config: Config,
    kubeconfig: Path | None,
    server: str | None,
    embedded: str | None,
    embed: StartEmbedded,
    group: WorkerGroup | None,
) -> None:
    log_loop_errors()
    if group is not None:
        group.watch()
    async with AsyncExitStack() as stack:
        cluster: EmbeddedCluster | None = None
        transport: Transport
        if embedded is not None:
            cluster = await stack.enter_async_context(embed(embedded))
            transport = cluster.transport
        else:
            transport = await connect(server, kubeconfig)
            stack.push_async_callback(transport.close)
        decision_log = None if cluster is None else cluster.decision_log
        # Used for jitter only: no decision depends on it.
        rng = random.Random()  # noqa: S311
        try:
            extender = await stack.enter_async_context(
                run_server(config, transport, SystemClock(), rng, decision_log, workers=group)
            )
        except OSError as error:
            raise _unusable_address(config, error) from None
        stop = stop_signal()  # before the line that tells a parent process that the server is up
        if group is not None:
            group.call_at_end(stop.set)
        if group is None or group.is_primary:
            print(f"listening on {extender.url}", flush=True)  # noqa: T201 - of the interface
        if extender.page_url:
            print(f"ledger on {extender.page_url}", flush=True)  # noqa: T201
        if cluster is not None:
            await cluster.on_serving(extender)
        limiting = asyncio.create_task(
            limit_collections(extender.wait_synced, SystemClock(), extender.is_idle)
        )
        await stop.wait()
        limiting.cancel()
