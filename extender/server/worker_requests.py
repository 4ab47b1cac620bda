"""Requests between the processes of a group, over HTTP on loopback ports of their own.

A worker answers ``filter`` calls and ``/livez``, and forwards all else to the primary. The primary
tells each worker the assumed preemptions of an answer before it sends the answer: so each effect of
the answer reaches a worker's watch after it, and a filter call that follows is answered alike by
all. Assumed preemptions end in each process as its own watch shows their effects.

The primary shows the metrics of all processes as one, and their decisions together, and is ready
only while all are.
"""

from __future__ import annotations

import asyncio
import pickle
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from secrets import compare_digest
from typing import Final

import aiohttp
import msgspec
from aiohttp import web
from aiohttp.typedefs import Middleware

from extender.cluster.assumed_preemptions import AssumedPreemption
from extender.kube.rest.clock import Clock
from extender.observability.metrics_sum import sum_expositions
from extender.secure_serving.connection_limits import ConnectionProtocol
from extender.server.http_handlers import Handler, decisions_handler
from extender.server.service import Service
from extender.server.worker_processes import WorkerGroup
from policies.kubernetes.integers import INT32_MAX, parse_integer

PRIMARY_NEEDED: Final = "the primary process does not answer"
_OWN_PATHS: Final = ("/livez", "/healthz")
_PROCESS_HEADER: Final = "X-Reprieve-Process"
_HOP_BY_HOP: Final = frozenset(
    {"connection", "keep-alive", "host", "transfer-encoding", "expect", _PROCESS_HEADER.lower()}
)
_POLL_SECONDS: Final = 0.2
_ANSWER_SECONDS: Final = 5.0
_ASSUMED: Final = "/assumed"

AssumedChange = tuple[str, AssumedPreemption | None]
"""The UID of a preemptor, and its assumed preemption from now on."""


@asynccontextmanager
async def join_group(
    group: WorkerGroup | None,
    service: Service,
    build_app: Callable[[Sequence[Middleware]], web.Application],
    clock: Clock,
) -> AsyncIterator[Sequence[Middleware]]:
    """Connect the processes of a group while the block runs; of one process there is none.

    The value is what the public application needs. The primary serves ``build_app`` to workers.
    """
    if group is None:
        yield ()
    elif group.is_primary:
        async with (
            serve_process(build_app((_requiring(group.token),)), group.own),
            asking_workers(group, service) as workers,
        ):
            await workers.wait_listening(group, clock)
            following = asyncio.create_task(workers.follow_readiness(clock))
            yield ()
            following.cancel()
    else:
        async with (
            serve_process(worker_app(service, group.token), group.own),
            forwarding(group) as forward,
        ):
            yield (forward,)


@asynccontextmanager
async def serve_process(app: web.Application, own: socket.socket) -> AsyncIterator[None]:
    """Serve other processes of the group on a socket while the block runs."""
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.SockSite(runner, own).start()
        yield
    finally:
        await runner.cleanup()


def _requiring(token: str) -> Middleware:
    """Return what refuses requests that are not from a process of the group."""

    @web.middleware
    async def require(request: web.Request, handler: Handler) -> web.StreamResponse:
        named = request.headers.get(_PROCESS_HEADER, "").encode(errors="replace")
        if not compare_digest(named, token.encode()):
            return web.Response(status=403)
        return await handler(request)

    return require


def worker_app(service: Service, token: str) -> web.Application:
    """Return the application that a worker serves to the primary."""

    async def assume(request: web.Request) -> web.Response:
        changes: list[AssumedChange] = pickle.loads(await request.read())  # noqa: S301 - our own
        for preemptor, assumed in changes:
            service.cluster.replace_assumed(preemptor, assumed)
        return web.Response()

    async def describe(_: web.Request) -> web.Response:
        return web.Response(text=service.readiness.problem())

    async def scrape(_: web.Request) -> web.Response:
        return web.Response(body=service.scrape())

    app = web.Application(client_max_size=2**30, middlewares=[_requiring(token)])
    app.router.add_put(_ASSUMED, assume)
    app.router.add_get("/readyz", describe)
    app.router.add_get("/metrics", scrape)
    app.router.add_get("/decisions", decisions_handler(service))
    return app


@asynccontextmanager
async def forwarding(group: WorkerGroup) -> AsyncIterator[Middleware]:
    """Forward to the primary what a worker does not answer, while the block runs."""
    async with _session(group, 0, None) as session:

        @web.middleware
        async def forward(request: web.Request, handler: Handler) -> web.StreamResponse:
            if request.match_info.get("verb") == "filter" or request.path in _OWN_PATHS:
                return await handler(request)
            try:
                return await _forward(session, request)
            except aiohttp.ClientError:
                text = f"reprieve: {PRIMARY_NEEDED}\n"
                return web.Response(status=503, text=text, headers={"Retry-After": "1"})

        yield forward


