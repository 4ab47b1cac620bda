"""Runs a random history, and checks the laws during it and whenever it is quiet.

Between acts things come to rest. A quiet world is *in order*: each subset is full before the next
one has a pod. What happens is drawn so that order is expected: pods are deleted or evicted; numbers
change; the controller is killed, or its requests fail. In adaptive histories a zone fails, too,
which undoes the order; so does a webhook that is cut off after it has recorded a pod whose creation
or deletion then does not happen. There order is expected once all is well and the workload has
grown again from nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from random import Random
from typing import Final

import orjson

from extender.controllers.process.controller_manager import SPREAD_WEBHOOKS
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.resources import PODS, REPLICA_SETS
from extender.kube.workloadspread.spread_pods import decode_spread_pod
from fakeapi import VirtualCluster
from fakeapi.apiserver.testing.object_history import find_kind
from fakeapi.simulation.background_tasks import in_process_endpoint
from fakeapi.testing.faults import fault
from tests.extender.controllers.workloadspread.killable_controller import AGENT, Process
from tests.extender.controllers.workloadspread.objects import Document
from tests.extender.controllers.workloadspread.zones import ZONES, Zones, in_zone, subset_of, zones
from tests.stage import decode

MOST_REPLICAS: Final = 12


@dataclass(frozen=True)
class Act:
    """Something that happens: ``amount`` are replicas, pods, writes or the number of a zone."""

    what: str
    amount: int = 0


@dataclass(frozen=True)
class Trial:
    """One life: the limits of the subsets (None: no limit), and what happens."""

    seed: int
    limits: tuple[int | str | None, ...]
    adaptive: bool
    acts: tuple[Act, ...]

    @property
    def together(self) -> bool:
        """Whether the webhooks are of the same process as the controller, and share its fate."""
        return self.seed % 2 == 1

    @property
    def counted(self) -> bool:
        """Whether the limits are numbers, which hold at every moment."""
        return not any(isinstance(limit, str) for limit in self.limits)


def draw(seed: int) -> Trial:
    """Draw a life."""
    dice = Random(seed)
    limits = _limits(dice)
    adaptive = len(limits) > 1 and limits[-1] is None and dice.random() < 0.4
    failing = (Act("fail", dice.randrange(len(limits) - 1)),) if adaptive else ()
    acts = (Act("scale", dice.randint(1, MOST_REPLICAS)), *_acts(dice), *failing)
    return Trial(seed, limits, adaptive, acts)


def _limits(dice: Random) -> tuple[int | str | None, ...]:
    count = dice.randint(1, 3)
    if dice.random() < 0.2:
        return {1: ("100%",), 2: ("40%", "60%"), 3: ("20%", "30%", "50%")}[count]
    numbers = tuple(dice.randint(0, 5) for _ in range(count - 1))
    return (*numbers, None if dice.random() < 0.8 else MOST_REPLICAS)


def _acts(dice: Random) -> Iterator[Act]:
    for _ in range(dice.randint(2, 4)):
        what = dice.choice(("scale", "scale", "delete", "evict", "kill", "refuse"))
        match what:
            case "scale":
                yield Act(what, dice.randint(0, MOST_REPLICAS))
            case "kill" | "refuse":
                yield Act(what, dice.randint(0, 8))
                yield Act("scale", dice.randint(0, MOST_REPLICAS))
            case _:
                yield Act(what, dice.randint(1, MOST_REPLICAS))


RECOVERY_SECONDS: Final = 301.0
CRITICAL_SECONDS: Final = 20


class Witness:
    """Sees every single write of pods, and how many are active in each subset after it."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self._store = cluster.api.store
        self._kind = find_kind(cluster.api.kinds, "pods")
        self._seen = self._store.version
        self._active: dict[str, str] = {}
        self.most: Counter[str] = Counter()
        self._store.listen(self._kind, self._look)

    def _look(self) -> None:
        begin = max(self._seen, self._store.floor(self._kind))  # what was compacted was seen
        for event in self._store.since(self._kind, begin):
            pod = decode_spread_pod(event.entry.raw)
            self._active.pop(pod.name, None)
            if pod.active and event.type != "DELETED":
                self._active[pod.name] = subset_of(pod)
            self._seen = event.version
        for subset, count in Counter(self._active.values()).items():
            self.most[subset] = max(self.most[subset], count)


