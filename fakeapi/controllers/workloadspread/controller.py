"""One sync of a WorkloadSpread, in upstream's order.

Pods are adopted, deletion costs are written, then the status, then unschedulable pods are deleted.
Events are recorded last, so that a status write that fails does not repeat them. Any error ends the
sync, and the queue retries it.

Nothing is decided without a synced cache: until the target's kind has been listed, which includes
that the server does not serve it, a sync does nothing. When the kind has synced, all
WorkloadSpreads that target it are enqueued.

Source: openkruise/kruise pkg/controller/workloadspread/workloadspread_controller.go.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Final

from extender.kube.client import Client
from extender.kube.clock import Clock
from extender.kube.consistency import ConsistencyStore, Copy
from extender.kube.controller import Controller, RetryError
from extender.kube.events import EventWriter
from extender.kube.informers import Informers, end
from extender.kube.logs import OnceLog
from extender.kube.resources import PODS, Resource
from extender.kube.workloadspread.spreads import WrittenSpread
from extender.kube.workloadspread.workloads import ScaledKind
from extender.kube.workqueue import WorkQueue
from fakeapi.controllers.spreading.written import Written, older
from fakeapi.controllers.workloadspread.copies import Copies
from fakeapi.controllers.workloadspread.handlers import (
    ConfigurationEvents,
    PodEvents,
    SpreadEvents,
    WorkloadEvents,
)
from fakeapi.controllers.workloadspread.pace import Pace
from fakeapi.controllers.workloadspread.served import ServedKinds
from fakeapi.controllers.workloadspread.shapes import REPLICA_SET, SPREAD, Kind
from fakeapi.controllers.workloadspread.writing import Writer
from policies.spreading.model import SECOND, Spread
from policies.spreading.reconciling import (
    DEFAULT_SPREAD_RULES,
    Outcome,
    SpreadRules,
    reconcile,
)
from policies.spreading.references import DEPLOYMENT
from policies.spreading.watching import watched_kinds
from policies.spreading.workloads import NO_WHITELIST

WORKERS: Final = 3
RESYNC_SECONDS: Final = 10 * 3600.0

_COMPONENT: Final = "workloadspread-controller"
_MOMENT_SECONDS: Final = 0.001
"""Deadlines are exclusive, so the next sync runs this long after them."""
STALE_SECONDS: Final = 0.1
"""How long to wait for caches to show our own writes."""


class WorkloadSpreadController:
    """The component ``workloadspread``: keeps deletion costs and status of WorkloadSpreads.

    ``rules`` select the upstream quirks that are followed, ``workers`` is the number of
    WorkloadSpreads that are synced concurrently. All WorkloadSpreads are resynced every 9 to 11
    hours.
    """

    def __init__(
        self,
        client: Client,
        informers: Informers,
        clock: Clock,
        rng: Random,
        events: EventWriter,
        written: Written,
        *,
        rules: SpreadRules = DEFAULT_SPREAD_RULES,
        workers: int = WORKERS,
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._rules = rules
        self._states = written
        self._log = OnceLog(controller="workloadspread")
        self._queue: WorkQueue[str] = WorkQueue(clock)
        self.copies = Copies(informers)
        self._missing: set[Kind] = set()
        self._reading: dict[Kind, asyncio.Task[None]] = {}
        self._kept: dict[Resource, Copy] = {PODS: self.copies.pods.informer}
        self._writes = ConsistencyStore(self._kept)
        self._writer = Writer(client, events.recorder(_COMPONENT), self._writes, written)
        self._served = ServedKinds(client, informers, clock, self)
        self._pace = Pace(self._queue, clock)
        given = self.copies, self._queue, rules
        self.spread_events = SpreadEvents(self._queue, self._pace, written, self._served.want)
        self.pod_events = PodEvents(self.copies, self._pace, rules, self._log)
        self.workload_events = WorkloadEvents(*given, self._log)
        self._configuration_events = ConfigurationEvents(*given, self._served.want, self._log)
        self.controller = Controller("workloadspread", self._queue, self._sync, workers)

    async def run(self) -> None:
        """Reconcile WorkloadSpreads until cancelled."""
        self._served.want((SPREAD, *watched_kinds(NO_WHITELIST, self._rules.quirks)))
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._served.run())
                group.create_task(self._look_again_and_again())
                group.create_task(self._work())
        finally:
            self._queue.close()
            await end(self._reading.values())
            self.copies.stop()

    def found(self, kind: Kind, resource: Resource, scaled: tuple[ScaledKind, ...]) -> None:
        """Follow a kind that the server serves; WorkloadSpreads that target it are enqueued."""
        self._missing.discard(kind)
        if kind == SPREAD:
            if self.copies.follow_spreads(resource, self.spread_events):
                assert self.copies.spreads is not None
                self._kept[resource] = self.copies.spreads.informer
        elif self.copies.follow(kind, resource, scaled, self.workload_events):
            self._stop_reading(kind)
            self._reading[kind] = asyncio.create_task(self._read(kind))

    def missed(self, kind: Kind) -> None:
        """Stop following a kind that the server does not serve."""
        self._missing.add(kind)
        self._stop_reading(kind)
        self.copies.lose(kind)
        if kind == SPREAD:
            self._log.warning("kind_not_served", _named(kind))

    async def _read(self, kind: Kind) -> None:
        """Wait until a kind has synced, and enqueue the WorkloadSpreads that need it."""
        await self.copies.wait_read(kind)
        for spread in self.copies.all_spreads():
            if kind in _needed(spread):
                self._queue.add(spread.key)

    def _stop_reading(self, kind: Kind) -> None:
        if reading := self._reading.pop(kind, None):
            reading.cancel()

    async def _work(self) -> None:
        await self.copies.wait_synced()
        self.copies.watch_configuration(self._configuration_events)
        self.copies.pods.objects.add_handler(self.pod_events)
        await self.controller.run()

    async def _look_again_and_again(self) -> None:
        while True:
            await self._clock.sleep(RESYNC_SECONDS * (0.9 + 0.2 * self._rng.random()))
            for spread in self.copies.all_spreads():
                self._queue.add(spread.key)

    async def _sync(self, key: str) -> float | None:
        item = self.copies.spread(key)
        if item is None:
            self._writes.clear(key)
            self._pace.forget(key)
            return None
        if item.value is None:
            self._log.warning("workload_spread_ignored", key, why=item.problem)
            return None
        if self._writes.stale(key):
            return STALE_SECONDS
        newest = self._states.newest(item.value)
        if not self._sees(newest.spread):
            return None
        try:
            return await self._look(newest)
        finally:
            self._pace.looked(key)

    def _sees(self, spread: Spread) -> bool:
        """Return whether the caches of a WorkloadSpread's target have synced."""
        needed = _needed(spread)
        for kind in needed:
            if kind in self._missing:
                self._log.warning("target_kind_not_served", spread.key, kind=_named(kind))
        return bool(needed) and all(map(self.copies.has_read, needed))

    async def _look(self, written: WrittenSpread) -> float | None:
        spread, outcome = written.spread, self._outcome(written)
        await self._writer.adopt(written, outcome)
        await self._writer.set_costs(spread, outcome)
        self._check(spread, outcome)
        outcome = await self._write_status(written, outcome)
        try:
            await self._writer.delete(spread, outcome.doomed)
        finally:  # the status already has them, so no retry would record them
            self._writer.tell(spread, outcome.events)
        due = outcome.look_again_ns
        return None if due is None else due / SECOND + _MOMENT_SECONDS

    def _outcome(self, written: WrittenSpread) -> Outcome:
        spread, copies = written.spread, self.copies
        begun = self._clock.monotonic()
        target, around = copies.target(spread), copies.surroundings(written)
        outcome = reconcile(spread, target, around, self._clock.now_ns(), self._rules)
        self._pace.reckoned(spread.key, self._clock.monotonic() - begun)
        return outcome

    def _check(self, spread: Spread, outcome: Outcome) -> None:
        if outcome.failure:
            self._log.warning("look_ended_early", spread.key, why=outcome.failure)
            raise RetryError(outcome.failure)

    async def _write_status(self, written: WrittenSpread, outcome: Outcome) -> Outcome:
        """Write the status, recalculated if a webhook of this process has written in between.

        Return the result that was written. Without recalculation, while many pods are created,
        hardly any status would be based on the newest version.
        """
        resource = self.copies.spread_resource
        if not outcome.writes_status or resource is None:
            return outcome
        async with self._states.turn(written.spread.uid):
            newest = self._newest(written)
            if newest is not written:
                outcome = self._outcome(newest)
                self._check(newest.spread, outcome)
            if outcome.writes_status:
                await self._writer.write_status(resource, newest, outcome.status)
        return outcome

    def _newest(self, written: WrittenSpread) -> WrittenSpread:
        """Return the newest known version, of the current cache and of our own writes."""
        item = self.copies.spread(written.spread.key)
        shown = None if item is None else item.value
        if shown is None or shown.spread.uid != written.spread.uid or not older(written, shown):
            return self._states.newest(written)
        return self._states.newest(shown)


def _needed(spread: Spread) -> tuple[Kind, ...]:
    """Return the kinds whose caches a sync needs; none without a target."""
    if spread.target is None:
        return ()
    kind = spread.target.presumed[:2]
    return (kind, REPLICA_SET) if kind[1] == DEPLOYMENT else (kind,)


def _named(kind: Kind) -> str:
    return ".".join(part for part in reversed(kind) if part)
