"""A cluster of three zones, in which pods are created, spread, scheduled and run without sockets.

Beside the ReplicaSet and the WorkloadSpread controller a simulation acts every few seconds as a
scheduler and kubelets do: it binds pods to nodes that they fit, makes them ready, and removes
terminating ones.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from extender.kube.decoders.cluster_objects import decode_node
from extender.kube.decoders.pods import decode_undefaulted_pod
from extender.kube.informers.shared_informer import cancel_tasks
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.resources import NODES, PODS, REPLICA_SETS
from extender.kube.workloadspread.spread_pods import decode_spread_pod
from fakeapi import VirtualCluster
from fakeapi.apiserver.kinds.schemas import shipped_definitions
from policies import Snapshot, assemble, decide_filter
from policies.preemption.filtering import filters_named
from policies.preemption.policy import SchedulerRules
from policies.workloadspread.model import SpreadPod
from tests.builders import Document, encoded, node_json
from tests.builders.replicas import a_replica_set
from tests.builders.workloadspread import UNSCHEDULABLE, spread_json, target_json
from tests.stage import SPREADS, Stage

ZONES: Final = ("a", "b", "c")
DEFINITIONS: Final = tuple(shipped_definitions(["workloadspread"]))
TICK_SECONDS: Final = 2.0
QUIET_SECONDS: Final = 40.0
TIMEOUT_SECONDS: Final = 600.0
CLOSED: Final = {"key": "closed", "effect": "NoSchedule"}

_RULES: Final = SchedulerRules(filters=filters_named(["NodeAffinity", "TaintToleration"]))


class Zones(Stage):
    """The cluster, and short methods for actions and observations."""

    simulation: asyncio.Task[None]

    async def create_spread(
        self, *subsets: Document, kind: str = "ReplicaSet", **spec: Any
    ) -> None:
        """Create the WorkloadSpread ``web`` for the ReplicaSet, or Deployment, ``web``."""
        await self.create(SPREADS, spread_json(*subsets, targetRef=target_json(kind), **spec))
        await self.passes(1)

    async def change_subsets(self, *subsets: Document) -> None:
        """Replace the subsets of the WorkloadSpread, and wait until nothing happens any more."""
        await self.patch(SPREADS, "web", {"spec": {"subsets": list(subsets)}})
        await self.settle()

    async def create_replica_set(self, replicas: int = 0) -> None:
        """Create the ReplicaSet ``web``."""
        await self.create(REPLICA_SETS, a_replica_set(replicas=replicas))

    async def scale(self, replicas: int, name: str = "web") -> None:
        """Set the number of replicas, and wait until there are as many pods."""
        await self.set_replicas(replicas, name)
        await self.settle()

    async def close(self, zone: str) -> None:
        """Taint the nodes of a zone, so that no pod is scheduled there."""
        await self.patch(NODES, f"node-{zone}", {"spec": {"taints": [CLOSED]}})

    async def reopen(self, zone: str) -> None:
        """Remove the taint of a zone."""
        await self.patch(NODES, f"node-{zone}", {"spec": {"taints": None}})

    async def settle(self) -> None:
        """Let time pass until nothing has been written for a while."""
        store, quiet, waited = self.cluster.api.store, 0.0, 0.0
        while quiet < QUIET_SECONDS:
            before = store.version
            await self.passes(10)
            quiet = quiet + 10 if store.version == before else 0.0
            waited += 10
            assert waited < TIMEOUT_SECONDS, "objects are written again and again"

    async def remove(self, names: list[str], how: str, tolerated: tuple[int, ...] = ()) -> None:
        """Delete or evict many pods at once; responses with ``tolerated`` codes are no errors."""

        async def one(name: str) -> None:
            try:
                await (self.delete(PODS, name) if how == "delete" else self.evict(name))
            except ApiError as error:
                if error.status not in tolerated:
                    raise

        async with self.cluster.clock.jumping():
            await asyncio.gather(*map(one, names))

    async def pods(self) -> list[SpreadPod]:
        """Return the active pods."""
        pods = [decode_spread_pod(encoded(each)) for each in await self.all(PODS)]
        return [pod for pod in pods if pod.active]

    async def pod_names(self) -> list[str]:
        """Return the sorted names of the active pods."""
        return sorted(pod.name for pod in await self.pods())

    async def counts(self) -> dict[str, int]:
        """Count the active pods of each subset; "" for pods of none."""
        return dict(Counter(subset_of(pod) for pod in await self.pods()))

    async def costs(self) -> dict[str, set[str | None]]:
        """Return the deletion costs of the pods of each subset."""
        found: dict[str, set[str | None]] = {}
        for pod in await self.pods():
            found.setdefault(subset_of(pod), set()).add(pod.deletion_cost)
        return found

    async def status(self) -> Document:
        """Return the WorkloadSpread's status."""
        return await self.status_of(SPREADS)

    async def missing(self) -> list[int]:
        """Return the missing replicas of each subset."""
        return [each["missingReplicas"] for each in (await self.status())["subsetStatuses"]]

    async def schedulable(self) -> list[str]:
        """Return the status of each subset's condition."""
        entries = (await self.status())["subsetStatuses"]
        return [each["conditions"][0]["status"] for each in entries]

    async def simulate(self) -> None:
        """Schedule, run and remove pods whenever something has changed."""
        seen = 0
        while True:
            await self.cluster.clock.sleep(TICK_SECONDS)
            if seen == self.cluster.api.store.version:
                continue
            seen = self.cluster.api.store.version
            pods = await self.all(PODS)
            nodes = [decode_node(encoded(each)) for each in await self.all(NODES)]
            for each in pods:
                try:
                    await self._simulate_pod(each, assemble(nodes))
                except ApiError as error:
                    if error.status not in (404, 409):  # it was deleted or has changed meanwhile
                        raise

    async def _simulate_pod(self, pod: Document, snapshot: Snapshot) -> None:
        meta, status = pod["metadata"], pod["status"]
        if "deletionTimestamp" in meta:
            await self.end(meta["name"])
        elif "nodeName" not in pod["spec"]:
            await self._schedule(pod, snapshot)
        elif status.get("phase") == "Pending":
            await self.make_ready(meta["name"])

    async def _schedule(self, document: Document, snapshot: Snapshot) -> None:
        name = document["metadata"]["name"]
        raw = encoded({"kind": "Pod", "apiVersion": "v1", **document})
        pod = decode_undefaulted_pod(raw, _RULES.release)
        feasible = decide_filter(pod, snapshot, _RULES).feasible
        if feasible:
            await self.bind(name, feasible[0])
        elif not decode_spread_pod(raw).unschedulable:
            await self.patch(PODS, name, {"status": {"conditions": [UNSCHEDULABLE]}})


