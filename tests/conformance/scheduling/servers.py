"""The API server that a scene is played on: a ``fakeapi`` of its own, or what speaks as it does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import aiohttp

from fakeapi import FakeCluster
from fakeapi.testing.process_cluster import ProcessCluster
from tests.conformance.clusters.watched_cluster import open_session
from tests.conformance.clusters.world import AGENT


class Write(NamedTuple):
    """A request that was to change something: its method, and its path."""

    method: str
    path: str


class Server(Protocol):
    """An API server; it has the namespace of the scenarios."""

    @property
    def url(self) -> str:
        """Where it listens."""

    @property
    def kubeconfig(self) -> Path:
        """The file that leads to it."""

    def session(self) -> aiohttp.ClientSession:
        """Return a session whose requests it answers."""

    async def load(self, objects: Iterable[Mapping[str, Any]]) -> None:
        """Have it store objects, their status included."""

    def writes(self, agent: str) -> list[Write]:
        """Return what clients of a user agent have written about pods, in order."""


Opening = Callable[[str], AbstractAsyncContextManager[Server]]
"""Gives a server with nothing on it, and with parts of the control plane ("none": without any)."""


@dataclass(frozen=True, slots=True)
class FakeServer:
    """A ``fakeapi`` in a process."""

    cluster: ProcessCluster

    @property
    def url(self) -> str:
        """Where it listens."""
        return self.cluster.url

    @property
    def kubeconfig(self) -> Path:
        """The file that leads to it."""
        return self.cluster.kubeconfig_path

    def session(self) -> aiohttp.ClientSession:
        """Return a session whose requests it answers."""
        return open_session(self.url, {"User-Agent": AGENT})

    async def load(self, objects: Iterable[Mapping[str, Any]]) -> None:
        """Have it store objects as they are given."""
        self.cluster.load(objects)

    def writes(self, agent: str) -> list[Write]:
        """Return the writes that it has kept."""
        return [
            Write(each.method, each.path)
            for each in self.cluster.requests
            if each.user_agent.startswith(agent) and each.method != "GET"
        ]


@asynccontextmanager
async def fake_server(run: str) -> AsyncIterator[FakeServer]:
    """Run a ``fakeapi`` until the block ends."""
    with FakeCluster.as_process(run=run) as cluster:
        yield FakeServer(cluster)
