"""The cluster of ``reprieve serve --embedded``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from extender.cli.serve_command import EmbeddedCluster
from extender.config.strict_decoding import ConfigError
from fakeapi.demo import captured_requests
from fakeapi.demo.scenarios import UnknownScenarioError, scenario
from fakeapi.testing.fake_cluster import FakeCluster


@asynccontextmanager
async def embedded_cluster(name: str) -> AsyncIterator[EmbeddedCluster]:
    """Start a shipped scenario as a cluster in this process; raises ConfigError for other names."""
    try:
        objects = scenario(name)
    except UnknownScenarioError as error:
        raise ConfigError(f"--embedded: {error}") from None
    async with FakeCluster(run="none") as cluster:
        cluster.load(objects)
        result_log = captured_requests.LastResultLog()
        console = captured_requests.wide_console()
        yield EmbeddedCluster(
            cluster.local_transport(),
            result_log,
            lambda extender: captured_requests.send_requests(extender, result_log, console),
        )
