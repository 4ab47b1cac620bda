"""A listener on a real socket, and raw clients that send what no library would."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec

from extender.config.component_config import Config, ConnectionLimits
from extender.secure_serving.connection_limits import ConnectionRegistry, Phase
from extender.secure_serving.listener import (
    ClientCertAuthorizer,
    ContextSource,
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


ASKING = post("/filter", filter_body(None, "node-1"))


@dataclass
class Client:
    """One connection, byte by byte."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> str:
        """Read one answer with its body; "" if the connection has ended instead."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, OSError):
            return ""
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return (head + await self.reader.readexactly(length)).decode()

    async def ended(self) -> bool:
        """Wait until the server ends the connection; False if it says something before."""
        try:
            return not await self.reader.read(1)
        except OSError:
            return True

    def close(self) -> None:
        self.writer.close()


async def reached(condition: Callable[[], bool]) -> None:
    """Let the server's end of the sockets go on until it has come so far."""
    while not condition():  # noqa: ASYNC110 - what the server takes note of has no event
        await asyncio.sleep(0)


class StandingClock(HandClock):
    """A clock that stands still for those who sleep, too."""

    async def sleep(self, seconds: float) -> None:  # noqa: ARG002
        await asyncio.Event().wait()


@dataclass
class Door:
    """An open listener, its clock, and its clients."""

    socket: Listener
    visits: ConnectionRegistry
    clock: HandClock
    service: Service
    clients: list[Client] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.socket.url.rpartition(":")[2])

    async def knock(self, tls: ssl.SSLContext | None = None) -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", self.port, ssl=tls))
        self.clients.append(client)
        return client

    async def until(self, connections: int) -> None:
        """Wait until the server has so many connections."""
        await reached(lambda: len(self.visits) == connections)

    async def until_all(self, phase: Phase) -> None:
        """Wait until all connections are in a phase."""
        await reached(lambda: {visit.phase for visit in self.visits._connections} == {phase})

    def pass_by(self, seconds: float) -> None:
        """Let time pass, and those who overstay be cut off."""
        self.clock.seconds += seconds
        self.visits.sweep()


@asynccontextmanager
async def open_door(
    limits: ConnectionLimits | None = None,
    context: ContextSource | None = None,
    doorkeeper: ClientCertAuthorizer | None = None,
) -> AsyncIterator[Door]:
    """Serve one node behind a listener with these limits."""
    clock = StandingClock()
    config = msgspec.structs.replace(Config(port=0), limits=limits or ConnectionLimits())
    visits = ConnectionRegistry(config.limits, clock)
    service = Service(live_cluster(node("node-1")), ReferenceEngine(), clock)
    app = build_app(service, client_authorizer=doorkeeper)
    async with serve_app(app, config, visits, context) as socket:
        door = Door(socket, visits, clock, service)
        try:
            yield door
        finally:
            for client in door.clients:
                client.close()
