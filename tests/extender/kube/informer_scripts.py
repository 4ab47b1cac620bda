"""Informers that follow a scripted server, and what they contain in the end."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from extender.kube.informers.reflector import Reflector, ReflectorContext
from extender.kube.rest.client import Client, Selection
from extender.kube.rest.resources import PODS
from tests.extender.kube.conftest import Reply, ScriptedApi, SteppedClock, Thing, an_object, thing

A1, B2 = an_object("a", 1), an_object("b", 2)


class RecordingStore:
    """A store that keeps the state and records the changes."""

    def __init__(self) -> None:
        self.state: dict[str, str] = {}
        self.changes: list[str] = []

    def replace(self, items: Sequence[Thing]) -> None:
        self.state = {item.name: item.version for item in items}
        self.changes.append("=" + ",".join(f"{item.name}{item.version}" for item in items))

    def upsert(self, item: Thing) -> None:
        self.state[item.name] = item.version
        self.changes.append(f"+{item.name}{item.version}")

    def unlist(self) -> None:
        self.state.clear()
        self.changes.append("unlisted")

    def remove(self, item: Thing) -> None:
        del self.state[item.name]
        self.changes.append(f"-{item.name}{item.version}")


@dataclass
class ScriptRun:
    """The state after a script has run."""

    api: ScriptedApi
    clock: SteppedClock
    store: RecordingStore
    informer: Reflector[Thing]

    @property
    def versions(self) -> list[str]:
        """The resourceVersion of each request; lists and streams are marked."""
        queries = [item.query for item in self.api.requests]
        return [_kind_of(query) + query.get("resourceVersion", "newest") for query in queries]

    @property
    def pauses(self) -> list[float]:
        """Seconds from each request to the next."""
        times = [item.at for item in self.api.requests]
        return [after - before for before, after in itertools.pairwise(times)]


async def play(
    *script: Reply,
    selection: Selection | None = None,
    kind: Callable[..., Reflector[Thing]] = Reflector[Thing],
) -> ScriptRun:
    clock, store = SteppedClock(), RecordingStore()
    api = ScriptedApi(clock, *script)
    context = ReflectorContext(Client(api), clock, random.Random(7))
    informer = kind(context, PODS, thing, store, selection or Selection())
    running = asyncio.create_task(informer.run())
    await asyncio.wait(
        {running, asyncio.create_task(api.played.wait())}, return_when="FIRST_COMPLETED"
    )
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    return ScriptRun(api, clock, store, informer)


def _kind_of(query: dict[str, str]) -> str:
    if "watch" not in query:
        return "list "
    return "stream " if "sendInitialEvents" in query else ""
