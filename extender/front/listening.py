"""The listener: accepts connections, performs the TLS handshake if configured, and serves them.

Each handshake uses the certificate that is current at that time, so a rotation needs no new socket
and closes no connection.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from extender.config import Config
from extender.front.connections import Connection, Phase, Visit, Visits

FINISH_SECONDS: Final = 10.0
_MOST_HEADERS: Final = 64
_TURNS_TO_COME_IN: Final = 2
_LINGERING_SECONDS: Final = 2.0
"""How long the rest of a refused body is read, so that the client receives the response."""

Context = Callable[[], ssl.SSLContext]


class Listening:
    """A listening socket; ``url`` is its base URL."""

    def __init__(self, url: str, listener: asyncio.Server, door: _Door) -> None:
        self.url = url
        self._listener = listener
        self._door = door

    async def finish(self) -> None:
        """Accept no more connections, and finish the requests in progress."""
        await _close(self._listener)
        await self._door.finish()


async def _close(listener: asyncio.Server) -> None:
    """Close a listener after the protocols of all accepted connections have been created.

    asyncio creates them one iteration of the event loop after accept; if the listener is closed by
    then, it drops the connection without closing it, and the client waits until the process ends.
    """
    loop = asyncio.get_running_loop()
    for each in listener.sockets:
        loop.remove_reader(each.fileno())
    for _ in range(_TURNS_TO_COME_IN):
        await asyncio.sleep(0)
    listener.close()


@asynccontextmanager
async def listening(
    app: web.Application, config: Config, visits: Visits, context: Context | None
) -> AsyncIterator[Listening]:
    """Serve while the block runs, or until ``finish`` is called.

    ``context`` returns the current SSL context; without it there is no TLS. Raise OSError for the
    socket.
    """
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=FINISH_SECONDS)
    await runner.setup()
    assert runner.server is not None
    door = _Door(runner, runner.server, config, visits, context)
    try:
        loop = asyncio.get_running_loop()
        listener = await loop.create_server(door.accept, config.host, config.port)
        host = f"[{config.host}]" if ":" in config.host else config.host
        scheme = "http" if context is None else "https"
        url = f"{scheme}://{host}:{listener.sockets[0].getsockname()[1]}"
        try:
            yield Listening(url, listener, door)
        finally:
            listener.close()
    finally:
        await runner.cleanup()


@dataclass(slots=True)
class _Door:
    runner: web.AppRunner
    server: web.Server
    config: Config
    visits: Visits
    context: Context | None
    securing: set[asyncio.Task[None]] = field(default_factory=set)

    def accept(self) -> asyncio.BaseProtocol:
        """Return the protocol of a new connection."""
        connection = self._connection()
        return connection if self.context is None else _Handshake(self, connection)

    def secure(self, work: asyncio.Task[None]) -> None:
        """Track the task of a handshake until it is done."""
        self.securing.add(work)
        work.add_done_callback(self.securing.discard)

    async def finish(self) -> None:
        """Cancel handshakes, and finish the requests in progress."""
        for work in self.securing:
            work.cancel()
        await asyncio.gather(*self.securing, return_exceptions=True)
        await self.visits.finish(FINISH_SECONDS)
        await self.runner.cleanup()

    def _connection(self) -> Connection:
        size = self.config.limits.header_kib * 1024
        return Connection(
            self.server,
            self.visits,
            access_log=None,
            max_line_size=size,
            max_field_size=size,
            max_headers=_MOST_HEADERS,
            lingering_time=_LINGERING_SECONDS,
        )


class _Handshake(asyncio.Protocol):
    """The protocol of a connection during its TLS handshake; passes on early data."""

    def __init__(self, door: _Door, connection: Connection) -> None:
        self._door = door
        self._connection = connection
        self._early: list[bytes] = []
        self._lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        visit = self._door.visits.begin(transport, Phase.HANDSHAKE)
        if visit is not None and isinstance(transport, asyncio.Transport):
            self._door.secure(asyncio.create_task(self._secure(transport, visit)))

    def data_received(self, data: bytes) -> None:
        self._early.append(data)

    def connection_lost(self, exc: BaseException | None) -> None:  # noqa: ARG002
        self._lost = True

    async def _secure(self, transport: asyncio.Transport, visit: Visit) -> None:
        context = self._door.context
        assert context is not None
        loop = asyncio.get_running_loop()
        try:
            secured = await loop.start_tls(transport, self, context(), server_side=True)
        except OSError:  # the client gets a TLS alert
            secured = None
        except asyncio.CancelledError:
            self._door.visits.end(visit)
            raise
        if secured is None or self._lost:
            self._door.visits.end(visit)
            return
        secured.set_protocol(self._connection)
        self._connection.go_on(visit, secured)
        for data in self._early:
            self._connection.data_received(data)
