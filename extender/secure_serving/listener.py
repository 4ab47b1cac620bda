"""The listener: accepts connections, performs the TLS handshake if configured, and serves them.

Each handshake uses the certificate that is current at that time, so a rotation needs no new socket
and closes no connection.

With client certificates, clients are authorized by them. Probes need no certificate: a kubelet
sends none, and learns only whether the server is ready. All other paths are for the clients that
the configuration allows. The names of a client are its certificate's common name, as for users in
Kubernetes, and its DNS names and URIs.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import web

from extender.config.component_config import Config
from extender.secure_serving.connection_limits import (
    ConnectionProtocol,
    ConnectionRegistry,
    OpenConnection,
    Phase,
)
from extender.secure_serving.http_errors import refuse_unknown_expectations

OPEN_PATHS: Final = frozenset({"/livez", "/readyz", "/healthz"})
FINISH_SECONDS: Final = 10.0
_MAX_HEADERS: Final = 64
_LOOP_ITERATIONS_AFTER_ACCEPT: Final = 2
_LINGERING_SECONDS: Final = 2.0
"""How long the rest of a refused body is read, so that the client receives the response."""

ContextSource = Callable[[], ssl.SSLContext]


class Listener:
    """A listening socket; ``url`` is its base URL."""

    def __init__(self, url: str, server: asyncio.Server, acceptor: _Acceptor) -> None:
        self.url = url
        self._listener = server
        self._acceptor = acceptor

    async def finish(self) -> None:
        """Accept no more connections, and finish the requests in progress."""
        await _close(self._listener)
        await self._acceptor.finish()


async def _close(listener: asyncio.Server) -> None:
    """Close a listener after the protocols of all accepted connections have been created.

    asyncio creates them one iteration of the event loop after accept; if the listener is closed by
    then, it drops the connection without closing it, and the client waits until the process ends.
    """
    loop = asyncio.get_running_loop()
    for each in listener.sockets:
        loop.remove_reader(each.fileno())
    for _ in range(_LOOP_ITERATIONS_AFTER_ACCEPT):
        await asyncio.sleep(0)
    listener.close()


@asynccontextmanager
async def serve_app(
    app: web.Application,
    config: Config,
    connections: ConnectionRegistry,
    context: ContextSource | None,
    listening: socket.socket | None = None,
) -> AsyncIterator[Listener]:
    """Serve while the block runs, or until ``finish`` is called.

    ``context`` returns the current SSL context; without it there is no TLS. Without a ``listening``
    socket one is bound. Raise OSError for it.
    """
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=FINISH_SECONDS)
    await runner.setup()
    assert runner.server is not None
    runner.server.request_handler = refuse_unknown_expectations(runner.server.request_handler)
    acceptor = _Acceptor(runner, runner.server, config, connections, context)
    try:
        loop = asyncio.get_running_loop()
        if listening is None:
            listener = await loop.create_server(acceptor.accept, config.host, config.port)
        else:
            listener = await loop.create_server(acceptor.accept, sock=listening)
        host = f"[{config.host}]" if ":" in config.host else config.host
        scheme = "http" if context is None else "https"
        url = f"{scheme}://{host}:{listener.sockets[0].getsockname()[1]}"
        try:
            yield Listener(url, listener, acceptor)
        finally:
            listener.close()
    finally:
        await runner.cleanup()


@dataclass(slots=True)
class _Acceptor:
    runner: web.AppRunner
    server: web.Server
    config: Config
    connections: ConnectionRegistry
    context: ContextSource | None
    handshakes: set[asyncio.Task[None]] = field(default_factory=set)

    def accept(self) -> asyncio.BaseProtocol:
        """Return the protocol of a new connection."""
        connection = self._connection()
        return connection if self.context is None else _TlsHandshake(self, connection)

    def track_handshake(self, task: asyncio.Task[None]) -> None:
        """Track the task of a handshake until it is done."""
        self.handshakes.add(task)
        task.add_done_callback(self.handshakes.discard)

    async def finish(self) -> None:
        """Cancel handshakes, and finish the requests in progress."""
        for work in self.handshakes:
            work.cancel()
        await asyncio.gather(*self.handshakes, return_exceptions=True)
        await self.connections.wait_idle(FINISH_SECONDS)
        await self.runner.cleanup()

    def _connection(self) -> ConnectionProtocol:
        size = self.config.limits.header_kib * 1024
        return ConnectionProtocol(
            self.server,
            self.connections,
            access_log=None,
            max_line_size=size,
            max_field_size=size,
            max_headers=_MAX_HEADERS,
            lingering_time=_LINGERING_SECONDS,
            auto_decompress=False,  # the handlers refuse encoded bodies
        )


class _TlsHandshake(asyncio.Protocol):
    """The protocol of a connection during its TLS handshake; passes on early data."""

    def __init__(self, acceptor: _Acceptor, connection: ConnectionProtocol) -> None:
        self._acceptor = acceptor
        self._connection = connection
        self._early: list[bytes] = []
        self._lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        opened = self._acceptor.connections.register(transport, Phase.HANDSHAKE)
        if opened is not None and isinstance(transport, asyncio.Transport):
            self._acceptor.track_handshake(asyncio.create_task(self._secure(transport, opened)))

    def data_received(self, data: bytes) -> None:
        self._early.append(data)

    def connection_lost(self, exc: BaseException | None) -> None:  # noqa: ARG002
        self._lost = True

    async def _secure(self, transport: asyncio.Transport, open_connection: OpenConnection) -> None:
        context = self._acceptor.context
        assert context is not None
        loop = asyncio.get_running_loop()
        try:
            secured = await loop.start_tls(transport, self, context(), server_side=True)
        except OSError:  # the client gets a TLS alert
            secured = None
        except asyncio.CancelledError:
            self._acceptor.connections.remove(open_connection)
            raise
        if secured is None or self._lost:
            self._acceptor.connections.remove(open_connection)
            return
        secured.set_protocol(self._connection)
        self._connection.begin_serving(open_connection, secured)
        for data in self._early:
            self._connection.data_received(data)


class ClientCertAuthorizer:
    """Authorizes clients by their certificates; by default all that have one."""

    def __init__(self, allowed_names: Iterable[str] = ()) -> None:
        self._allowed = frozenset(allowed_names)

    def denial_reason(self, path: str, certificate: Mapping[str, Any] | None) -> str:
        """Return why a client may not request ``path``, "" if it may.

        ``certificate`` is a verified one as Python decodes it; None or empty if there is none.
        """
        if path in OPEN_PATHS:
            return ""
        if not certificate:
            return "a client certificate is required"
        names = sorted(certificate_names(certificate))
        if self._allowed and self._allowed.isdisjoint(names):
            return f"the client {', '.join(names) or 'without a name'} is not allowed"
        return ""


def certificate_names(certificate: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of a certificate in the form of :meth:`ssl.SSLSocket.getpeercert`."""
    for part in certificate.get("subject", ()):
        yield from (value for key, value in part if key == "commonName")
    for kind, value in certificate.get("subjectAltName", ()):
        if kind in ("DNS", "URI"):
            yield value
