"""Runs a random history: the controller in a world with faults, and its observations.

Several controllers elect a leader; one that loses the Lease starts again as a candidate, as a
process that is started again does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Final

from extender.controllers.context import ControllerContext
from extender.controllers.replicaset import ReplicaSetController
from extender.kube.controller_runtime.event_recorder import FLUSH_SECONDS, EventWriter
from extender.kube.controller_runtime.leader_election import (
    LeaderElectionConfig,
    LeaderElector,
    LeadershipLostError,
)
from extender.kube.controller_runtime.lease_lock import LeaseLock
from extender.kube.informers.shared_informer import SharedInformerFactory, cancel_tasks
from extender.kube.rest.client import Client
from extender.kube.rest.clock import Clock
from extender.kube.rest.rate_limited_log import quiet_log
from extender.kube.rest.resources import PODS, REPLICA_SETS
from fakeapi import VirtualCluster
from tests.builders import Document
from tests.builders.replicas import a_pod, a_replica_set
from tests.extender.controllers.replicaset.observations import Ledger, Witness
from tests.extender.controllers.replicaset.random_histories import FAULTY_SECONDS, Act, Trial
from tests.stage import Stage

LEASE: Final = ("kube-system", "replicaset-controller")
TERMS: Final = LeaderElectionConfig(lease_seconds=30, renew_deadline=20, retry_period=5)


class JumpingClock:
    """Another clock's time, but that the time of day may jump."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.ahead_ns = 0

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def now_ns(self) -> int:
        return self._clock.now_ns() + self.ahead_ns

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)


class Process:
    """One controller, from its beginning to its sudden end."""

    def __init__(self, name: str, trial: Trial, cluster: VirtualCluster, clock: Clock) -> None:
        self._trial = trial
        self._clock = clock
        self._rng = Random(f"{trial.seed} {name}")
        self.ledger = Ledger(cluster.local_transport(name), cluster.clock)
        self._client = Client(self.ledger)
        self._events = EventWriter(self._client, clock, self._rng)
        self._elector = LeaderElector(
            LeaseLock(self._client, *LEASE), name, clock, self._rng, TERMS, log=quiet_log()
        )
        self._running = asyncio.create_task(self._run())

    async def kill(self) -> None:
        """End it: it gets no word out any more."""
        await self._client.close()
        await cancel_tasks([self._running])

    async def forget_events(self) -> None:
        """Let what it had to tell be forgotten; that may take some seconds."""
        await self._events.flush()

    async def _run(self) -> None:
        if self._trial.controllers == 1:
            await self._work()
        while True:
            with suppress(LeadershipLostError):
                await self._elector.run(self._work)

    async def _work(self) -> None:
        informers = SharedInformerFactory(self._client, self._clock, self._rng)
        context = ControllerContext(self._client, informers, self._clock, self._rng, self._events)
        part = ReplicaSetController(context, burst=self._trial.burst)
        self.ledger.follow(part)
        try:
            await part.run()
        finally:
            await informers.stop()


class Processes:
    """All controllers of a trial, ``excess`` being the most of their ledgers'."""

    def __init__(self, trial: Trial, cluster: VirtualCluster) -> None:
        self._trial = trial
        self._cluster = cluster
        self._names = _names()
        self._running: list[Process] = []
        self._killed: list[asyncio.Task[None]] = []
        self.clock = JumpingClock(cluster.clock)
        self.excess = 0

    def begin(self) -> None:
        """Begin as many as there are to be."""
        while len(self._running) < self._trial.controllers:
            name = next(self._names)
            self._running.append(Process(name, self._trial, self._cluster, self.clock))

    async def kill(self, which: int) -> None:
        """Kill one of them."""
        process = self._running.pop(which % len(self._running))
        await process.kill()
        self._killed.append(asyncio.create_task(process.forget_events()))
        self.excess = max(self.excess, process.ledger.excess)

    async def end(self) -> None:
        """Kill them all."""
        while self._running:
            await self.kill(0)
        await self._cluster.clock.advance(FLUSH_SECONDS)
        await asyncio.gather(*self._killed)


def _names() -> Iterator[str]:
    return (f"controller-{number}" for number in count(1))


PATIENCE_SECONDS: Final = 26 * 3600.0  # the resync comes after a day at most
STEP_SECONDS: Final = 600.0
IDLE_SECONDS: Final = 900.0
KUBELET_SECONDS: Final = 13.0


@dataclass
class Outcome:
    """The observations of a history, and its final state."""

    witness: Witness
    excess: int = 0
    lost_creates: int = 0
    lost_deletes: int = 0
    settled_after: float | None = None
    idle_writes: list[str] = field(default_factory=list)
    status: Document = field(default_factory=dict)
    should_be: Document = field(default_factory=dict)


