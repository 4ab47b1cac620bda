"""Upstream's tables of whole reconciles, over HTTP: what is in the world when the controller rests.

Objects are created through the API, each at the time that it says, so their UIDs are the server's;
references to them are rewritten. Then their status is written, and what is on its way out is
deleted. From the time of the case on the clock runs, slowly, so that a second stays the same one.
No case here shows an oddity of upstream's, so all of them hold in both modes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any, Final

import orjson
import pytest

from extender.controllers.context import ControllerContext
from extender.controllers.workloadspread import WorkloadSpreadController
from extender.controllers.workloadspread.assumed_statuses import AssumedStatuses
from extender.controllers.workloadspread.sync import STALE_SECONDS
from extender.kube.controller_runtime.event_recorder import EventWriter
from extender.kube.informers.shared_informer import SharedInformerFactory, cancel_tasks
from extender.kube.rest.client import Client
from extender.kube.rest.resources import NAMESPACES, NODES, PODS, REPLICA_SETS, Resource
from fakeapi import FakeCluster
from fakeapi.apiserver.kinds.schemas import shipped_definitions
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from policies.replicaset import DELETION_COST
from policies.workloadspread.model import SECOND
from policies.workloadspread.quirks import FIXED, UPSTREAM, Quirks
from tests.builders.workloadspread import moment
from tests.extender.controllers.workloadspread.objects import (
    CLONE_SET_DEFINITION,
    CLONE_SETS,
    DEFINITIONS,
    DEPLOYMENTS,
    SPREADS,
    Document,
    definition,
)
from tests.stage import CONFIG_MAPS, decode
from tests.workloadspread_vectors import CASES, Case, of

PACE: Final = 0.05
PATIENCE_SECONDS: Final = 30.0

TF_JOBS: Final = Resource("kubeflow.org", "v1", "tfjobs", namespaced=True)

_RESOURCES: Final = {
    "CloneSet": CLONE_SETS,
    "ConfigMap": CONFIG_MAPS,
    "Deployment": DEPLOYMENTS,
    "Node": NODES,
    "Pod": PODS,
    "ReplicaSet": REPLICA_SETS,
    "TFJob": TF_JOBS,
    "WorkloadSpread": SPREADS,
}
_WITHOUT_STATUS: Final = ("ConfigMap", "TFJob")


class Played:
    """A case, and the world that it is played in."""

    def __init__(self, case: Case, cluster: FakeCluster) -> None:
        self._case = case
        self._cluster = cluster
        self._uids: dict[str, str] = {}
        self.part: WorkloadSpreadController

    @property
    def client(self) -> Client:
        return self._cluster.client

    @property
    def key(self) -> str:
        return self._case.written.spread.key

    async def prepare(self) -> None:
        """Make the objects of the case, and let it be the time of the case."""
        for each in (CLONE_SET_DEFINITION, definition("kubeflow.org/v1", "TFJob")):
            await self.client.create(DEFINITIONS.collection(), orjson.dumps(each), decode)
        system = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kruise-system"}}
        await self.client.create(NAMESPACES.collection(), orjson.dumps(system), decode)
        data = self._case.data
        several = (data.get("extra"), data.get("nodes"), data.get("pods"))
        objects = [data["workload"], *(each for some in several for each in some or ())]
        for each in sorted(objects, key=self._made_at):
            await self._make(each)
        await self._advance(self._case.now_ns)
        await self._make(data["workloadspread"])

    def _made_at(self, document: Document) -> int:
        written = document["metadata"].get("creationTimestamp")
        if document["kind"] != "Pod":
            return 0
        return self._case.now_ns if written is None else moment(written)

    async def _advance(self, to_ns: int) -> None:
        await self._cluster.clock.advance(max(0, to_ns - self._cluster.clock.now_ns()) / SECOND)

    async def _make(self, document: Document) -> None:
        await self._advance(self._made_at(document))
        resource, meta = _RESOURCES[document["kind"]], dict(document["metadata"])
        old, leaves = meta.pop("uid", ""), meta.pop("deletionTimestamp", None)
        owners = meta.get("ownerReferences", ())
        owned = [{**each, "uid": self._uids.get(each["uid"], each["uid"])} for each in owners]
        body = {**document, "metadata": {**meta, **({"ownerReferences": owned} if owned else {})}}
        place = meta.get("namespace", "default") if resource.namespaced else ""
        made = await self._create(resource, place, body)
        self._uids[old] = made["metadata"]["uid"]
        path = resource.object(meta["name"], place)
        if document["kind"] not in _WITHOUT_STATUS and document.get("status"):
            whole = {**made, "status": document["status"]}
            await self.client.update(path.subresource("status"), orjson.dumps(whole), decode)
        if leaves:
            await self.client.delete(path)

    async def _create(self, resource: Resource, place: str, body: Document) -> Document:
        return await self.client.create(resource.collection(place), orjson.dumps(body), decode)

    async def spread(self) -> Document:
        """Return the WorkloadSpread as it is now."""
        namespace, _, name = self.key.partition("/")
        return await self.client.get(SPREADS.object(name, namespace), decode)

    async def pods(self) -> dict[str, Document]:
        """Return the pods that there are now, by name."""
        listed = (await self.client.list(PODS, decode)).items
        return {each["metadata"]["name"]: each for each in listed}

    async def reasons(self) -> list[str]:
        """Return the reasons of all Events."""
        events = Resource("", "v1", "events", namespaced=True)
        return [each["reason"] for each in (await self.client.list(events, decode)).items]

    async def copies_are_shown(self) -> None:
        """Let a look come again that came before the copies showed what was written."""
        await self._cluster.clock.advance(STALE_SECONDS)

    async def eventually(self, holds: Callable[[], Awaitable[None]]) -> None:
        """Return when something holds; if that takes too long, say why it does not."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE_SECONDS
        while True:
            try:
                await holds()
            except AssertionError:
                if loop.time() > deadline:
                    raise
            else:
                return


