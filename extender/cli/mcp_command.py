"""``reprieve mcp``: tools of the Model Context Protocol, about a ledger and a cluster."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Final

import typer

from extender.cli.config_validation import is_loopback
from extender.cli.explain_commands import explanation_rules, explanation_settings
from extender.cli.ledger_source import ENVIRONMENT, LedgerOption
from extender.config.access_token import VARIABLE, read_token
from extender.config.component_config import Config
from extender.explain.cluster_objects import SCHEDULING_KINDS, ClusterObjects, read_objects
from extender.explain.cluster_source import ClusterSource
from extender.kube.rest.clock import SystemClock
from extender.ledger.storage.location import open_database
from extender.ledger.storage.queries import Ledger
from extender.ledger.storage.sqlite_database import Access
from extender.mcp.address import Address
from extender.mcp.tools import ClusterPort, Tool, cluster_tools, ledger_tools
from extender.terminal.command_line import (
    ConfigFileOption,
    ContextOption,
    KubeconfigOption,
    ServerOption,
    split_names,
    stop_signal,
)
from extender.terminal.program import program_version
from policies.kubernetes.input_error import InputError

EXAMPLE: Final = "mcp --ledger ledger.db --kubeconfig ~/.kube/config"
_HOST: Final = "127.0.0.1"
_PORT: Final = 8890


class McpOptionsError(InputError):
    """The options are incomplete or contradict each other."""


def mcp_command(unknown_fields: Callable[[bytes], Iterable[str]]) -> Callable[..., None]:
    """Return the command; ``unknown_fields`` yields a line for each unknown field of an object."""

    def serve_tools(
        ledger: LedgerOption = None,
        cluster: Annotated[
            list[str] | None,
            typer.Option(
                "--cluster", metavar="FILE", help="Objects of a cluster; may be repeated."
            ),
        ] = None,
        kubeconfig: KubeconfigOption = None,
        context: ContextOption = None,
        server: ServerOption = None,
        config: ConfigFileOption = None,
        http: Annotated[  # noqa: FBT002 - a flag of the command line
            bool, typer.Option("--http", help="Serve HTTP instead of standard input and output.")
        ] = False,
        host: Annotated[
            str | None, typer.Option("--host", help=f"Address for --http; default: {_HOST}.")
        ] = None,
        port: Annotated[
            int | None,
            typer.Option(
                "--port",
                min=0,
                max=65535,
                help=f"Port for --http; default: {_PORT}; 0: any free port.",
            ),
        ] = None,
        hosts: Annotated[
            str | None,
            typer.Option(
                "--hosts",
                metavar="NAME,…",
                help="Names by which clients of --http reach it, besides those of this machine.",
            ),
        ] = None,
        token_file: Annotated[
            str | None,
            typer.Option(
                "--token-file",
                metavar="F",
                help=f"The token of clients of --http; default: ${VARIABLE}.",
            ),
        ] = None,
    ) -> None:
        """Serve tools to agents and scripts by the Model Context Protocol; they only read.

        The tools why and list need a ledger, explain and simulate need a cluster.
        """
        options = {"--host": host, "--port": port, "--hosts": hosts, "--token-file": token_file}
        given = [option for option, value in options.items() if value is not None]
        if given and not http:
            raise McpOptionsError(f"{given[0]}: expected --http as well")
        settings = explanation_settings(config, None, None)
        source = _require_source(ClusterSource(cluster or (), kubeconfig, context, server))
        location = ledger or os.environ.get(ENVIRONMENT)
        if not location and not source.given:
            raise McpOptionsError(
                "expected --ledger, or a cluster: --cluster, --kubeconfig, --context or --server"
            )
        address = None
        if http:
            port = _PORT if port is None else port
            address = _address(settings, host or _HOST, port, hosts or "", token_file or "")
        rules = explanation_rules(settings, None)
        cluster_port = ClusterPort(lambda: _read_cluster(source), rules, unknown_fields)
        asyncio.run(_serve(partial(_tools, location, source, cluster_port), address))

    return serve_tools


def _require_source(source: ClusterSource) -> ClusterSource:
    """Return the source of a cluster. Raise ClusterOptionsError and McpOptionsError."""
    source.require_one()
    if "-" in source.files:
        raise McpOptionsError("--cluster -: the client uses standard input; expected a file")
    return source


def _address(settings: Config, host: str, port: int, hosts: str, token_file: str) -> Address:
    """Return the address with a token. Raise McpOptionsError and ConfigError."""
    if not settings.allow_plain_http and not is_loopback(host):
        raise McpOptionsError(
            f"--host: {host} is no loopback address; expected one, or allowPlainHTTP: true in "
            "--config"
        )
    token = read_token(token_file)
    if not token:
        raise McpOptionsError(f"--http: needs a token; expected --token-file, or ${VARIABLE}")
    return Address(host, port, token, tuple(split_names(hosts)))


async def _tools(
    location: str | None, source: ClusterSource, cluster: ClusterPort
) -> Sequence[Tool]:
    """Return the tools whose sources are configured.

    Raise LedgerError and ManifestError if a ledger or a file cannot be read.
    """
    tools: list[Tool] = []
    now_ns = SystemClock().now_ns
    if location:
        async with _open_ledger(location):
            tools += ledger_tools(partial(_open_ledger, location), now_ns)
    if source.files:
        await cluster.read()
    if source.given:
        tools += cluster_tools(cluster, now_ns)
    return tools


@asynccontextmanager
async def _open_ledger(location: str) -> AsyncIterator[Ledger]:
    database = await open_database(location, Access.READ)
    try:
        ledger = Ledger(database)
        await ledger.require()
        yield ledger
    finally:
        await database.close()


async def _read_cluster(source: ClusterSource) -> ClusterObjects:
    if source.files:
        return await asyncio.to_thread(read_objects, source.files)
    return await source.list_live(SCHEDULING_KINDS)


async def _serve(tools: Callable[[], Awaitable[Sequence[Tool]]], address: Address | None) -> None:
    """Serve the tools at an address, or on standard input and output."""
    try:
        from extender.mcp.http_server import serve_http
        from extender.mcp.server import mcp_server, serve_stdio
    except ImportError:
        raise McpOptionsError(
            "reprieve mcp needs the extra 'mcp': pip install 'reprieve[mcp]'"
        ) from None
    server = mcp_server(await tools(), program_version())
    if address is None:
        await serve_stdio(server)
    else:
        await serve_http(server, address, stop_signal(), _print_url)


def _print_url(url: str) -> None:
    print(f"listening on {url}", flush=True)  # noqa: T201 - as all servers
