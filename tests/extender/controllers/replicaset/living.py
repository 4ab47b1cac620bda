"""A trial lived: the controller in a faulty world, and what was seen of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final

from extender.kube.decoders.object_meta import format_time
from extender.kube.informers.shared_informer import cancel_tasks
from extender.kube.rest.resources import PODS, REPLICA_SETS
from fakeapi import VirtualCluster
from tests.extender.controllers.replicaset.observing import Witness
from tests.extender.controllers.replicaset.processes import Processes
from tests.extender.controllers.replicaset.table import a_pod, a_replica_set
from tests.extender.controllers.replicaset.trials import FAULTY_SECONDS, Act, Trial
from tests.fakeapi.controlplane.stage import Document, Stage, decode

PATIENCE_SECONDS: Final = 26 * 3600.0  # all is told again after a day at most
STEP_SECONDS: Final = 600.0
IDLE_SECONDS: Final = 900.0
KUBELET_SECONDS: Final = 13.0


@dataclass
class Outcome:
    """What was seen of a life, and what there was in the end."""

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
        """Do what a kubelet does, for all pods: make them ready, and let go those told to go."""
        while True:
            await self.cluster.clock.sleep(KUBELET_SECONDS)
            for each in await self._pods():
                name, status = each["metadata"]["name"], each["status"]
                if "deletionTimestamp" in each["metadata"]:
                    path = PODS.object(name, "default")
                    await self.client.delete(path, grace_period_seconds=0)
                elif status["phase"] == "Pending":
                    now = format_time(self.cluster.clock.now_ns())
                    ready = {"type": "Ready", "status": "True", "lastTransitionTime": now}
                    await self.patch(
                        PODS, name, {"status": {"phase": "Running", "conditions": [ready]}}
                    )

    async def _settle(self) -> None:
        """Let time pass until all is as it should be, or for longer than anything may take."""
        waited, out = 0.0, self._outcome
        while waited < PATIENCE_SECONDS and out.settled_after is None:
            await self.passes(STEP_SECONDS)
            waited += STEP_SECONDS
            found = await self.get(REPLICA_SETS, "web")
            assert found is not None
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
        return list((await self.client.list(PODS, decode)).items)

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
