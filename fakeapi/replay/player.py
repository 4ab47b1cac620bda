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

from extender.kube.informers.shared_informer import cancel_tasks
from extender.recording.files import Recording
from extender.recording.format import EventType, RecordedEvent
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from fakeapi.apiserver.wire.errors import StatusError
from fakeapi.replay.component_effects import AttachedComponents, attach
from fakeapi.replay.event_actions import Action, ActionPlanner
from fakeapi.replay.object_fields import (
    DEFINITIONS,
    SPREADS,
    Document,
    is_deleting,
    is_expected,
    key_of,
    spread_of,
    uid_of,
)
from fakeapi.replay.pod_webhook_calls import CONFIGURATIONS, PodWebhookCaller
from fakeapi.replay.recorded_state import RecordedState, deletion_cause
from fakeapi.replay.report import Report, make_report
from fakeapi.simulation.store_recorder import StoreRecorder
from fakeapi.simulation.world import World

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
        self._recording = _playable(recording, self._attached)
        self._webhooks = (
            PodWebhookCaller(world.api.webhooks.handlers)
            if self._attached.assigns_subsets
            else None
        )
        self._lock = asyncio.Lock()
        self._changed = asyncio.Event()
        self._state = RecordedState(self._deletion_cause)
        self._planner = ActionPlanner(self._attached, self._state)
        self._unserved: list[RecordedEvent] = []
        self._follower = StoreRecorder(world.api, self._on_event)
        self._began = 0.0
        self._remaining: Sequence[RecordedEvent] = ()

    @property
    def settling_seconds(self) -> float:
        """How long the attached components may work after the last event, in seconds."""
        return self._attached.settling_seconds

    @property
    def seconds(self) -> float:
        """The duration of the recording, in seconds."""
        return self._recording.duration_ns / 10**9

    def begin(self) -> None:
        """Set the recorded resources of the world to their listed state. Raises ReplayError."""
        events = self._recording.events
        first = list(takewhile(lambda e: e.type == "LISTED" or not e.is_object_event, events))
        self._remaining = events[len(first) :]
        listed = [event for event in first if event.is_object_event]
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
        for event in self._remaining:
            due = self._began + event.at_ns / 10**9
            if due > self._world.clock.monotonic():
                await self._world.clock.sleep(due - self._world.clock.monotonic())
            async with self._lock:
                await self._play(event)

    async def keep_up(self) -> None:
        """Do pending actions whenever the world has changed, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._run_pending(self._planner.catch_up())

    async def finish(self) -> None:
        """Do all pending actions without waiting for components any longer."""
        await self._run_pending(self._planner.finish())

    @property
    def ready(self) -> bool:
        """Whether attached webhooks, if any, are called for pods that are created now."""
        spreads = self._state.get((DEFINITIONS, SPREADS))
        return self._webhooks is None or self._webhooks.is_registered or spreads is None

    def report(self) -> Report:
        """Compare the current states."""
        skipped = Counter(event.resource for event in self._unserved)
        return make_report(self._recording, self._attached, self._planner, skipped)

    def end(self) -> None:
        """Stop following the world."""
        self._follower.end()

    def _deletion_cause(self, before: RecordedState, resource: str, document: Document) -> str:
        """Return the cause of a deletion: that of the played event, else the derived one."""
        played = self._planner.played_cause(uid_of(document))
        return played or deletion_cause(before, resource, document)

    def _on_event(self, kind: EventType, resource: str, document: Document) -> None:
        self._state.apply(kind, resource, document)
        if self._webhooks is not None and kind not in ("BOOKMARK", "RELISTED"):
            self._webhooks.record_object((resource, key_of(document)))
        if self._planner.is_waiting:
            self._changed.set()

    def _load(self, listed: Iterable[RecordedEvent]) -> None:
        """Load the listed objects at once; keep events of kinds that the world does not serve."""
        acts: list[Action] = []
        for event in listed:
            if self._serves(event):
                acts += self._planner.plan(event)
            else:
                self._unserved.append(event)
        self._world.put_all(act.document for act in acts)

    async def _play(self, event: RecordedEvent) -> None:
        """Play an event; if the world does not serve its kind, keep it until the definition."""
        if event.is_object_event and not self._serves(event):
            self._unserved.append(event)
            return
        await self._apply(event)
        if event.is_object_event and event.resource == DEFINITIONS:
            early, self._unserved = self._unserved, []
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

    async def _apply(self, event: RecordedEvent) -> None:
        try:
            await self._do_all(self._planner.plan(event))
        except StatusError as error:
            where = f"{self._recording.source}: line {event.line}"
            raise ReplayError(f"{where}: {error}") from None

    async def _run_pending(self, acts: Iterable[Action]) -> None:
        try:
            async with self._lock:
                await self._do_all(acts)
        except StatusError as error:
            raise ReplayError(f"{self._recording.source}: {error}") from None

    async def _do_all(self, acts: Iterable[Action]) -> None:
        # One by one: the next action depends on the state after the previous one.
        for act in acts:
            await self._do(act)

    async def _do(self, act: Action) -> None:
        # The store takes ownership of documents, and recorded states keep theirs.
        document = orjson.loads(orjson.dumps(await self._call_webhooks(act)))
        if act.removes:
            self._world.api.remove(document)
        elif self._recorded_namespaces:
            self._world.api.put(document)
        else:
            self._world.put_all([document])

    async def _call_webhooks(self, act: Action) -> Document:
        """Return the object to write; call the webhooks for a pod's creation or deletion."""
        document, doorway = act.document, self._webhooks
        if doorway is None or document.get("kind") != "Pod":
            return document
        there = self._state.get(("pods", key_of(document)))
        if there is None:
            spread = self._state.get((SPREADS, spread_of(document)))
            was_let_in = spread is not None and is_expected(spread, document)
            return (
                document if act.removes or was_let_in else await doorway.review_creation(document)
            )
        if not is_deleting(there) and (act.removes or is_deleting(document)):
            await doorway.review_deletion(there)
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
            await clock.sleep(player.settling_seconds * max(pace, 1.0))
        else:
            await clock.advance(player.seconds + player.settling_seconds)
            await playing
        await player.finish()
        return player.report()
    finally:
        await cancel_tasks(tasks)
        player.end()


def _playable(recording: Recording, attached: AttachedComponents) -> Recording:
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
