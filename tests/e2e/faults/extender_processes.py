"""Extenders as processes, callers that never pause, and a proxy that may stop forwarding."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import ssl
import struct
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp
import yaml

from extender.kube.decoders.cluster_objects import decode_node
from extender.kube.decoders.pods import decode_pod
from extender.protocol.request_size import at_once
from extender.protocol.verb_context import CallContext
from extender.protocol.verbs import VERBS
from policies.kubernetes.snapshot import assemble
from policies.preemption.policy import SchedulerRules
from policies.preemption.reference_engine import ReferenceEngine
from tests.bench.servers.processes import resident_bytes
from tests.builders import encoded, node_json, pod_json
from tests.commands import COMMAND, ROOT
from tests.extender.conftest import filter_body, preempt_body

NODES: Final = [f"node-{number}" for number in range(8)]
VIP: Final = pod_json("vip", cpu="1", priority=10)
CALLS: Final[Mapping[str, bytes]] = {
    "filter": filter_body(VIP, *NODES),
    "preempt": preempt_body(VIP, **{name.replace("-", "_"): [f"web-{name}"] for name in NODES}),
}
PATIENCE_SECONDS: Final = 60.0
CALM: Final[Mapping[str, Any]] = {
    "port": 0,
    "promiseSeconds": 0,
    "deadlineMilliseconds": {"filter": 20_000, "preempt": 20_000},
}
"""No call is answered late or by an assumed preemption, however busy the machine."""


def objects(full: Sequence[str] = NODES) -> list[dict[str, Any]]:
    """Return nodes, of which ``full`` have a pod each; the pods differ in priority."""
    return [
        *(node_json(name, cpu="1") for name in NODES),
        *(
            pod_json(f"web-{name}", on=name, cpu="1", priority=3 + number % 5)
            for number, name in enumerate(NODES)
            if name in full
        ),
    ]


def right(documents: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the reference engine's answer to each call on these objects."""
    nodes = [decode_node(encoded(each)) for each in documents if each["kind"] == "Node"]
    rules = SchedulerRules()
    pods = [decode_pod(encoded(e), rules.release) for e in documents if e["kind"] == "Pod"]
    context = CallContext(assemble(nodes, pods), ReferenceEngine(rules))
    return {
        verb: json.loads(at_once(VERBS[verb](body, rules)).decide(context).body)
        for verb, body in CALLS.items()
    }


RIGHT: Final = right(objects())


@dataclass
class Extender:
    """A process that serves."""

    process: Process
    url: str
    log: Path

    @property
    def resident_bytes(self) -> int:
        return resident_bytes(self.process.pid)

    async def end(self) -> str:
        """Stop it with SIGTERM, and return its log; it must exit with 0."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        return await self.ended()

    async def ended(self) -> str:
        """Wait for its end, and return its log; it must exit with 0."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.process.wait()
        assert self.process.returncode == 0, self.log.read_text()[-4000:]
        return self.log.read_text()


async def start_extender(folder: Path, *arguments: str, **settings: Any) -> Extender:
    """Start an extender that listens but may not be ready; its log is written to a file."""
    path, log = folder / "reprieve.yaml", folder / "log"
    path.write_text(yaml.safe_dump({**CALM, **settings}))
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *COMMAND, "serve", "--config", str(path), *arguments, cwd=ROOT, stdout=PIPE, stderr=file
        )
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode()
    assert line.startswith("listening on "), log.read_text()
    return Extender(process, line.split()[-1], log)


@asynccontextmanager
async def extender(
    folder: Path, server: str, trusted: ssl.SSLContext | None = None, **settings: Any
) -> AsyncIterator[Extender]:
    """Run an extender that is ready; unless it was stopped, it must exit with 0."""
    running = await start_extender(folder, "--server", server, **settings)
    try:
        await ready(running.url, trusted)
        yield running
    finally:
        if running.process.returncode is None:
            await running.end()


async def ready(url: str, tls: ssl.SSLContext | None = None) -> None:
    """Wait until an extender is ready."""
    await wait_for_page(url, "/readyz", "ok\n", tls)


async def wait_for_page(url: str, path: str, text: str, tls: ssl.SSLContext | None = None) -> str:
    """Request a page until it contains a text, and return it."""
    page = ""
    async with aiohttp.ClientSession() as session:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while text not in page:
                    with suppress(aiohttp.ClientConnectionError):
                        async with session.get(f"{url}{path}", ssl=tls or True) as response:
                            page = await response.text()
                return page
        except TimeoutError:
            raise AssertionError(f"{path} never contained {text!r}; it contains {page!r}") from None