def subset_of(pod: SpreadPod) -> str:
    return "" if pod.injection is None else pod.injection.subset


def zone_node(zone: str) -> Document:
    """Build the node of a zone."""
    return node_json(f"node-{zone}", cpu="64", memory="256Gi", labels={"zone": zone})


@asynccontextmanager
async def zones(
    quirks: str = "fixed",
    run: str = "replicaset,workloadspread",
    seed: int = 0,
    *,
    simulated: bool = True,
) -> AsyncIterator[Zones]:
    """Open a cluster with a node in each zone, and the components of ``run``."""
    async with VirtualCluster(run=run, seed=seed, quirks=quirks) as cluster:
        stage = Zones(cluster)
        stage.load(*DEFINITIONS, *map(zone_node, ZONES))
        stage.simulation = asyncio.create_task(stage.simulate())
        if not simulated:
            stage.simulation.cancel()
        try:
            await stage.passes(1)
            yield stage
        finally:
            await cancel_tasks((stage.simulation,))


@asynccontextmanager
async def spread_zones(
    *subsets: Document, replicas: int = 0, quirks: str = "fixed", **spec: Any
) -> AsyncIterator[Zones]:
    """Open a cluster with the WorkloadSpread ``web``, and a ReplicaSet with so many pods."""
    async with zones(quirks) as stage:
        await stage.create_spread(*subsets, **spec)
        await stage.create_replica_set()
        if replicas:
            await stage.scale(replicas)
        yield stage
