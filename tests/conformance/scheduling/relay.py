"""A relay between kube-scheduler and an extender, which forwards, delays or fails calls.

Every call is recorded with its answer, so that a scenario can check the offered and named nodes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

import aiohttp
import orjson
from aiohttp import web

_MOST_BYTES: Final = 64 * 2**20


class Manner(Enum):
    """The way a call is handled."""

    PASSED_ON = "it is answered by the extender"
    REFUSED = "it is answered with 500"
    HELD = "it is not answered until the manner changes"


@dataclass(frozen=True, slots=True)
class Call:
    """A call and its answer, as they were sent, and the answer's status."""

    verb: str
    body: bytes
    status: int
    answer: bytes

    @property
    def asked(self) -> Any:
        """The request."""
        return orjson.loads(self.body)

    @property
    def answered(self) -> Any:
        """The answer; ValueError if the call failed."""
        return orjson.loads(self.answer)

    @property
    def pod(self) -> str:
        """The name of the pod that the call was about."""
        name: str = self.asked["Pod"]["metadata"]["name"]
        return name

    @property
    def offered(self) -> Sequence[str]:
        """The nodes of a preempt call."""
        return list(self.asked["NodeNameToMetaVictims"])

    @property
    def named(self) -> Sequence[str]:
        """The nodes of its answer; none if it failed."""
        return list(self.answered["NodeNameToMetaVictims"]) if self.status == 200 else []


@dataclass(slots=True)
class Relay:
    """Passes calls on to the extender at ``target`` in a manner that can be changed."""

    target: str
    http: aiohttp.ClientSession
    url: str = ""
    calls: list[Call] = field(default_factory=list)
    _manner: Manner = Manner.PASSED_ON
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def behave(self, manner: Manner) -> None:
        """Change the handling of calls, including those that are held."""
        self._manner = manner
        self._changed.set()
        self._changed = asyncio.Event()

    def preempt_calls(self, pod: str = "") -> list[Call]:
        """Return the preempt calls in their order, or those about one pod."""
        return [call for call in self.calls if call.verb == "preempt" and pod in ("", call.pod)]

    async def handle(self, request: web.Request) -> web.Response:
        """Answer one call."""
        body = await request.read()
        while self._manner is Manner.HELD:
            await self._changed.wait()
        verb = request.match_info["verb"]
        status, answer = await self._answer(verb, body)
        self.calls.append(Call(verb, body, status, answer))
        return web.Response(status=status, body=answer, content_type="application/json")

    async def _answer(self, verb: str, body: bytes) -> tuple[int, bytes]:
        if self._manner is Manner.REFUSED:
            return 500, b"injected failure"
        try:
            async with self.http.post(f"{self.target}/{verb}", data=body) as answer:
                return answer.status, await answer.read()
        except aiohttp.ClientConnectionError:
            return 502, b"no connection"


@asynccontextmanager
async def relay(target: str) -> AsyncIterator[Relay]:
    """Run a relay on a free port until the block ends."""
    http = aiohttp.ClientSession()
    made = Relay(target, http)
    app = web.Application(client_max_size=_MOST_BYTES)
    app.router.add_post("/{verb}", made.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        small_node, port = runner.addresses[0][:2]
        made.url = f"http://{small_node}:{port}"
        yield made
    finally:
        await runner.cleanup()
        await http.close()
