"""The player: applies the events of a recording to a world, each at its time.

Due times use the world's clock, so the same code plays at any speed, and at once on a jumping
clock. UIDs, timestamps and all other fields stay as recorded, except for resource versions, which
the world assigns.

Attached components may act earlier or later than in the recording. Actions that wait for a
component are done as soon as it has acted, between events as well.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Final

import orjson
from msgspec import structs

from extender.kube.informers import end
from extender.recording.files import Recording
from extender.recording.format import EventType, RecordedEvent
from fakeapi.api.errors import StatusError
from fakeapi.clock import VirtualClock
from fakeapi.recording import StoreFollower
from fakeapi.replaying.directing import Act, Director
from fakeapi.replaying.doorway import CONFIGURATIONS, Doorway
from fakeapi.replaying.hands import whose_deletion
from fakeapi.replaying.ledger import Ledger
from fakeapi.replaying.objects import Document, is_deleting, key_of, uid_of
from fakeapi.replaying.parts import Attached, attach
from fakeapi.replaying.report import Report, make_report
from fakeapi.replaying.subsets import DEFINITIONS, SPREADS, is_expected, spread_of
from fakeapi.world import World

_PAUSE: Final = 0.1
_TRIES: Final = 100
"""The API server loads webhook configurations within milliseconds, without a notification."""


class ReplayError(ValueError):
    """A recording cannot be played; the text names the file, the line and the reason."""


class Player:
    """Plays one recording into one world; ``run`` names the attached components.

    Raises UnsupportedComponentError.
    """

    def __init__(self, world: World, recording: Recording, run: Iterable[str]) -> None:
        self._world = world
        self._attached = attach(run)
        self._recording = _played(recording, self._attached)
        self._doorway = Doorway(world.api.webhooks.hooks) if self._attached.spreads else None
        self._turn = asyncio.Lock()
        self._stirred = asyncio.Event()
        self._seen = Ledger(self._whose)
        self._director = Director(self._attached, self._seen)
        self._early: list[RecordedEvent] = []
        self._follower = StoreFollower(world.api, self._note)
        self._began = 0.0
        self._rest: Sequence[RecordedEvent] = ()

    @property
    def aftermath_seconds(self) -> float:
        """How long the attached components may work after the last event, in seconds."""
        return self._attached.aftermath_seconds

    @property
    def seconds(self) -> float:
        """The duration of the recording, in seconds."""
        return self._recording.duration_ns / 10**9

    def begin(self) -> None:
        """Set the recorded resources of the world to their listed state. Raises ReplayError."""
        events = self._recording.events
        first = list(takewhile(lambda e: e.type == "LISTED" or not e.changes, events))
        self._rest = events[len(first) :]
        listed = [event for event in first if event.changes]
        try:
            self._clear({(event.resource, event.key) for event in listed})
            # Definitions must exist before their custom resources.
            self._load(event for event in listed if event.resource == DEFINITIONS)
            self._load(event for event in listed if event.resource != DEFINITIONS)
        except StatusError as error:
            raise ReplayError(f"{self._recording.source}: {error}") from None
        self._follower.begin()

    async def play(self) -> None:
        """Play the remaining events, each at its time from now on. Raises ReplayError."""
        self._began = self._world.clock.monotonic()
        for event in self._rest:
            due = self._began + event.at_ns / 10**9
            if due > self._world.clock.monotonic():
                await self._world.clock.sleep(due - self._world.clock.monotonic())
            async with self._turn:
                await self._play(event)

    async def keep_up(self) -> None:
        """Do pending actions whenever the world has changed, until cancelled."""
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            await self._make_up(self._director.catch_up())

    async def settle(self) -> None:
        """Do all pending actions without waiting for components any longer."""
        await self._make_up(self._director.settle())

    @property
    def ready(self) -> bool:
        """Whether attached webhooks, if any, are called for pods that are created now."""
        spreads = self._seen.get((DEFINITIONS, SPREADS))
        return self._doorway is None or self._doorway.open or spreads is None

    def report(self) -> Report:
        """Compare the current states."""
        skipped = Counter(event.resource for event in self._early)
        return make_report(self._recording, self._attached, self._director, skipped)

    def end(self) -> None:
        """Stop following the world."""
        self._follower.end()

    def _whose(self, before: Ledger, resource: str, document: Document) -> str:
        """Return the cause of a deletion: that of the played event, else the derived one."""
        played = self._director.hand_of(uid_of(document))
        return played or whose_deletion(before, resource, document)

    def _note(self, kind: EventType, resource: str, document: Document) -> None:
        self._seen.apply(kind, resource, document)
        if self._doorway is not None and kind not in ("BOOKMARK", "RELISTED"):
            self._doorway.note((resource, key_of(document)))
        if self._director.waits:
            self._stirred.set()

    def _load(self, listed: Iterable[RecordedEvent]) -> None:
        """Load the listed objects at once; keep events of kinds that the world does not serve."""
        acts: list[Act] = []
        for event in listed:
            if self._serves(event):
                acts += self._director.direct(event)
            else:
                self._early.append(event)
        self._world.load(act.document for act in acts)

    async def _play(self, event: RecordedEvent) -> None:
        """Play an event; if the world does not serve its kind, keep it until the definition."""
        if event.changes and not self._serves(event):
            self._early.append(event)
            return
        await self._carry_out(event)
        if event.changes and event.resource == DEFINITIONS:
            early, self._early = self._early, []
            for each in early:
                await self._play(each)

    def _serves(self, event: RecordedEvent) -> bool:
        """Return whether the world serves the kind of an event's object."""
        return self._world.api.kinds.of(event.api_version, event.kind) is not None

    def _clear(self, listed: set[tuple[str, str]]) -> None:
        """Remove the objects of recorded resources that are not in the first lists."""
        header = self._recording.header
        for of in header.resources:
            kind = self._world.api.kinds.of(of.api_version, of.kind)
            namespace = header.namespace if of.namespaced else ""
            entries = () if kind is None else self._world.api.store.entries(kind, namespace)
            for entry in entries:
                document = {"apiVersion": of.api_version, "kind": of.kind, **entry.document()}
                name = key_of(document)
                if (of.name, name) not in listed and of.only in ("", name):
                    self._world.api.remove(document)

    async def _carry_out(self, event: RecordedEvent) -> None:
        try:
            await self._do_all(self._director.direct(event))
        except StatusError as error:
            where = f"{self._recording.source}: line {event.line}"
            raise ReplayError(f"{where}: {error}") from None

    async def _make_up(self, acts: Iterable[Act]) -> None:
        try:
            async with self._turn:
                await self._do_all(acts)
        except StatusError as error:
            raise ReplayError(f"{self._recording.source}: {error}") from None

    async def _do_all(self, acts: Iterable[Act]) -> None:
        # One by one: the next action depends on the state after the previous one.
        for act in acts:
            await self._do(act)

    async def _do(self, act: Act) -> None:
        # The store takes ownership of documents, and recorded states keep theirs.
        document = orjson.loads(orjson.dumps(await self._let_pass(act)))
        if act.removes:
            self._world.api.remove(document)
        elif self._recorded_namespaces:
            self._world.api.place(document)
        else:
            self._world.load([document])

    async def _let_pass(self, act: Act) -> Document:
        """Return the object to write; call the webhooks for a pod's creation or deletion."""
        document, doorway = act.document, self._doorway
        if doorway is None or document.get("kind") != "Pod":
            return document
        there = self._seen.get(("pods", key_of(document)))
        if there is None:
            known = self._seen.get((SPREADS, spread_of(document)))
            was_let_in = known is not None and is_expected(known, document)
            return document if act.removes or was_let_in else await doorway.coming(document)
        if not is_deleting(there) and (act.removes or is_deleting(document)):
            await doorway.leaving(there)
        return document

    @property
    def _recorded_namespaces(self) -> bool:
        return any(each.name == "namespaces" for each in self._recording.header.resources)


