"""Runs a random history, and checks the laws during it and whenever the cluster is idle.

Between actions the cluster comes to rest. It is then *in order* if each subset is full before the
next one has a pod. The actions are drawn so that order is expected: pods are deleted or evicted;
numbers change; the controller is killed, or its requests fail. In adaptive histories a zone fails,
too, which breaks the order; so does a webhook that is cut off after it has recorded a pod whose
creation or deletion then does not happen. There order is expected once all faults have ended and
the workload has grown again from zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from random import Random
from typing import Final

from extender.controllers.process.controller_manager import SPREAD_WEBHOOKS
from extender.kube.workloadspread.spread_pods import decode_spread_pod
from fakeapi import VirtualCluster
from fakeapi.apiserver.testing.object_history import find_kind
from fakeapi.simulation.background_tasks import in_process_endpoint
from fakeapi.testing.faults import fault
from tests.builders import Document
from tests.builders.workloadspread import in_zone
from tests.extender.controllers.workloadspread.killable_controller import AGENT, Process
from tests.extender.controllers.workloadspread.zones import ZONES, Zones, subset_of, zones

MAX_REPLICAS: Final = 12


@dataclass(frozen=True)
class Action:
    """An action: ``amount`` are replicas, pods, writes or the number of a zone."""

    kind: str
    amount: int = 0


@dataclass(frozen=True)
class History:
    """The limits of the subsets (None: no limit), and the actions."""

    seed: int
    limits: tuple[int | str | None, ...]
    adaptive: bool
    actions: tuple[Action, ...]

    @property
    def is_one_process(self) -> bool:
        """Whether the webhooks run in the process of the controller, and are killed with it."""
        return self.seed % 2 == 1

    @property
    def has_absolute_limits(self) -> bool:
        """Whether the limits are numbers, which hold at every moment."""
        return not any(isinstance(limit, str) for limit in self.limits)


def draw(seed: int) -> History:
    """Draw a history."""
    rng = Random(seed)
    limits = _limits(rng)
    adaptive = len(limits) > 1 and limits[-1] is None and rng.random() < 0.4
    failing = (Action("fail", rng.randrange(len(limits) - 1)),) if adaptive else ()
    actions = (Action("scale", rng.randint(1, MAX_REPLICAS)), *_actions(rng), *failing)
    return History(seed, limits, adaptive, actions)


def _limits(rng: Random) -> tuple[int | str | None, ...]:
    count = rng.randint(1, 3)
    if rng.random() < 0.2:
        return {1: ("100%",), 2: ("40%", "60%"), 3: ("20%", "30%", "50%")}[count]
    numbers = tuple(rng.randint(0, 5) for _ in range(count - 1))
    return (*numbers, None if rng.random() < 0.8 else MAX_REPLICAS)


def _actions(rng: Random) -> Iterator[Action]:
    for _ in range(rng.randint(2, 4)):
        kind = rng.choice(("scale", "scale", "delete", "evict", "kill", "refuse"))
        match kind:
            case "scale":
                yield Action(kind, rng.randint(0, MAX_REPLICAS))
            case "kill" | "refuse":
                yield Action(kind, rng.randint(0, 8))
                yield Action("scale", rng.randint(0, MAX_REPLICAS))
            case _:
                yield Action(kind, rng.randint(1, MAX_REPLICAS))


RECOVERY_SECONDS: Final = 301.0
CRITICAL_SECONDS: Final = 20


class SubsetObserver:
    """Observes every write of pods, and how many are active in each subset after it."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self._store = cluster.api.store
        self._kind = find_kind(cluster.api.kinds, "pods")
        self._seen = self._store.version
        self._active: dict[str, str] = {}
        self.most: Counter[str] = Counter()
        self._store.listen(self._kind, self._observe)

    def _observe(self) -> None:
        begin = max(self._seen, self._store.floor(self._kind))  # compacted events were observed
        for event in self._store.since(self._kind, begin):
            pod = decode_spread_pod(event.entry.raw)
            self._active.pop(pod.name, None)
            if pod.active and event.type != "DELETED":
                self._active[pod.name] = subset_of(pod)
            self._seen = event.version
        for subset, count in Counter(self._active.values()).items():
            self.most[subset] = max(self.most[subset], count)


