"""Runs a random history: the controller in a cluster with faults, and its observations.

Several controllers elect a leader; one that loses the Lease starts again as a candidate, like a
restarted process.
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
from tests.extender.controllers.replicaset.observations import OutstandingRequests, PodObserver
from tests.extender.controllers.replicaset.random_histories import FAULTY_SECONDS, Action, History
from tests.stage import Stage

LEASE: Final = ("kube-system", "replicaset-controller")
TERMS: Final = LeaderElectionConfig(lease_seconds=30, renew_deadline=20, retry_period=5)


class JumpingClock:
    """A clock whose time of day may jump."""

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
    """One controller, until it is killed."""

    def __init__(self, name: str, history: History, cluster: VirtualCluster, clock: Clock) -> None:
        self._history = history
        self._clock = clock
        self._rng = Random(f"{history.seed} {name}")
        self.requests = OutstandingRequests(cluster.local_transport(name), cluster.clock)
        self._client = Client(self.requests)
        self._events = EventWriter(self._client, clock, self._rng)
        self._elector = LeaderElector(
            LeaseLock(self._client, *LEASE), name, clock, self._rng, TERMS, log=quiet_log()
        )
        self._running = asyncio.create_task(self._run())

    async def kill(self) -> None:
        """End the process at once; it sends no requests any more."""
        await self._client.close()
        await cancel_tasks([self._running])

    async def drop_events(self) -> None:
        """Drop the pending Events; that may take some seconds."""
        await self._events.flush()

    async def _run(self) -> None:
        if self._history.controllers == 1:
            await self._work()
        while True:
            with suppress(LeadershipLostError):
                await self._elector.run(self._work)

    async def _work(self) -> None:
        informers = SharedInformerFactory(self._client, self._clock, self._rng)
        context = ControllerContext(self._client, informers, self._clock, self._rng, self._events)
        component = ReplicaSetController(context, burst=self._history.burst)
        self.requests.follow(component)
        try:
            await component.run()
        finally:
            await informers.stop()


class Processes:
    """All controllers of a history; ``excess`` is the largest of theirs."""

    def __init__(self, history: History, cluster: VirtualCluster) -> None:
        self._history = history
        self._cluster = cluster
        self._names = _names()
        self._running: list[Process] = []
        self._killed: list[asyncio.Task[None]] = []
        self.clock = JumpingClock(cluster.clock)
        self.excess = 0

    def start(self) -> None:
        """Start processes until there are as many as the history has."""
        while len(self._running) < self._history.controllers:
            name = next(self._names)
            self._running.append(Process(name, self._history, self._cluster, self.clock))

    async def kill(self, index: int) -> None:
        """Kill one of the processes."""
        process = self._running.pop(index % len(self._running))
        await process.kill()
        self._killed.append(asyncio.create_task(process.drop_events()))
        self.excess = max(self.excess, process.requests.excess)

    async def end(self) -> None:
        """Kill all processes."""
        while self._running:
            await self.kill(0)
        await self._cluster.clock.advance(FLUSH_SECONDS)
        await asyncio.gather(*self._killed)


def _names() -> Iterator[str]:
    return (f"controller-{number}" for number in count(1))


TIMEOUT_SECONDS: Final = 26 * 3600.0  # the resync comes after a day at most
STEP_SECONDS: Final = 600.0
IDLE_SECONDS: Final = 900.0
KUBELET_SECONDS: Final = 13.0


@dataclass
class Outcome:
    """The observations of a history, and its final state."""

    pods: PodObserver
    excess: int = 0
    lost_creates: int = 0
    lost_deletes: int = 0
    settled_after: float | None = None
    idle_writes: list[str] = field(default_factory=list)
    status: Document = field(default_factory=dict)
    expected: Document = field(default_factory=dict)


class Runner(Stage):
    """Runs one history."""

    def __init__(self, history: History, cluster: VirtualCluster) -> None:
        super().__init__(cluster)
        self._history = history
        self._processes = Processes(history, cluster)
        self._outcome = Outcome(PodObserver(cluster))

    async def run(self) -> Outcome:
        """Run the history, and return the observations."""
        kubelet = [asyncio.create_task(self._run_pods())] if self._history.kubelet else []
        self.cluster.faults.plan(*self._history.plan, seed=self._history.seed)
        self._processes.start()
        now = 0.0
        for action in self._history.actions:
            await self.passes(action.at - now)
            now = action.at
            await self._act(action)
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

    async def _act(self, action: Action) -> None:
        match action.kind:
            case "scale":
                await self.set_replicas(action.amount)
            case "kill":
                await self._processes.kill(action.amount)
                self._processes.start()
            case "jump":
                self._processes.clock.ahead_ns += action.amount * 10**9
            case "orphan":
                self.load(a_pod(f"orphan-{action.at}", labels={"app": "web"}))
            case kind:
                await self._change_pod(kind, action.amount)

    async def _change_pod(self, kind: str, index: int) -> None:
        """Change one of the pods, if there are any."""
        pods = await self.all(PODS)
        if not pods:
            return
        name = pods[index % len(pods)]["metadata"]["name"]
        match kind:
            case "fail":
                await self.patch(PODS, name, {"status": {"phase": "Failed"}})
            case "delete":
                await self.delete(PODS, name)
            case "relabel":
                await self._relabel(name, "debug")
            case "restore":
                await self._relabel(name, "web")

    async def _relabel(self, name: str, app: str) -> None:
        await self.patch(PODS, name, {"metadata": {"labels": {"app": app}}})

    async def _run_pods(self) -> None:
        """Act as a kubelet for all pods: make them ready, and remove deleted ones."""
        while True:
            await self.cluster.clock.sleep(KUBELET_SECONDS)
            for each in await self.all(PODS):
                name, status = each["metadata"]["name"], each["status"]
                if "deletionTimestamp" in each["metadata"]:
                    await self.end(name)
                elif status["phase"] == "Pending":
                    await self.make_ready(name)

    async def _settle(self) -> None:
        """Let time pass until the status and the pods are correct, or the longest delay is over."""
        waited, out = 0.0, self._outcome
        while waited < TIMEOUT_SECONDS and out.settled_after is None:
            await self.passes(STEP_SECONDS)
            waited += STEP_SECONDS
            found = await self.get(REPLICA_SETS, "web")
            out.expected, out.status = await self._expected_status(found), found.get("status", {})
            if out.status == out.expected and len(await self._own()) == found["spec"]["replicas"]:
                out.settled_after = waited

    async def _own(self) -> list[Document]:
        """Return the active pods of the ReplicaSet."""
        return [
            each
            for each in await self.all(PODS)
            if "deletionTimestamp" not in each["metadata"]
            and each["metadata"]["labels"]["app"] == "web"
            and each["status"].get("phase") not in ("Failed", "Succeeded")
        ]

    async def _expected_status(self, found: Document) -> Document:
        """Compute the status from the pods; ready ones have been so for long enough."""
        own = await self._own()
        ready = sum(bool(each["status"].get("conditions")) for each in own)
        counts = {"fullyLabeledReplicas": len(own), "readyReplicas": ready}
        counts |= {
            "availableReplicas": ready,
            "observedGeneration": found["metadata"]["generation"],
        }
        nonzero = {name: count for name, count in counts.items() if count}
        return {"replicas": len(own), "terminatingReplicas": 0, **nonzero}

    async def _stay_idle(self) -> None:
        """Let a quarter of an hour pass without a change, and record the writes."""
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
        """Count the requests that succeeded although their response was lost."""
        lost = [each for each in self.cluster.requests if _is_lost(each.fault)]
        creates = [each for each in lost if each.method == "POST" and each.status == 201]
        deletes = [each for each in lost if each.method == "DELETE" and each.status == 200]
        self._outcome.lost_creates = sum(each.path.endswith("/pods") for each in creates)
        self._outcome.lost_deletes = len(deletes)


def _is_lost(effect: str) -> bool:
    return "drop after" in effect or "cut" in effect


async def run_history(history: History) -> Outcome:
    """Run a history in a cluster of its own."""
    async with VirtualCluster(run="none", seed=history.seed) as cluster:
        wait = history.min_ready_seconds
        web = a_replica_set(replicas=history.replicas, minReadySeconds=wait)
        web["metadata"]["generation"] = 1
        pods = [a_pod(f"old-{index}", "web", phase="Pending") for index in range(history.pods)]
        cluster.load([web, *pods])
        return await Runner(history, cluster).run()
