"""Upstream's tables of whole reconciles, over HTTP: the objects when the controller is idle.

Objects are created through the API, each at the time in its metadata, so their UIDs are the
server's; references to them are rewritten. Then their status is written, and terminating objects
are deleted. From the time of the case on the clock runs, slowly, so that a second stays the same
one. No case here shows a quirk of upstream's, so all of them hold in both modes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any, Final

import pytest

from extender.controllers.context import ControllerContext
from extender.controllers.workloadspread.assumed_statuses import AssumedStatuses
from extender.controllers.workloadspread.sync import STALE_SECONDS, WorkloadSpreadController
from extender.controllers.workloadspread.types import DEFINITIONS
from extender.kube.controller_runtime.event_recorder import EventWriter
from extender.kube.informers.shared_informer import SharedInformerFactory, cancel_tasks
from extender.kube.rest.client import Client
from extender.kube.rest.resources import NAMESPACES, NODES, PODS, REPLICA_SETS, Resource
from extender.kube.workloadspread.spread_pods import MATCHED_WORKLOADSPREAD
from fakeapi import FakeCluster
from fakeapi.apiserver.kinds.schemas import shipped_definitions
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from policies.replicaset import DELETION_COST
from policies.workloadspread.model import SECOND
from policies.workloadspread.quirks import FIXED, UPSTREAM, Quirks
from tests.builders import Document, manifest
from tests.builders.workloadspread import moment
from tests.extender.controllers.workloadspread.objects import CLONE_SET_DEFINITION, definition
from tests.stage import CLONE_SETS, CONFIG_MAPS, DEPLOYMENTS, SPREADS, ApiAccess
from tests.vectors.workloadspread import CASES, Case, of

PACE: Final = 0.05
TIMEOUT_SECONDS: Final = 30.0

_RESOURCES: Final = {
    "CloneSet": CLONE_SETS,
    "ConfigMap": CONFIG_MAPS,
    "Deployment": DEPLOYMENTS,
    "Node": NODES,
    "Pod": PODS,
    "ReplicaSet": REPLICA_SETS,
    "TFJob": Resource("kubeflow.org", "v1", "tfjobs", namespaced=True),
    "WorkloadSpread": SPREADS,
}
_WITHOUT_STATUS: Final = ("ConfigMap", "TFJob")


class CaseStage(ApiAccess):
    """A cluster with the objects of a case, and the controller."""

    controller: WorkloadSpreadController

    def __init__(self, case: Case, cluster: FakeCluster) -> None:
        self._case = case
        self._cluster = cluster
        self._uids: dict[str, str] = {}

    @property
    def client(self) -> Client:
        return self._cluster.client

    @property
    def key(self) -> str:
        return self._case.written.spread.key

    async def prepare(self) -> None:
        """Create the objects of the case, and advance the clock to its time."""
        for each in (CLONE_SET_DEFINITION, definition("kubeflow.org/v1", "TFJob")):
            await self.create(DEFINITIONS, each)
        await self.create(NAMESPACES, manifest("Namespace", "kruise-system"))
        data = self._case.data
        lists = (data.get("extra"), data.get("nodes"), data.get("pods"))
        objects = [data["workload"], *(each for several in lists for each in several or ())]
        for each in sorted(objects, key=self._created_at):
            await self._create(each)
        await self._advance(self._case.now_ns)
        await self._create(data["workloadspread"])

    def _created_at(self, document: Document) -> int:
        time = document["metadata"].get("creationTimestamp")
        if document["kind"] != "Pod":
            return 0
        return self._case.now_ns if time is None else moment(time)

    async def _advance(self, to_ns: int) -> None:
        await self._cluster.clock.advance(max(0, to_ns - self._cluster.clock.now_ns()) / SECOND)

    async def _create(self, document: Document) -> None:
        await self._advance(self._created_at(document))
        resource, meta = _RESOURCES[document["kind"]], dict(document["metadata"])
        uid, is_terminating = meta.pop("uid", ""), meta.pop("deletionTimestamp", None)
        if owners := meta.get("ownerReferences"):
            new_uid = self._uids.get
            meta["ownerReferences"] = [
                {**each, "uid": new_uid(each["uid"], each["uid"])} for each in owners
            ]
        made = await self.create(resource, {**document, "metadata": meta})
        self._uids[uid] = made["metadata"]["uid"]
        if document["kind"] not in _WITHOUT_STATUS and document.get("status"):
            await self.update(resource, {**made, "status": document["status"]}, "status")
        if is_terminating:
            await self.delete(resource, meta["name"], namespace=meta.get("namespace", "default"))

    async def spread(self) -> Document:
        """Return the WorkloadSpread as it is now."""
        namespace, _, name = self.key.partition("/")
        return await self.get(SPREADS, name, namespace)

    async def pods(self) -> dict[str, Document]:
        """Return the existing pods by name."""
        return {each["metadata"]["name"]: each for each in await self.all(PODS)}

    async def wait_for_caches(self) -> None:
        """Let a sync be repeated that was skipped because the caches were stale."""
        await self._cluster.clock.advance(STALE_SECONDS)

    async def eventually(self, holds: Callable[[], Awaitable[None]]) -> None:
        """Return when an assertion holds; raise its error if that takes too long."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + TIMEOUT_SECONDS
        while True:
            try:
                await holds()
            except AssertionError:
                if loop.time() > deadline:
                    raise
            else:
                return


