"""The requested kinds that the server serves, and their resources.

Custom kinds come and go with their definitions, so CustomResourceDefinitions are watched, and
discovery runs again when the definition of a requested kind changes. A definition exists shortly
before its kind is served; discovery is then repeated after a second. If the server does not answer,
or its definitions cannot be listed, discovery is repeated after half a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Protocol

from extender.controllers.workloadspread.types import (
    DEFINITIONS,
    CachedObject,
    DefinedKind,
    Kind,
    decode_definition,
)
from extender.kube.informers.shared_informer import SharedInformer, SharedInformerFactory
from extender.kube.rest.api_errors import ApiError, MalformedError
from extender.kube.rest.client import Client
from extender.kube.rest.clock import Clock
from extender.kube.rest.discovery import ServedResource, discover_group
from extender.kube.rest.resources import Resource
from extender.kube.rest.transport import TransportError
from extender.kube.workloadspread.workloads import ScaledKind

NOT_YET_SERVED_SECONDS: Final = 1.0
RETRY_SECONDS: Final = 30.0


class KindFollower(Protocol):
    """Receives the resource under which a kind is served."""

    def kind_served(self, kind: Kind, resource: Resource, scaled: tuple[ScaledKind, ...]) -> None:
        """Handle that a kind is served; called after every discovery."""
        ...

    def kind_not_served(self, kind: Kind) -> None:
        """Handle that a kind is not served; called after every discovery."""
        ...


class ServedKinds:
    """Discovers the requested kinds, for one follower."""

    def __init__(
        self, client: Client, informers: SharedInformerFactory, clock: Clock, follower: KindFollower
    ) -> None:
        self._client = client
        self._informers = informers
        self._clock = clock
        self._follower = follower
        self._requested: dict[Kind, None] = {}
        self._missing: set[Kind] = set()
        self._changed = asyncio.Event()
        self._definitions: SharedInformer[CachedObject[DefinedKind]] = informers.of(
            DEFINITIONS, decode_definition
        )
        self._definitions.objects.add_handler(self)

    def request(self, kinds: Iterable[Kind]) -> None:
        """Request further kinds."""
        for kind in kinds:
            if kind not in self._requested:
                self._requested[kind] = None
                self._changed.set()

    async def run(self) -> None:
        """Run discovery whenever it is due, until cancelled."""
        try:
            while True:
                self._changed.clear()
                await self._wait_for_change(await self._discover())
        finally:
            self._informers.drop(DEFINITIONS, decode_definition)

    def added(self, item: CachedObject[DefinedKind]) -> None:
        """Run discovery if the definition is of a requested kind."""
        if item.value is not None and item.value.kind in self._requested:
            self._changed.set()

    def updated(self, old: CachedObject[DefinedKind], new: CachedObject[DefinedKind]) -> None:
        """Run discovery if the definition is, or was, of a requested kind."""
        self.added(old)
        self.added(new)

    def removed(self, item: CachedObject[DefinedKind]) -> None:
        """Run discovery if the definition was of a requested kind."""
        self.added(item)

    async def _discover(self) -> float | None:
        """Run discovery once; return the seconds until the next run, or None if none is due."""
        answered = True
        for group in dict.fromkeys(group for group, _ in self._requested):
            try:
                found = {each.kind: each for each in await discover_group(self._client, group)}
            except (ApiError, MalformedError, TransportError):
                answered = False  # earlier results hold until the server answers again
            else:
                self._notify_follower(group, found)
        if self._missing & {kind for kind, _ in self._defined()}:
            return NOT_YET_SERVED_SECONDS
        return None if answered and self._definitions.reflector.synced else RETRY_SECONDS

    def _notify_follower(self, group: str, found: Mapping[str, ServedResource]) -> None:
        scaled = dict(self._defined())
        for kind in [each for each in self._requested if each[0] == group]:
            served = found.get(kind[1])
            if served is None:
                self._missing.add(kind)
                self._follower.kind_not_served(kind)
            else:
                self._missing.discard(kind)
                self._follower.kind_served(kind, served.resource, scaled.get(kind, ()))

    def _defined(self) -> Iterator[tuple[Kind, tuple[ScaledKind, ...]]]:
        for item in self._definitions.objects.values():
            if item.value is not None:
                yield item.value.kind, item.value.scaled

    async def _wait_for_change(self, seconds: float | None) -> None:
        """Wait until something has changed, for at most this many seconds."""
        waits: list[asyncio.Task[Any]] = [asyncio.create_task(self._changed.wait())]
        if seconds is not None:
            waits.append(asyncio.create_task(self._clock.sleep(seconds)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