async def metric(url: str, name: str, tls: ssl.SSLContext | None = None) -> float:
    """Return a metric; the values of all its labels are added."""
    page = await wait_for_page(url, "/metrics", name, tls)
    lines = (line for line in page.splitlines() if line.startswith((f"{name} ", f"{name}{{")))
    return sum(float(line.rpartition(" ")[2]) for line in lines)


@dataclass
class Callers:
    """Callers that never pause, and the outcomes of their calls.

    ``counts`` has the answers that are ``right``, the calls whose connection was ``broken`` before
    the first byte of an answer, and those ``refused`` with 503 and one line. Other answers are in
    ``wrong``.
    """

    url: str
    right: Mapping[str, Any] = field(default_factory=lambda: RIGHT)
    tls: ssl.SSLContext | None = None
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _answered: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def calling(self, callers: int = 4) -> AsyncIterator[Callers]:
        """Call while the block runs; every other caller opens a connection for each call."""
        self._tasks = [
            asyncio.create_task(self._call_on(keep=number % 2 == 0)) for number in range(callers)
        ]
        try:
            yield self
        finally:
            for task in self._tasks:
                task.cancel()
            outcomes = await asyncio.gather(*self._tasks, return_exceptions=True)
            assert all(isinstance(each, asyncio.CancelledError) for each in outcomes), outcomes
            assert not self.wrong, self.wrong[:3]

    async def until(self, count: int, outcome: str = "right") -> None:
        """Wait for so many more of an outcome."""
        target = self.counts[outcome] + count
        async with asyncio.timeout(PATIENCE_SECONDS):
            while self.counts[outcome] < target:
                self._answered.clear()
                await self._answered.wait()

    async def _call_on(self, *, keep: bool) -> None:
        connector = aiohttp.TCPConnector(force_close=not keep, ssl=self.tls or True)
        async with aiohttp.ClientSession(connector=connector) as session:
            while True:
                for verb, body in CALLS.items():
                    self.counts[await self._outcome(session, verb, body)] += 1
                    self._answered.set()

    async def _outcome(self, session: aiohttp.ClientSession, verb: str, body: bytes) -> str:
        try:
            async with session.post(f"{self.url}/{verb}", data=body) as response:
                text = await response.text()
        except aiohttp.ClientConnectionError:
            await asyncio.sleep(0)
            return "broken"
        except aiohttp.ClientError as error:
            text = repr(error)
        else:
            if response.status == 200 and json.loads(text) == self.right[verb]:
                return "right"
            if (response.status, text.count("\n")) == (503, 1) and text.startswith("reprieve: "):
                return "refused"
            text = f"{response.status} {text}"
        self.wrong.append(f"{verb}: {text}")
        return "wrong"


class Proxy:
    """A proxy on ``port`` for ``target`` ("HOST:PORT") that can stop forwarding or reset.

    With ``tls``, clients of the proxy use TLS; ``target`` is called without it.
    """

    def __init__(self, target: str, tls: ssl.SSLContext | None = None) -> None:
        self._host, _, port = target.rpartition(":")
        self._port = int(port)
        self.tls = tls
        self.port = 0
        self.dead = False
        self._pairs: dict[asyncio.Task[None], tuple[asyncio.StreamWriter, ...]] = {}

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Proxy]:
        """Listen until the block ends."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, ssl=self.tls)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            self.reset()
            await asyncio.gather(*self._pairs, return_exceptions=True)

    def stop_forwarding(self) -> None:
        """Forward nothing more on any connection, and close none."""
        for pair in self._pairs:
            pair.cancel("silence")
        self.dead = True

    def revive(self) -> None:
        """Forward again on new connections."""
        self.dead = False

    def reset(self) -> None:
        """Break every connection at once."""
        for pair, writers in tuple(self._pairs.items()):
            pair.cancel()
            for writer in writers:
                abort(writer)
        self._pairs.clear()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pair = asyncio.current_task()
        assert pair is not None
        self._pairs[pair] = (writer,)
        with suppress(OSError, asyncio.CancelledError):
            if self.dead:
                await asyncio.Event().wait()
            back, forth = await asyncio.open_connection(self._host, self._port)
            self._pairs[pair] = (writer, forth)
            await asyncio.gather(_forward(reader, forth), _forward(back, writer))


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(2**16):
        writer.write(data)
        await writer.drain()
    writer.close()


def abort(writer: asyncio.StreamWriter) -> None:
    """Reset a connection."""
    sock = writer.get_extra_info("socket")
    if sock is not None and sock.fileno() >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
