"""A world of three zones, in which pods are made, spread, scheduled and run without sockets.

Beside the ReplicaSet and the WorkloadSpread controller there are *hands*, which every few seconds
do what a scheduler and kubelets would: put pods on nodes that they fit, have them run, and let go
those that are terminating.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
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
from tests.builders import encoded, manifest
from tests.builders.replicas import a_replica_set
from tests.extender.controllers.workloadspread.objects import SPREADS, Document
from tests.stage import Stage

ZONES: Final = ("a", "b", "c")
TICK_SECONDS: Final = 2.0
QUIET_SECONDS: Final = 40.0
PATIENCE_SECONDS: Final = 600.0
CLOSED: Final = {"key": "closed", "effect": "NoSchedule"}

_PLACING: Final = SchedulerRules(filters=filters_named(["NodeAffinity", "TaintToleration"]))


class Zones(Stage):
    """The world, and short methods for actions and observations."""

    hands: asyncio.Task[None]

    async def make_spread(self, *subsets: Document, kind: str = "ReplicaSet", **spec: Any) -> None:
        """Create the WorkloadSpread ``web`` for the ReplicaSet, or Deployment, ``web``."""
        reference = {"apiVersion": "apps/v1", "kind": kind, "name": "web"}
        whole = {"targetRef": reference, "subsets": list(subsets), **spec}
        await self.create(SPREADS, spread_document(whole))
        await self.passes(1)

    async def make_replica_set(self, replicas: int = 0) -> None:
        """Create the ReplicaSet ``web``."""
        await self.create(REPLICA_SETS, a_replica_set(replicas=replicas))

    async def scale(self, replicas: int, name: str = "web") -> None:
        """Ask for so many pods, and wait until they are there."""
        await self.patch(REPLICA_SETS, name, {"spec": {"replicas": replicas}})
        await self.settle()

    async def close(self, zone: str) -> None:
        """Have no pod scheduled in a zone any more."""
        await self.patch(NODES, f"node-{zone}", {"spec": {"taints": [CLOSED]}})

    async def reopen(self, zone: str) -> None:
        """Have pods scheduled in a zone again."""
        await self.patch(NODES, f"node-{zone}", {"spec": {"taints": None}})

    async def settle(self) -> None:
        """Let time pass until nothing has happened for a while."""
        store, quiet, waited = self.cluster.api.store, 0.0, 0.0
        while quiet < QUIET_SECONDS:
            before = store.version
            await self.passes(10)
            quiet = quiet + 10 if store.version == before else 0.0
            waited += 10
            assert waited < PATIENCE_SECONDS, "things do not come to rest"

    async def pods(self) -> list[SpreadPod]:
        """Return the active pods."""
        listed = await self.all(PODS)
        pods = [decode_spread_pod(encoded(each)) for each in listed]
        return [pod for pod in pods if pod.active]

    async def counts(self) -> dict[str, int]:
        """Count the active pods of each subset; "" for pods of none."""
        return dict(Counter(subset_of(pod) for pod in await self.pods()))

    async def costs(self) -> dict[str, set[str | None]]:
        """Return the costs that pods of each subset have."""
        found: dict[str, set[str | None]] = {}
        for pod in await self.pods():
            found.setdefault(subset_of(pod), set()).add(pod.deletion_cost)
        return found

    async def status(self) -> Document:
        """Return the WorkloadSpread's status."""
        status: Document = (await self.get(SPREADS, "web")).get("status", {})
        return status

    async def missing(self) -> list[int]:
        """Return how many pods each subset lacks."""
        return [each["missingReplicas"] for each in (await self.status())["subsetStatuses"]]

    async def schedulable(self) -> list[str]:
        """Return the status of each subset's condition."""
        entries = (await self.status())["subsetStatuses"]
        return [each["conditions"][0]["status"] for each in entries]

    async def use_hands(self) -> None:
        """Schedule pods, run them and let them go, again and again."""
        seen = 0
        while True:
            await self.cluster.clock.sleep(TICK_SECONDS)
            if seen == self.cluster.api.store.version:
                continue
            seen = self.cluster.api.store.version
            listed = await self.all(PODS)
            nodes = [decode_node(encoded(each)) for each in await self._nodes()]
            for each in listed:
                try:
                    await self._handle(each, assemble(nodes))
                except ApiError as error:
                    if error.status not in (404, 409):  # it has gone, or changed: the next time
                        raise

    async def _nodes(self) -> Iterable[Document]:
        return await self.all(NODES)

    async def _handle(self, pod: Document, snapshot: Snapshot) -> None:
        meta, status = pod["metadata"], pod["status"]
        if "deletionTimestamp" in meta:
            await self.end(meta["name"])
        elif "nodeName" not in pod["spec"]:
            await self._schedule(pod, snapshot)
        elif status.get("phase") == "Pending":
            await self.make_ready(meta["name"])

    async def _schedule(self, pod: Document, snapshot: Snapshot) -> None:
        name = pod["metadata"]["name"]
        whole = {"kind": "Pod", "apiVersion": "v1", **pod}
        wanted = decode_undefaulted_pod(encoded(whole), _PLACING.release)
        feasible = decide_filter(wanted, snapshot, _PLACING).feasible
        if feasible:
            await self.bind(name, feasible[0])
        elif not decode_spread_pod(encoded(whole)).unschedulable:
            told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
            await self.patch(PODS, name, {"status": {"conditions": [told]}})


def subset_of(pod: SpreadPod) -> str:
    return "" if pod.injection is None else pod.injection.subset


def in_zone(name: str, limit: int | str | None = None) -> Document:
    """Return the subset whose pods run in the zone of the same name."""
    wanted = {"key": "zone", "operator": "In", "values": [name]}
    subset: Document = {"name": name, "requiredNodeSelector": {"matchExpressions": [wanted]}}
    return subset if limit is None else {**subset, "maxReplicas": limit}


def spread_document(spec: Document) -> Document:
    return manifest("WorkloadSpread", "web", spec=spec)


def node(zone: str) -> Document:
    return manifest(
        "Node",
        f"node-{zone}",
        metadata={"labels": {"zone": zone}},
        status={"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"}},
    )


@asynccontextmanager
async def zones(
    quirks: str = "fixed", run: str = "replicaset,workloadspread", seed: int = 0
) -> AsyncIterator[Zones]:
    """Open a world with a node in each zone, in which what ``run`` says is at work."""
    cluster = VirtualCluster(run=run, seed=seed, quirks=quirks)
    async with cluster:
        world = Zones(cluster)
        world.load(*shipped_definitions(["workloadspread"]), *map(node, ZONES))
        world.hands = asyncio.create_task(world.use_hands())
        try:
            await world.passes(1)
            yield world
        finally:
            await cancel_tasks((world.hands,))
