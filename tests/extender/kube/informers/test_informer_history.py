"""No change is lost or delivered twice, whatever fails: an informer and a model of the server.

The server writes while it is watched, lists and streams. It breaks watches, refuses requests and
drops its history at random. In the end the cache must equal the server's objects, and between two
lists the store must have received exactly the server's own history.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from hypothesis import given, settings
from hypothesis import strategies as st

from extender.kube.informers.reflector import Reflector, ReflectorContext
from extender.kube.informers.watch_list import WatchListReflector
from extender.kube.rest.client import Client
from extender.kube.rest.resources import PODS
from extender.kube.rest.transport import Request, Response, Stream, TransportError
from tests.extender.kube.conftest import (
    SteppedClock,
    Thing,
    a_list,
    a_refusal,
    added,
    an_error,
    an_object,
    bookmark,
    deleted,
    initial_end,
    modified,
    thing,
)
from tests.properties.sampling import examples

CHANGES = 60


class Server:
    """A few pods, a history that is sometimes dropped, and connections that break."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.version = 1
        self.pods: dict[str, int] = {}
        self.history: list[tuple[int, str, bytes]] = []
        self.compacted = 0
        self.served = 0
        self.done = asyncio.Event()

    def change(self) -> None:
        """Create, change or delete a random pod; sometimes drop the history."""
        self.version += 1
        name = self._rng.choice("abcde")
        known = name in self.pods
        if known and self._rng.random() < 0.4:
            del self.pods[name]
            self._record("-", deleted(name, self.version), name)
        else:
            self.pods[name] = self.version
            frame = modified if known else added
            self._record("+", frame(name, self.version), name)
        if self._rng.random() < 0.05:
            self.compacted = self.version - self._rng.randrange(3)

    def _record(self, sign: str, frame: bytes, name: str) -> None:
        self.history.append((self.version, f"{sign}{name}{self.version}", frame))

    async def request(self, request: Request) -> Response:
        """Return a list, or fail."""
        if self._rng.random() < 0.2:
            raise TransportError("refused")
        least = int(dict(request.query).get("resourceVersion", "0"))
        if least > self.version or self._rng.random() < 0.1:
            return a_refusal(410, "Expired")
        self.served = self.version
        return a_list(self.version, *(an_object(n, v) for n, v in self.pods.items()))

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        """Open a watch, or refuse it."""
        query = dict(request.query)
        since = int(query.get("resourceVersion", "0"))
        if self._rng.random() < 0.2:
            raise TransportError("refused")
        if "sendInitialEvents" in query:
            yield InitialStream(
                self, self._rng, self._rng.choice([200, 200, 200, 410, 422, 429, 500])
            )
            return
        refused = 410 if since < self.compacted else self._rng.choice([200, 200, 200, 429, 500])
        yield Connection(self, self._rng, since, refused)

    async def close(self) -> None:
        """Nothing to close."""


class Connection:
    """One watch, from one version on, until it breaks at random."""

    def __init__(self, server: Server, rng: random.Random, since: int, status: int) -> None:
        self.status = status
        self.headers: dict[str, str] = {}
        self._server = server
        self._rng = rng
        self._since = since

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while not (pending := self._pending()):
            await self._change_at_random()
            if self._rng.random() < 0.2:
                self._since = max(self._since, self._server.version if not self._pending() else 0)
                return bookmark(self._since)
        self._break_at_random()
        self._since, _, frame = pending[0]
        return frame if self._rng.random() < 0.95 else an_error(410, "Expired")

    async def read(self) -> bytes:
        return b""

    def _pending(self) -> list[tuple[int, str, bytes]]:
        return [entry for entry in self._server.history if entry[0] > self._since]

    async def _change_at_random(self) -> None:
        await asyncio.sleep(0)
        self._break_at_random()
        if self._server.version > CHANGES:
            self._server.done.set()
            await asyncio.Event().wait()
        for _ in range(self._rng.randrange(4)):
            self._server.change()

    def _break_at_random(self) -> None:
        chance = self._rng.random()
        if chance < 0.1:
            raise StopAsyncIteration
        if chance < 0.2:
            raise TransportError("lost")


class InitialStream(Connection):
    """A watch that begins with the existing objects; others may change before it is through."""

    def __init__(self, server: Server, rng: random.Random, status: int) -> None:
        super().__init__(server, rng, server.version, status)
        self._began = server.version
        self._first = deque(added(name, version) for name, version in server.pods.items())
        self._marked = False

    async def __anext__(self) -> bytes:
        if self._first:
            self._break_at_random()
            if self._rng.random() < 0.2:
                self._server.change()
            return self._first.popleft()
        if not self._marked and (not self._pending() or self._rng.random() < 0.5):
            self._marked = True
            self._server.served = self._began
            return initial_end(self._since)
        return await super().__anext__()


class CheckingStore:
    """A store that compares each change with the server's history."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._at = 0
        self.cache: dict[str, int] = {}

    def replace(self, items: Sequence[Thing]) -> None:
        self.cache = {item.name: int(item.version) for item in items}
        self._at = max([self._server.served, *self.cache.values()])

    def upsert(self, item: Thing) -> None:
        self._expect(f"+{item.name}{item.version}")
        self.cache[item.name] = int(item.version)

    def remove(self, item: Thing) -> None:
        self._expect(f"-{item.name}{item.version}")
        del self.cache[item.name]

    def _expect(self, change: str) -> None:
        later = [entry for entry in self._server.history if entry[0] > self._at]
        assert change == later[0][1], "a change was lost, repeated or delivered out of order"
        self._at = later[0][0]


async def follow(seed: int, kind: type[Reflector[Thing]]) -> tuple[Server, CheckingStore]:
    rng, clock = random.Random(seed), SteppedClock()
    server = Server(rng)
    store = CheckingStore(server)
    informer = kind(ReflectorContext(Client(server), clock, rng), PODS, thing, store)
    running = asyncio.create_task(informer.run())
    done = asyncio.create_task(server.done.wait())
    await asyncio.wait({running, done}, return_when="FIRST_COMPLETED")
    done.cancel()
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    return server, store


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([Reflector, WatchListReflector]))
def test_the_cache_equals_the_server_and_each_change_was_delivered_once(
    seed: int, kind: type[Reflector[Thing]]
) -> None:
    server, store = asyncio.run(follow(seed, kind))
    assert server.version > CHANGES
    assert store.cache == server.pods