class Life:
    """One trial, while it lasts."""

    def __init__(self, trial: Trial, world: Zones) -> None:
        self._trial = trial
        self._world = world
        self._witness = Witness(world.cluster)
        self._reception = in_process_endpoint(world.cluster.api) if trial.together else None
        if not trial.together:
            world.cluster.control_plane[SPREAD_WEBHOOKS].start()
        self._process = self._begin()
        self._replicas = 0
        self._ordered = True
        self._told_all = True

    async def live(self) -> None:
        """Live to the end; raises AssertionError when a law is broken."""
        subsets = [in_zone(z, n) for z, n in zip(ZONES, self._trial.limits, strict=False)]
        adaptive = {"rescheduleCriticalSeconds": CRITICAL_SECONDS}
        strategy: Document = {"type": "Adaptive", "adaptive": adaptive}
        fixed: Document = {"type": "Fixed"}
        await self._world.make_spread(
            *subsets, scheduleStrategy=strategy if self._trial.adaptive else fixed
        )
        await self._world.make_replica_set()
        for act in self._trial.acts:
            await self._act(act)
            await self._world.settle()
            await self._check()
        if not self._ordered:
            await self._begin_anew()
        await self._process.kill()

    async def _act(self, act: Act) -> None:
        match act.what:
            case "scale":
                await self._scale(act.amount)
            case "kill":
                await self._process.kill()
                self._process = self._begin(act.amount)
                await self._scale(MOST_REPLICAS - self._replicas)
                await self._world.passes(10)
                await self._process.kill()
                self._process = self._begin()
                self._upset()
            case "refuse":
                self._upset()
                kind = (fault(503), fault("drop"), fault("drop", when="after"))[act.amount % 3]
                self._world.cluster.faults.plan(kind.by(AGENT).times(act.amount + 1))
            case "fail":
                await self._fail(ZONES[act.amount])
            case how:
                await self._remove(act.amount, how)

    def _begin(self, writes: int | None = None) -> Process:
        """Begin a process that survives so many writes."""
        return Process(self._world.cluster, writes, reception=self._reception)

    def _upset(self) -> None:
        """Ask for less if webhooks have been cut off: what they noted need not have happened."""
        if self._trial.together:
            self._ordered = self._told_all = False

    async def _scale(self, replicas: int) -> None:
        self._replicas = replicas
        await self._world.patch(REPLICA_SETS, "web", {"spec": {"replicas": replicas}})

    async def _fail(self, zone: str) -> None:
        """Have a zone run full while the workload grows, and have room again."""
        await self._world.close(zone)
        await self._scale(min(MOST_REPLICAS, self._replicas + 3))
        await self._world.passes(CRITICAL_SECONDS * 3)
        assert all(pod.node for pod in await self._world.pods())  # they have gone elsewhere
        await self._world.reopen(zone)
        await self._world.passes(RECOVERY_SECONDS)
        self._ordered = False

    async def _remove(self, count: int, how: str) -> None:
        names = sorted(pod.name for pod in await self._world.pods())[:count]
        async with self._world.cluster.clock.jumping():
            await asyncio.gather(*(self._remove_one(name, how) for name in names))

    async def _remove_one(self, name: str, how: str) -> None:
        path = PODS.object(name, "default")
        try:
            if how == "delete":
                await self._world.client.delete(path)
            else:
                eviction = {"apiVersion": "policy/v1", "kind": "Eviction"}
                body = orjson.dumps({**eviction, "metadata": {"name": name}})
                await self._world.client.create(path.subresource("eviction"), body, decode)
        except ApiError as error:
            if error.status not in (400, 500):  # the client may retry, and does not
                raise

    async def _begin_anew(self) -> None:
        """Go down to nothing and up again, with all zones as they should be."""
        await self._scale(0)
        await self._world.settle()
        await self._world.passes(RECOVERY_SECONDS)
        self._witness.most.clear()
        await self._scale(MOST_REPLICAS)
        await self._world.settle()
        self._ordered = self._told_all = True
        await self._check()

    async def _check(self) -> None:
        """Check the laws in a quiet world."""
        pods = await self._world.pods()
        assert len(pods) == self._replicas
        counts = Counter(map(subset_of, pods))
        if self._told_all and self._trial.counted:
            self._check_most()
        limits = [self._limit(limit) for limit in self._trial.limits]
        own = [counts[zone] for zone in ZONES[: len(limits)]]
        if self._ordered and self._trial.counted:
            assert own == in_order(self._replicas, limits)
        await self._check_status(own, limits)
        for pod in pods:
            assert pod.deletion_cost is not None

    def _check_most(self) -> None:
        for zone, limit in zip(ZONES, self._trial.limits, strict=False):
            if isinstance(limit, int):
                assert self._witness.most[zone] <= limit, zone

    def _limit(self, limit: int | str | None) -> int | None:
        if not isinstance(limit, str):
            return limit
        return ceil(int(limit.rstrip("%")) * self._replicas / 100)

    async def _check_status(self, own: Sequence[int], limits: Sequence[int | None]) -> None:
        status = await self._world.status()
        lists = [status["subsetStatuses"], *status.get("versionedSubsetStatuses", {}).values()]
        for entries in lists:
            found = [(each["replicas"], each["missingReplicas"]) for each in entries]
            wanted = [
                (count, -1 if limit is None else max(0, limit - count))
                for count, limit in zip(own, limits, strict=True)
            ]
            assert found == wanted
            assert not any(each.get("creatingPods") or each.get("deletingPods") for each in entries)


def in_order(replicas: int, limits: Sequence[int | None]) -> list[int]:
    """Fill one subset after the other."""
    counts = []
    for limit in limits:
        taken = replicas if limit is None else min(replicas, limit)
        counts.append(taken)
        replicas -= taken
    return counts


async def live(trial: Trial) -> None:
    """Live a trial from its beginning."""
    async with zones(run="replicaset", seed=trial.seed) as world:
        await Life(trial, world).live()


async def live_each(seeds: Iterable[int]) -> None:
    """Draw and live a trial of each seed; who breaks a law is named."""
    for seed in seeds:
        trial = draw(seed)
        try:
            await live(trial)
        except AssertionError as error:
            error.add_note(f"seed {seed}: {trial}")
            raise