async def _forward(session: aiohttp.ClientSession, request: web.Request) -> web.Response:
    body = _body(request) if request.body_exists else None
    sent = _end_to_end(request.headers)
    async with session.request(request.method, request.path_qs, data=body, headers=sent) as answer:
        headers = _end_to_end(answer.headers)
        headers.pop("Content-Length", None)  # the response has its own
        return web.Response(status=answer.status, body=await answer.read(), headers=headers)


async def _body(request: web.Request) -> AsyncIterator[bytes]:
    """Yield the body as it arrives: the primary counts the time and the bytes."""
    connection = request.protocol
    if isinstance(connection, ConnectionProtocol):
        connection.header_read()
    async for chunk in request.content.iter_any():
        yield chunk
    if isinstance(connection, ConnectionProtocol):
        connection.body_read()


def _end_to_end(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _HOP_BY_HOP}


@dataclass(slots=True)
class Workers:
    """The workers as the primary sees them; ``problem`` is why they are not ready, or ""."""

    sessions: Mapping[int, aiohttp.ClientSession]
    problem: str = "waiting for workers"
    _changes: list[AssumedChange] = field(default_factory=list, init=False)
    _sharing: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def note(self, preemptor: str, assumed: AssumedPreemption | None) -> None:
        """Note a change of an assumed preemption, to be shared before its answer is sent."""
        self._changes.append((preemptor, assumed))

    async def share(self) -> None:
        """Return when all workers have all changes. A worker that has ended has none."""
        async with self._sharing:
            if self._changes:
                body = pickle.dumps(self._changes)
                self._changes = []
                sent = (each.put(_ASSUMED, data=body) for each in self.sessions.values())
                await asyncio.gather(*sent, return_exceptions=True)

    async def follow_readiness(self, clock: Clock) -> None:
        """Ask the workers whether they are ready, again and again, until cancelled."""
        while True:
            self.problem = await self._find_problem()
            await clock.sleep(_POLL_SECONDS)

    async def wait_listening(self, group: WorkerGroup, clock: Clock) -> None:
        """Return when all workers can be asked, or one has ended."""
        while any(answer is None for _, answer in await self._ask("/readyz")) and not group.ended:
            await clock.sleep(_POLL_SECONDS)

    async def sum_metrics(self, own: bytes) -> bytes:
        """Return the metrics of all processes."""
        answers = await self._ask("/metrics")
        return sum_expositions(own, [each for _, each in answers if each is not None])

    async def merge_decisions(self, own: bytes, query: Mapping[str, str]) -> bytes:
        """Return the decisions of all processes that a query of ``/decisions`` selects."""
        answers = await self._ask("/decisions", query)
        limit = parse_integer(query.get("limit", ""), INT32_MAX)
        return _merge([own, *(each for _, each in answers if each is not None)], limit)

    async def _find_problem(self) -> str:
        for number, answer in await self._ask("/readyz"):
            if answer is None or answer:
                return f"worker {number}: {'no answer' if answer is None else answer.decode()}"
        return ""

    async def _ask(
        self, path: str, query: Mapping[str, str] | None = None
    ) -> list[tuple[int, bytes | None]]:
        """Return the answer of each worker, None if there is none."""
        answers = [_get(each, path, query) for each in self.sessions.values()]
        return list(zip(self.sessions, await asyncio.gather(*answers), strict=True))


@asynccontextmanager
async def asking_workers(group: WorkerGroup, service: Service) -> AsyncIterator[Workers]:
    """Share assumed preemptions with the workers, and ask them, while the block runs."""
    async with AsyncExitStack() as stack:
        sessions = {
            each.number: await stack.enter_async_context(
                _session(group, each.number, _ANSWER_SECONDS)
            )
            for each in group.linked
        }
        workers = Workers(sessions)
        service.cluster.on_assume, service.others = workers.note, workers
        service.readiness.of_others = lambda: workers.problem
        yield workers


def _session(group: WorkerGroup, number: int, seconds: float | None) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        group.url(number),
        headers={_PROCESS_HEADER: group.token},
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=seconds),
    )


async def _get(
    session: aiohttp.ClientSession, path: str, query: Mapping[str, str] | None
) -> bytes | None:
    try:
        async with session.get(path, params=query) as answer:
            return await answer.read() if answer.status == 200 else None
    except (aiohttp.ClientError, TimeoutError):
        return None


class _Dated(msgspec.Struct):
    at: str


class _Decisions(msgspec.Struct):
    decisions: list[msgspec.Raw]


def _merge(documents: Iterable[bytes], limit: int | None) -> bytes:
    """Return the newest decisions of all documents, newest first."""
    own, *_ = documents = list(documents)
    every = [
        decision
        for each in documents
        for decision in msgspec.json.decode(each, type=_Decisions).decisions
    ]
    if not every:
        return own  # with the message that none is selected
    every.sort(key=lambda raw: msgspec.json.decode(raw, type=_Dated).at, reverse=True)
    return msgspec.json.encode(_Decisions(every[:limit]))
