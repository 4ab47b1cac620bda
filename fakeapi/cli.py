"""The ``reprieve`` command: what the extender offers, and fakeapi beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import orjson
import typer

from extender.cli import Embedded, build, run
from extender.config import ConfigError
from extender.kube.manifests import ManifestError, read_manifests
from extender.serving import told_to_stop
from fakeapi import demo
from fakeapi.api.errors import StatusError
from fakeapi.harness import FakeCluster, write_kubeconfig
from fakeapi.scenarios import UnknownScenarioError, scenario


@asynccontextmanager
async def embedded_cluster(name: str) -> AsyncIterator[Embedded]:
    """Start a shipped cluster in this process. Raises ConfigError for an unknown name."""
    try:
        objects = scenario(name)
    except UnknownScenarioError as error:
        raise ConfigError(f"--embedded: {error}") from None
    async with FakeCluster() as cluster:
        cluster.load(objects)
        witness = demo.Witness()
        console = demo.wide_console()
        yield Embedded(
            cluster.local_transport(),
            witness,
            lambda extender: demo.tell(extender, witness, console),
        )


def serve_fakeapi(
    host: Annotated[str, typer.Option("--host", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: a free one.")] = 8001,
    load: Annotated[
        list[str] | None,
        typer.Option("--load", metavar="FILE", help="Objects to start with; may be repeated."),
    ] = None,
    kubeconfig_out: Annotated[
        Path | None, typer.Option("--kubeconfig-out", metavar="F", help="Write a kubeconfig.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="For UIDs and generated names.")] = 0,
) -> None:
    """Serve a Kubernetes API from this process."""
    asyncio.run(_serve(host, port, load or [], kubeconfig_out, seed))


async def _serve(
    host: str, port: int, files: list[str], kubeconfig_out: Path | None, seed: int
) -> None:
    objects = [(file, read_manifests(file)) for file in files]
    cluster = FakeCluster(seed=seed, host=host, port=port)
    for file, manifests in objects:
        try:
            cluster.load(orjson.loads(manifest.raw) for manifest in manifests)
        except StatusError as error:
            raise ManifestError(f"{file}: {error}") from None
    try:
        async with cluster:
            if kubeconfig_out is not None:
                write_kubeconfig(kubeconfig_out, cluster.url)
            stop = told_to_stop()  # before the line that invites others to send the signal
            print(f"listening on {cluster.url}", flush=True)  # noqa: T201 - promised on stdout
            await stop.wait()
    except OSError as error:
        raise ConfigError(f"{host}:{port}: {error.strerror or error}") from None


def main() -> None:
    """Run the command line."""
    app = build(embedded_cluster)
    app.command("fakeapi", epilog="Example: reprieve fakeapi --port 0 --load cluster.yaml")(
        serve_fakeapi
    )
    app.command("demo", epilog="Example: reprieve demo")(demo.main)
    run(app)
