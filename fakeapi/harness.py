"""A whole API server for a test or a program, up in milliseconds and gone without a trace.

    async with FakeCluster() as cluster:
        cluster.load([node, pod])
        kubectl = {"KUBECONFIG": str(cluster.kubeconfig_path)}

Everything that would differ from run to run, but for the clock, comes from the seed: UIDs,
generated names, the timeouts of watches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Final, Self
from uuid import UUID

import orjson

from extender.kube.client import Client
from extender.kube.clock import Clock, SystemClock
from extender.kube.http_transport import AiohttpTransport, Endpoint
from fakeapi.api import Api, Sources
from fakeapi.api.loading import flatten
from fakeapi.server import Server
from fakeapi.store import DEFAULT_HISTORY, Store
from fakeapi.transport import LocalTransport

_SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5


def create_api(clock: Clock, rng: Random, history: int = DEFAULT_HISTORY) -> Api:
    """Give an API over an empty store; ``history`` is how many events of a resource it replays."""
    return Api(Store(history), Sources(_timestamps(clock), _uids(rng), _suffixes(rng)))


class FakeCluster:
    """An API server on a free port of the loopback interface, as an async context manager.

    ``port`` 0 picks a free one. ``history`` is how many events of a resource can be replayed.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        host: str = "127.0.0.1",
        port: int = 0,
        history: int = DEFAULT_HISTORY,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._rng = Random(seed)  # noqa: S311 - repeatable, and nothing here is secret
        self._address = (host, port)
        self._stack = AsyncExitStack()
        self.api = create_api(self._clock, self._rng, history)
        self.server = Server(self.api, self._clock, self._rng)
        self.kubeconfig_path = Path()
        self.client: Client

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            directory = Path(stack.enter_context(TemporaryDirectory(prefix="fakeapi-")))
            stack.push_async_callback(self.server.stop)
            await self.server.start(*self._address)
            self.kubeconfig_path = write_kubeconfig(directory / "kubeconfig", self.url)
            self.client = Client(AiohttpTransport(Endpoint(self.url)))
            stack.push_async_callback(self.client.close)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    @property
    def url(self) -> str:
        """The server's base URL."""
        return self.server.url

    def load(self, objects: Iterable[Mapping[str, Any]]) -> int:
        """Store objects (or lists of them) as they are given, and count them.

        The arguments stay the caller's. Raises StatusError (400, 422) naming the fault.
        """
        copies = orjson.loads(orjson.dumps([dict(thing) for thing in objects]))
        return self.api.load(flatten(copies))

    def local_transport(self) -> LocalTransport:
        """Give a transport to the same API without sockets."""
        return LocalTransport(self.api, self._clock, self._rng)


def write_kubeconfig(path: Path, url: str) -> Path:
    """Write a kubeconfig (in JSON, which is YAML) for a server without credentials."""
    name = "fakeapi"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": url}}],
        "users": [{"name": name, "user": {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    path.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
    return path


def _timestamps(clock: Clock) -> Callable[[int], str]:
    def timestamp(offset: int) -> str:
        moment = datetime.fromtimestamp(clock.now_ns() // 10**9 + offset, UTC)
        return f"{moment:%Y-%m-%dT%H:%M:%SZ}"

    return timestamp


def _uids(rng: Random) -> Callable[[], str]:
    return lambda: str(UUID(int=rng.getrandbits(128), version=4))


def _suffixes(rng: Random) -> Callable[[], str]:
    return lambda: "".join(rng.choices(_SUFFIX_ALPHABET, k=_SUFFIX_LENGTH))
