"""``reprieve controllers``: the workload controllers against any API server.

The controllers use a client, as with fakeapi, and run until a stop signal. Then they accept no new
keys and finish the queued work within a time limit. With leader election they run while they hold a
Lease; a process that loses the Lease exits, and has to be restarted. Webhooks are served in any
case: the API server may call those of every process.
"""

from __future__ import annotations

import asyncio
import random
import socket
from asyncio import FIRST_COMPLETED
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias
from uuid import uuid4

import typer
from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

from extender.config.strict_decoding import ConfigError
from extender.controllers.process.controller_manager import (
    SPREAD_WEBHOOKS,
    WORKLOADS,
    ControllerManager,
    ManagerOptions,
    UnknownComponentError,
    companions_of,
    parse_workloads,
)
from extender.controllers.process.webhook_server import (
    WebhookAddress,
    read_webhook_address,
    serve_webhooks,
)
from extender.kube.controller_runtime.event_recorder import EventWriter
from extender.kube.controller_runtime.leader_election import LeaderElector, LeadershipLostError
from extender.kube.controller_runtime.lease_lock import LeaseLock
from extender.kube.rest.client import Client
from extender.kube.rest.clock import SystemClock
from extender.kube.rest.connection import connect
from extender.kube.workloadspread.patch_validation import PodSpecValidation
from extender.observability.metrics import CONTENT_TYPE
from extender.server.python_gc import limit_collections
from extender.terminal.command_line import KubeconfigOption, ServerOption, stop_signal
from extender.terminal.program import log_line
from policies.workloadspread.quirks import Quirks, UnknownModeError, quirks_of_mode

EXAMPLE: Final = "controllers --kubeconfig ~/.kube/config --run replicaset"
LEASE: Final = "kube-system/reprieve-controllers"
FINISH_SECONDS: Final = 10.0
FREEZE_INTERVAL_SECONDS: Final = 10.0
"""Interval at which long-lived objects are excluded from garbage collection: a controller's cache
of many pods is filled when the controller first needs it."""

RunControllers: TypeAlias = Callable[[], Coroutine[Any, Any, None]]

_COMPONENT: Final = "reprieve-controllers"

_QUIRKS: Final = "WorkloadSpread: with OpenKruise's quirks (upstream) or without (fixed)."
_RUN: Final = f"Controllers to run: {', '.join(WORKLOADS)}."


@dataclass(frozen=True, slots=True)
class ControllersOptions:
    """The options of the command line."""

    names: tuple[str, ...]
    server: str | None
    kubeconfig: Path | None
    metrics_address: tuple[str, int] | None
    webhook_address: WebhookAddress | None
    lease: tuple[str, str] | None
    quirks: Quirks
    check_pod: PodSpecValidation


def controllers_command(check_pod: PodSpecValidation) -> Callable[..., None]:
    """Return the command; ``check_pod`` validates the pods that a WorkloadSpread patches."""

    def run_controllers(
        kubeconfig: KubeconfigOption = None,
        server: ServerOption = None,
        run: Annotated[str, typer.Option("--run", metavar="NAME,…", help=_RUN)] = ",".join(
            WORKLOADS
        ),
        quirks: Annotated[str, typer.Option("--quirks", metavar="MODE", help=_QUIRKS)] = "fixed",
        metrics_port: Annotated[
            int | None,
            typer.Option(
                "--metrics-port", min=0, max=65535, help="Port of /metrics; 0: any free port."
            ),
        ] = None,
        metrics_host: Annotated[
            str, typer.Option("--metrics-host", help="Address of /metrics.")
        ] = "127.0.0.1",
        webhook_port: Annotated[
            int | None,
            typer.Option(
                "--webhook-port",
                min=0,
                max=65535,
                help="HTTPS port of the webhooks; 0: any free port.",
            ),
        ] = None,
        webhook_host: Annotated[
            str, typer.Option("--webhook-host", help="Address of the webhooks.")
        ] = "127.0.0.1",
        webhook_url: Annotated[
            str,
            typer.Option(
                "--webhook-url", metavar="URL", help="URL of the webhooks for the API server."
            ),
        ] = "",
        webhook_certs: Annotated[
            Path | None,
            typer.Option(
                "--webhook-certs",
                metavar="DIR",
                help="Holds tls.crt, tls.key and ca.crt; default: generated.",
            ),
        ] = None,
        leader_elect: Annotated[  # noqa: FBT002 - a flag of the command line
            bool, typer.Option("--leader-elect", help="Run only while holding the Lease.")
        ] = False,
        lease: Annotated[
            str, typer.Option("--lease", metavar="NAMESPACE/NAME", help="Name of the Lease.")
        ] = LEASE,
    ) -> None:
        """Run the workload controllers against an API server."""
        if kubeconfig is not None and server is not None:
            raise ConfigError("--kubeconfig and --server exclude each other")
        try:
            names = parse_workloads(run)
            followed = quirks_of_mode(quirks)
        except (UnknownModeError, UnknownComponentError) as error:
            raise ConfigError(f"--{error}") from None
        webhooks = read_webhook_address(webhook_host, webhook_port, webhook_url, webhook_certs)
        if webhooks and not any(SPREAD_WEBHOOKS in companions_of(name) for name in names):
            raise ConfigError(f"--webhook-port: no webhooks in --run {','.join(names)}")
        options = ControllersOptions(
            names,
            server,
            kubeconfig,
            None if metrics_port is None else (metrics_host, metrics_port),
            webhooks,
            _read_lease(lease) if leader_elect else None,
            followed,
            check_pod,
        )
        try:
            asyncio.run(_run(options))
        except LeadershipLostError as error:
            log_line(str(error))
            raise typer.Exit(1) from None

    return run_controllers


