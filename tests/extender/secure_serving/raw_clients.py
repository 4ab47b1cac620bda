"""A listener on a real socket, and clients that send raw bytes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec

from extender.config.component_config import Config, ConnectionLimits, TlsConfig
from extender.kube.rest.clock import SystemClock
from extender.secure_serving.connection_limits import ConnectionRegistry, Phase
from extender.secure_serving.dynamic_certificates import CertificateReloader
from extender.secure_serving.listener import (
    ClientCertAuthorizer,
    Listener,
    serve_app,
)
from extender.server.http_handlers import build_app
from extender.server.service import Service
from policies.preemption.reference_engine import ReferenceEngine
from tests.builders import node
from tests.extender.conftest import HandClock, filter_body, live_cluster

GET = b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n"


def post(path: str, body: bytes) -> bytes:
    """Write a whole request."""
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


FILTER = post("/filter", filter_body(None, "node-1"))


@dataclass
class Client:
    """One connection, byte by byte."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def call(self, data: bytes) -> str:
        """Send a request and return its answer."""
        await self.send(data)
        return await self.answer()

    async def answer(self) -> str:
        """Return the next answer with its body, "" if the connection has ended."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, OSError):
            return ""
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return (head + await self.reader.readexactly(length)).decode()

    async def ended(self) -> bool:
        """Return whether the server ends the connection before it sends anything."""
        try:
            return not await self.reader.read(1)
        except OSError:
            return True

    def close(self) -> None:
        self.writer.close()


async def wait_until(condition: Callable[[], bool]) -> None:
    """Let the server run until the condition holds."""
    while not condition():  # noqa: ASYNC110 - the server's state has no event
        await asyncio.sleep(0)


class SleeplessClock(HandClock):
    """A clock on which no sleep ends."""

    async def sleep(self, seconds: float) -> None:  # noqa: ARG002
        await asyncio.Event().wait()


@dataclass
class RunningListener:
    """A listener with its clock and its clients."""

    listener: Listener
    connections: ConnectionRegistry
    clock: HandClock
    service: Service
    reloader: CertificateReloader | None = None
    clients: list[Client] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.listener.url.rpartition(":")[2])

    async def connect(self, tls: ssl.SSLContext | None = None) -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", self.port, ssl=tls))
        self.clients.append(client)
        return client

    async def wait_for_connections(self, count: int) -> None:
        """Wait until the server has so many connections."""
        await wait_until(lambda: len(self.connections) == count)

    async def wait_for_phase(self, phase: Phase) -> None:
        """Wait until all connections are in a phase."""
        await wait_until(lambda: {each.phase for each in self.connections._connections} == {phase})

    def advance(self, seconds: float) -> None:
        """Advance the clock and close the connections whose time is over."""
        self.clock.seconds += seconds
        self.connections.sweep()


@asynccontextmanager
async def run_listener(
    limits: ConnectionLimits | None = None,
    tls: TlsConfig | None = None,
    authorizer: ClientCertAuthorizer | None = None,
) -> AsyncIterator[RunningListener]:
    """Serve one node behind a listener with these limits."""
    clock = SleeplessClock()
    reloader = None if tls is None else CertificateReloader(tls, SystemClock())
    context = None if reloader is None else lambda: reloader.context
    config = msgspec.structs.replace(Config(port=0), limits=limits or ConnectionLimits())
    connections = ConnectionRegistry(config.limits, clock)
    service = Service(live_cluster(node("node-1")), ReferenceEngine(), clock)
    app = build_app(service, client_authorizer=authorizer)
    async with serve_app(app, config, connections, context) as listener:
        server = RunningListener(listener, connections, clock, service, reloader)
        try:
            yield server
        finally:
            for client in server.clients:
                client.close()