class Life(Stage):
    """One trial, while it lasts."""

    def __init__(self, trial: Trial, cluster: VirtualCluster) -> None:
        super().__init__(cluster)
        self._trial = trial
        self._processes = Processes(trial, cluster)
        self._outcome = Outcome(Witness(cluster))

    async def live(self) -> Outcome:
        """Live the trial to its end."""
        kubelet = [asyncio.create_task(self._run_pods())] if self._trial.kubelet else []
        self.cluster.faults.plan(*self._trial.plan, seed=self._trial.seed)
        self._processes.begin()
        now = 0.0
        for act in self._trial.acts:
            await self.passes(act.at - now)
            now = act.at
            await self._act(act)
        await self.passes(FAULTY_SECONDS - now)
        self._count_losses()
        self.cluster.faults.end()
        self._processes.clock.ahead_ns = 0
        await self._settle()
        await cancel_tasks(kubelet)
        await self._stay_idle()
        await self._processes.end()
        self._outcome.excess = self._processes.excess
        return self._outcome

    async def _act(self, act: Act) -> None:
        match act.what:
            case "scale":
                await self.patch(REPLICA_SETS, "web", {"spec": {"replicas": act.amount}})
            case "kill":
                await self._processes.kill(act.amount)
                self._processes.begin()
            case "jump":
                self._processes.clock.ahead_ns += act.amount * 10**9
            case "orphan":
                self.load(a_pod(f"orphan-{act.at}", labels={"app": "web"}))
            case what:
                await self._meddle(what, act.amount)

    async def _meddle(self, what: str, which: int) -> None:
        """Do something to one of the pods, if there are any."""
        pods = await self._pods()
        if not pods:
            return
        name = pods[which % len(pods)]["metadata"]["name"]
        match what:
            case "fail":
                await self.patch(PODS, name, {"status": {"phase": "Failed"}})
            case "delete":
                await self.delete(PODS, name)
            case "relabel":
                await self.patch(PODS, name, {"metadata": {"labels": {"app": "debug"}}})
            case "restore":
                await self.patch(PODS, name, {"metadata": {"labels": {"app": "web"}}})

    async def _run_pods(self) -> None:
        """Act as a kubelet for all pods: make them ready, and remove deleted ones."""
        while True:
            await self.cluster.clock.sleep(KUBELET_SECONDS)
            for each in await self._pods():
                name, status = each["metadata"]["name"], each["status"]
                if "deletionTimestamp" in each["metadata"]:
                    await self.end(name)
                elif status["phase"] == "Pending":
                    await self.make_ready(name)

    async def _settle(self) -> None:
        """Let time pass until all is as it should be, or for longer than anything may take."""
        waited, out = 0.0, self._outcome
        while waited < PATIENCE_SECONDS and out.settled_after is None:
            await self.passes(STEP_SECONDS)
            waited += STEP_SECONDS
            found = await self.get(REPLICA_SETS, "web")
            out.should_be, out.status = await self._true_status(found), found.get("status", {})
            if out.status == out.should_be and len(await self._own()) == found["spec"]["replicas"]:
                out.settled_after = waited

    async def _own(self) -> list[Document]:
        """Return the pods that count as the ReplicaSet's."""
        return [
            each
            for each in await self._pods()
            if "deletionTimestamp" not in each["metadata"]
            and each["metadata"]["labels"]["app"] == "web"
            and each["status"].get("phase") not in ("Failed", "Succeeded")
        ]

    async def _true_status(self, found: Document) -> Document:
        """Work out the status from the pods themselves; all have been ready for long enough."""
        own = await self._own()
        ready = sum(bool(each["status"].get("conditions")) for each in own)
        counts = {"fullyLabeledReplicas": len(own), "readyReplicas": ready}
        counts |= {
            "availableReplicas": ready,
            "observedGeneration": found["metadata"]["generation"],
        }
        told = {name: count for name, count in counts.items() if count}
        return {"replicas": len(own), "terminatingReplicas": 0, **told}

    async def _pods(self) -> list[Document]:
        return list(await self.all(PODS))

    async def _stay_idle(self) -> None:
        """Let a quarter of an hour pass in which nothing is to do."""
        before = len(self.cluster.requests)
        await self.passes(IDLE_SECONDS)
        self._outcome.idle_writes = [
            f"{each.method} {each.path}"
            for each in self.cluster.requests[before:]
            if each.user_agent.startswith("controller")
            and each.method != "GET"
            and "/leases/" not in each.path
        ]

    def _count_losses(self) -> None:
        """Count what was done while the answer was lost."""
        lost = [each for each in self.cluster.requests if _is_lost(each.fault)]
        creates = [each for each in lost if each.method == "POST" and each.status == 201]
        deletes = [each for each in lost if each.method == "DELETE" and each.status == 200]
        self._outcome.lost_creates = sum(each.path.endswith("/pods") for each in creates)
        self._outcome.lost_deletes = len(deletes)


def _is_lost(told: str) -> bool:
    return "drop after" in told or "cut" in told


async def live(trial: Trial) -> Outcome:
    """Live a trial from its beginning."""
    async with VirtualCluster(run="none", seed=trial.seed) as cluster:
        wait = trial.min_ready_seconds
        web = a_replica_set(replicas=trial.replicas, minReadySeconds=wait)
        web["metadata"]["generation"] = 1
        pods = [a_pod(f"old-{index}", "web", phase="Pending") for index in range(trial.pods)]
        cluster.load([web, *pods])
        return await Life(trial, cluster).live()