async def replay(
    player: Player,
    clock: VirtualClock,
    head_start: float = 0.0,
    before: Callable[[], Awaitable[None]] | None = None,
) -> Report:
    """Play at the clock's speed or, if it is paused, as fast as possible, and compare.

    Watchers of the world have ``head_start`` seconds to read the initial state; then ``before`` is
    awaited. Raises ReplayError.
    """
    pace = clock.factor
    pass_time = clock.sleep if pace else clock.advance
    player.begin()
    await pass_time(head_start)
    for _ in range(_TRIES):
        if player.ready:
            break
        await pass_time(_PAUSE * max(pace, 1.0))
    if before is not None:
        await before()
    tasks = [asyncio.create_task(each) for each in (player.play(), player.keep_up())]
    playing, _ = tasks
    try:
        if pace:
            await playing
            await clock.sleep(player.aftermath_seconds * max(pace, 1.0))
        else:
            await clock.advance(player.seconds + player.aftermath_seconds)
            await playing
        await player.settle()
        return player.report()
    finally:
        await end(tasks)
        player.end()


def _played(recording: Recording, attached: Attached) -> Recording:
    """Return the recording to play: without webhook configurations if components are attached.

    The recorded webhooks are not served, and without a response pods could not be created.
    """
    if not attached.names:
        return recording
    events = tuple(each for each in recording.events if each.resource not in CONFIGURATIONS)
    if len(events) == len(recording.events):
        return recording
    header = recording.header
    left = tuple(each for each in header.resources if each.name not in CONFIGURATIONS)
    return replace(recording, header=structs.replace(header, resources=left), events=events)