@asynccontextmanager
async def case_stage(case: Case) -> AsyncIterator[CaseStage]:
    """Open a cluster with the objects of a case, and run the controller in it."""
    clock = VirtualClock(min(map(_first_time, case.data.get("pods") or ()), default=case.now_ns))
    async with FakeCluster(run="none", clock=clock) as cluster:
        cluster.load(shipped_definitions(["workloadspread"]))
        stage = CaseStage(case, cluster)
        await stage.prepare()
        clock.run(PACE)
        informers = SharedInformerFactory(cluster.client, clock, Random(1))
        events = EventWriter(cluster.client, clock, Random(1))
        context = ControllerContext(cluster.client, informers, clock, Random(1), events)
        stage.controller = WorkloadSpreadController(context, AssumedStatuses(), rules=case.rules)
        running = asyncio.create_task(stage.controller.run())
        try:
            yield stage
        finally:
            await cancel_tasks((running,))
            await events.flush()
            await informers.stop()


def _first_time(pod: Any) -> int:
    return moment(pod["metadata"].get("creationTimestamp") or "2026-01-01T11:00:00Z")


TABLES = ("deletion_cost", "manage_existing", "reconcile", "requeue", "reschedule")


def annotation(pod: Document, name: str) -> str | None:
    found: str | None = pod["metadata"].get("annotations", {}).get(name)
    return found


def counts(entries: Any) -> list[Document]:
    """Return subset statuses without conditions and empty maps."""
    return [
        {key: value for key, value in entry.items() if key != "conditions" and value != {}}
        for entry in entries or ()
    ]


class Expected:
    """The expectations of a case, compared with the cluster."""

    def __init__(self, case: Case, stage: CaseStage) -> None:
        self._case = case
        self._stage = stage

    @property
    def _expect(self) -> Mapping[str, Any]:
        return self._case.expect

    async def holds(self) -> None:
        spread, pods = await self._stage.spread(), await self._stage.pods()
        status = spread["status"]
        assert status["observedGeneration"] == spread["metadata"]["generation"]
        self._check_status(status)
        self._check_conditions(status)
        self._check_pods(pods)
        for reason in self._expect.get("events", ()):
            assert reason in [each[0] for each in await self._stage.list_events()]

    def _check_status(self, status: Document) -> None:
        if "subsetStatuses" in self._expect:
            written = counts(status.get("subsetStatuses"))
            assert written == counts(self._expect["subsetStatuses"])
        if "versionedSubsetStatuses" in self._expect:
            written_versions = status.get("versionedSubsetStatuses", {})
            expected = self._expect["versionedSubsetStatuses"]
            assert {version: counts(each) for version, each in written_versions.items()} == {
                version: counts(each) for version, each in expected.items()
            }
        replicas = {each["name"]: each["replicas"] for each in status.get("subsetStatuses", ())}
        assert replicas | self._expect.get("subsetReplicas", {}) == replicas

    def _check_conditions(self, status: Document) -> None:
        conditions: dict[str, Document] = {
            each["name"]: next(iter(each.get("conditions", ())), {})
            for each in status.get("subsetStatuses", ())
        }
        for name, key in (
            ("schedulable", "status"),
            ("reason", "reason"),
            ("lastTransitionTime", "lastTransitionTime"),
        ):
            for subset, value in self._expect.get(name, {}).items():
                assert conditions[subset].get(key) == value, (subset, key)

    def _check_pods(self, pods: Mapping[str, Document]) -> None:
        before = {each["metadata"]["name"] for each in self._case.data["pods"]}
        assert before - set(pods) == set(self._expect.get("podsDeleted", ()))
        for name, cost in self._expect.get("deletionCost", {}).items():
            assert annotation(pods[name], DELETION_COST) == (None if cost is None else str(cost))
        for name, subset in self._expect.get("podSubset", {}).items():
            assert f'"subset":"{subset}"' in (annotation(pods[name], MATCHED_WORKLOADSPREAD) or "")
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
        expected = self._expect.get("requeueAfterSeconds")
        if expected is not None:
            due = self._stage.controller.controller.queue.due_in(self._stage.key)
            assert due is not None
            assert expected - 1 < due <= expected + self._expect.get("toleranceSeconds", 0) + 0.01


@pytest.mark.parametrize("quirks", [UPSTREAM, FIXED], ids=["upstream", "fixed"])
@pytest.mark.parametrize("data", [data for data in CASES if data["table"] in TABLES], ids=of)
async def test_the_cluster_ends_up_as_upstream(data: dict[str, Any], quirks: Quirks) -> None:
    case = Case(data, quirks)
    async with case_stage(case) as stage:
        expected = Expected(case, stage)
        await stage.eventually(expected.holds)
        await stage.wait_for_caches()
        expected.check_requeue()
        await stage.controller.controller.drain()
        await expected.holds()