class Runner:
    """Runs one history."""

    def __init__(self, history: History, stage: Zones) -> None:
        self._history = history
        self._stage = stage
        self._observer = SubsetObserver(stage.cluster)
        api = stage.cluster.api
        self._endpoint = in_process_endpoint(api) if history.is_one_process else None
        if not history.is_one_process:
            stage.cluster.control_plane[SPREAD_WEBHOOKS].start()
        self._process = self._start_process()
        self._replicas = 0
        self._in_order = True
        self._limits_hold = True

    async def run(self) -> None:
        """Run the history. Raise AssertionError if a law is broken."""
        subsets = [in_zone(z, n) for z, n in zip(ZONES, self._history.limits, strict=False)]
        adaptive = {"rescheduleCriticalSeconds": CRITICAL_SECONDS}
        strategy: Document = {"type": "Adaptive", "adaptive": adaptive}
        fixed: Document = {"type": "Fixed"}
        await self._stage.create_spread(
            *subsets, scheduleStrategy=strategy if self._history.adaptive else fixed
        )
        await self._stage.create_replica_set()
        for action in self._history.actions:
            await self._act(action)
            await self._stage.settle()
            await self._check()
        if not self._in_order:
            await self._grow_from_zero()
        await self._process.kill()

    async def _act(self, action: Action) -> None:
        match action.kind:
            case "scale":
                await self._scale(action.amount)
            case "kill":
                await self._process.kill()
                self._process = self._start_process(action.amount)
                await self._scale(MAX_REPLICAS - self._replicas)
                await self._stage.passes(10)
                await self._process.kill()
                self._process = self._start_process()
                self._cut_off_webhooks()
            case "refuse":
                self._cut_off_webhooks()
                kind = (fault(503), fault("drop"), fault("drop", when="after"))[action.amount % 3]
                self._stage.plan_faults(kind.times(action.amount + 1), agent=AGENT)
            case "fail":
                await self._fail(ZONES[action.amount])
            case how:
                names = (await self._stage.pod_names())[: action.amount]
                await self._stage.remove(names, how, tolerated=(400, 500))  # clients do not retry

    def _start_process(self, writes: int | None = None) -> Process:
        """Start a process that is cut off after so many writes."""
        return Process(self._stage.cluster, writes, endpoint=self._endpoint)

    def _cut_off_webhooks(self) -> None:
        """Expect less from now on: pods that webhooks have recorded may never appear."""
        if self._history.is_one_process:
            self._in_order = self._limits_hold = False

    async def _scale(self, replicas: int) -> None:
        self._replicas = replicas
        await self._stage.set_replicas(replicas)

    async def _fail(self, zone: str) -> None:
        """Fill a zone while the workload grows, and give it room again."""
        await self._stage.close(zone)
        await self._scale(min(MAX_REPLICAS, self._replicas + 3))
        await self._stage.passes(CRITICAL_SECONDS * 3)
        assert all(pod.node for pod in await self._stage.pods())  # they run in other zones
        await self._stage.reopen(zone)
        await self._stage.passes(RECOVERY_SECONDS)
        self._in_order = False

    async def _grow_from_zero(self) -> None:
        """Scale to zero and up again, with all zones schedulable."""
        await self._scale(0)
        await self._stage.settle()
        await self._stage.passes(RECOVERY_SECONDS)
        self._observer.most.clear()
        await self._scale(MAX_REPLICAS)
        await self._stage.settle()
        self._in_order = self._limits_hold = True
        await self._check()

    async def _check(self) -> None:
        """Check the laws in an idle cluster."""
        pods = await self._stage.pods()
        assert len(pods) == self._replicas
        counts = Counter(map(subset_of, pods))
        if self._limits_hold and self._history.has_absolute_limits:
            self._check_most()
        limits = [self._limit(limit) for limit in self._history.limits]
        own = [counts[zone] for zone in ZONES[: len(limits)]]
        if self._in_order and self._history.has_absolute_limits:
            assert own == in_order(self._replicas, limits)
        await self._check_status(own, limits)
        for pod in pods:
            assert pod.deletion_cost is not None

    def _check_most(self) -> None:
        for zone, limit in zip(ZONES, self._history.limits, strict=False):
            if isinstance(limit, int):
                assert self._observer.most[zone] <= limit, zone

    def _limit(self, limit: int | str | None) -> int | None:
        if not isinstance(limit, str):
            return limit
        return ceil(int(limit.rstrip("%")) * self._replicas / 100)

    async def _check_status(self, own: Sequence[int], limits: Sequence[int | None]) -> None:
        status = await self._stage.status()
        lists = [status["subsetStatuses"], *status.get("versionedSubsetStatuses", {}).values()]
        for entries in lists:
            found = [(each["replicas"], each["missingReplicas"]) for each in entries]
            expected = [
                (count, -1 if limit is None else max(0, limit - count))
                for count, limit in zip(own, limits, strict=True)
            ]
            assert found == expected
            assert not any(each.get("creatingPods") or each.get("deletingPods") for each in entries)


def in_order(replicas: int, limits: Sequence[int | None]) -> list[int]:
    """Fill one subset after the other."""
    counts = []
    for limit in limits:
        taken = replicas if limit is None else min(replicas, limit)
        counts.append(taken)
        replicas -= taken
    return counts


async def run_each(seeds: Iterable[int]) -> None:
    """Draw and run a history of each seed; an error names the history that breaks a law."""
    for seed in seeds:
        history = draw(seed)
        try:
            async with zones(run="replicaset", seed=seed) as stage:
                await Runner(history, stage).run()
        except AssertionError as error:
            error.add_note(f"seed {seed}: {history}")
            raise