@asynccontextmanager
async def played(case: Case) -> AsyncIterator[Played]:
    """Play a case until the controller has nothing to do at once."""
    clock = VirtualClock(min(map(_born, case.data.get("pods") or ()), default=case.now_ns))
    async with FakeCluster(run="none", clock=clock) as cluster:
        cluster.load([_spread_definition()])
        play = Played(case, cluster)
        await play.prepare()
        clock.run(PACE)
        informers = SharedInformerFactory(cluster.client, clock, Random(1))
        events = EventWriter(cluster.client, clock, Random(1))
        context = ControllerContext(cluster.client, informers, clock, Random(1), events)
        play.part = WorkloadSpreadController(context, AssumedStatuses(), rules=case.rules)
        running = asyncio.create_task(play.part.run())
        try:
            yield play
        finally:
            await cancel_tasks((running,))
            await events.flush()
            await informers.stop()


def _born(pod: Any) -> int:
    return moment(pod["metadata"].get("creationTimestamp") or "2026-01-01T11:00:00Z")


def _spread_definition() -> Document:
    (found,) = shipped_definitions(["workloadspread"])
    return found


TABLES = ("deletion_cost", "manage_existing", "reconcile", "requeue", "reschedule")
MATCHED = "apps.kruise.io/matched-workloadspread"


def annotation(pod: Document, name: str) -> str | None:
    found: str | None = pod["metadata"].get("annotations", {}).get(name)
    return found


def counts(entries: Any) -> list[Document]:
    """Take conditions and empty maps away."""
    return [
        {key: value for key, value in entry.items() if key != "conditions" and value != {}}
        for entry in entries or ()
    ]


class Expected:
    """The expectations of a case, compared with a world."""

    def __init__(self, case: Case, world: Played) -> None:
        self._case = case
        self._world = world

    @property
    def _expect(self) -> Mapping[str, Any]:
        return self._case.expect

    async def holds(self) -> None:
        spread, pods = await self._world.spread(), await self._world.pods()
        status = spread["status"]
        assert status["observedGeneration"] == spread["metadata"]["generation"]
        self._check_status(status)
        self._check_conditions(status)
        self._check_pods(pods)
        for reason in self._expect.get("events", ()):
            assert reason in await self._world.reasons()

    def _check_status(self, status: Document) -> None:
        if "subsetStatuses" in self._expect:
            written = counts(status.get("subsetStatuses"))
            assert written == counts(self._expect["subsetStatuses"])
        if "versionedSubsetStatuses" in self._expect:
            written_versions = status.get("versionedSubsetStatuses", {})
            wanted = self._expect["versionedSubsetStatuses"]
            assert {version: counts(each) for version, each in written_versions.items()} == {
                version: counts(each) for version, each in wanted.items()
            }
        replicas = {each["name"]: each["replicas"] for each in status.get("subsetStatuses", ())}
        assert replicas | self._expect.get("subsetReplicas", {}) == replicas

    def _check_conditions(self, status: Document) -> None:
        conditions: dict[str, Document] = {
            each["name"]: next(iter(each.get("conditions", ())), {})
            for each in status.get("subsetStatuses", ())
        }
        for wanted, key in (
            ("schedulable", "status"),
            ("reason", "reason"),
            ("lastTransitionTime", "lastTransitionTime"),
        ):
            for subset, value in self._expect.get(wanted, {}).items():
                assert conditions[subset].get(key) == value, (subset, key)

    def _check_pods(self, pods: Mapping[str, Document]) -> None:
        before = {each["metadata"]["name"] for each in self._case.data["pods"]}
        assert before - set(pods) == set(self._expect.get("podsDeleted", ()))
        for name, cost in self._expect.get("deletionCost", {}).items():
            assert annotation(pods[name], DELETION_COST) == (None if cost is None else str(cost))
        for name, subset in self._expect.get("podSubset", {}).items():
            assert f'"subset":"{subset}"' in (annotation(pods[name], MATCHED) or "")
        if "costCounts" in self._expect:
            self._check_costs([int(annotation(pod, DELETION_COST) or 0) for pod in pods.values()])

    def _check_costs(self, costs: list[int]) -> None:
        lowest = -100 * len(self._case.written.spread.subsets)
        assert self._expect["costCounts"] == {
            "positive": sum(cost > 0 for cost in costs),
            "negativeWithinSubsets": sum(lowest <= cost < 0 for cost in costs),
            "belowMinusHundredTimesSubsets": sum(cost < lowest for cost in costs),
        }

    def check_requeue(self) -> None:
        """Check when the controller requeues, if the case has a time for it."""
        wanted = self._expect.get("requeueAfterSeconds")
        if wanted is not None:
            due = self._world.part.controller.queue.due_in(self._world.key)
            assert due is not None
            assert wanted - 1 < due <= wanted + self._expect.get("toleranceSeconds", 0) + 0.01


@pytest.mark.parametrize("quirks", [UPSTREAM, FIXED], ids=["upstream", "fixed"])
@pytest.mark.parametrize("data", [data for data in CASES if data["table"] in TABLES], ids=of)
async def test_the_world_is_as_upstream_leaves_it(data: dict[str, Any], quirks: Quirks) -> None:
    case = Case(data, quirks)
    async with played(case) as world:
        expected = Expected(case, world)
        await world.eventually(expected.holds)
        await world.copies_are_shown()
        expected.check_requeue()
        await world.part.controller.drain()
        await expected.holds()