def _read_lease(text: str) -> tuple[str, str]:
    namespace, _, name = text.partition("/")
    if not namespace or not name or "/" in name:
        raise ConfigError(f"--lease: {text!r}; expected NAMESPACE/NAME, such as {LEASE}")
    return namespace, name


async def _run(options: ControllersOptions) -> None:
    async with AsyncExitStack() as stack:
        transport = await connect(options.server, options.kubeconfig)
        stack.push_async_callback(transport.close)
        registry, url, webhooks = CollectorRegistry(), "", None
        if options.metrics_address:
            url = await stack.enter_async_context(
                _serve_metrics(registry, *options.metrics_address)
            )
        if options.webhook_address:
            webhooks = await stack.enter_async_context(
                serve_webhooks(options.webhook_address, options.check_pod)
            )
        # Jitter only: no decision depends on it.
        rng = random.Random()  # noqa: S311
        clock, client = SystemClock(), Client(transport)
        stop = stop_signal()  # before the line after which callers may send the signal
        if url:
            print(f"listening on {url}", flush=True)  # noqa: T201 - as all servers
        if webhooks:
            print(f"webhooks on {webhooks.address}", flush=True)  # noqa: T201 - the server's address
        names = ", ".join(options.names)
        print(f"running {names} on {transport.url}", flush=True)  # noqa: T201 - as all servers
        endpoint = webhooks.endpoint if webhooks else None
        shared = ManagerOptions(registry=registry, quirks=options.quirks, webhook_endpoint=endpoint)
        manager = ControllerManager(client, clock, rng, options.names, shared)
        stack.push_async_callback(manager.stop)
        limiting = asyncio.create_task(
            limit_collections(_no_wait, clock, interval_seconds=FREEZE_INTERVAL_SECONDS)
        )
        stack.callback(limiting.cancel)
        if webhooks:
            manager[SPREAD_WEBHOOKS].start()

        async def work() -> None:
            manager.start()
            try:
                await _run_until_stopped(stop, manager)
            finally:
                await manager.stop()

        if options.lease is None:
            await work()
        else:
            events = EventWriter(client, clock, rng)
            lock = LeaseLock(client, *options.lease, events.recorder(_COMPONENT))
            identity = f"{socket.gethostname()}_{uuid4()}"
            elector = LeaderElector(lock, identity, clock, rng)
            await _while_leading(elector, work, stop, manager)
            await events.flush()


async def _no_wait() -> None:
    """Return at once: the controllers decide which caches they fill, and when."""


async def _while_leading(
    elector: LeaderElector, work: RunControllers, stop: asyncio.Event, manager: ControllerManager
) -> None:
    """Run ``work`` once elected, until stopped; raises LeadershipLostError if the Lease is lost."""
    elected = asyncio.Event()

    async def begin() -> None:
        elected.set()
        await work()

    electing = asyncio.create_task(elector.run(begin))
    stopped = asyncio.create_task(stop.wait())
    failed = asyncio.create_task(manager.wait_for_failure())
    await asyncio.wait((electing, stopped, failed), return_when=FIRST_COMPLETED)
    stopped.cancel()
    failed.cancel()
    if not elected.is_set():
        electing.cancel()  # stopped before the election
    await asyncio.wait((electing,))
    if not electing.cancelled():
        electing.result()


async def _run_until_stopped(stop: asyncio.Event, manager: ControllerManager) -> None:
    """Wait for a stop signal and for queued work to finish, or for the failure of a component."""
    failed = asyncio.create_task(manager.wait_for_failure())
    stopped = asyncio.create_task(stop.wait())
    tasks = [failed, stopped]
    try:
        await asyncio.wait(tasks, return_when=FIRST_COMPLETED)
        tasks.append(asyncio.create_task(manager.drain()))
        await asyncio.wait((failed, tasks[-1]), timeout=FINISH_SECONDS, return_when=FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


@asynccontextmanager
async def _serve_metrics(registry: CollectorRegistry, host: str, port: int) -> AsyncIterator[str]:
    """Serve ``/metrics`` until the block ends; yield the base URL. Raises ConfigError."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE})

    app = web.Application()
    app.router.add_get("/metrics", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise ConfigError(f"--metrics-port: {port}: {error.strerror or error}") from None
        yield f"http://{host}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
