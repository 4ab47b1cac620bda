"""One sync of a ReplicaSet: upstream's tables, run against an API server without sockets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from extender.controllers.replicaset.pod_control import SyncError
from extender.controllers.replicaset.sync import slow_start_batch
from extender.kube.controller_runtime.controller import RetryError
from extender.kube.rest.resources import PODS, REPLICA_SETS
from fakeapi.testing.faults import fault
from policies.replicaset import DELETION_COST
from tests.builders import Document, manifest
from tests.builders.replicas import a_pod, a_replica_set
from tests.extender.controllers.replicaset.stages import WEB, SteppedStage, stepped_stage
from tests.extender.controllers.replicaset.upstream_tables import Case, cases, decoded_set

NAMED = {"creates", "create_calls", "deletes", "patches"}


def objects_of(case: Case) -> list[Document]:
    fields = dict(case["rs"])
    document = a_replica_set(labels=fields.pop("selector"), **fields)
    name, uid = fields["name"], fields["uid"]
    return [document, *(pod_of(each, name, uid) for each in case["pods"])]


def pod_of(fields: Document, owner: str, uid: str) -> Document:
    document = a_pod(
        fields["name"],
        owner if fields.get("controller_uid") == uid else "",
        labels=fields["labels"],
        phase=fields["phase"],
        deleting=fields.get("deleting", False),
    )
    for reference in document["metadata"].get("ownerReferences", ()):
        reference["uid"] = uid
    return document


async def make_ready(stage: SteppedStage, pods: list[Document]) -> None:
    """Make pods ready so many seconds before the sync, to a fraction of a second."""
    ages = {each["name"]: each["ready_seconds_ago"] for each in pods if "ready_seconds_ago" in each}
    oldest = max(ages.values(), default=0.0)
    for name, age in sorted(ages.items(), key=lambda each: -each[1]):
        await stage.passes(oldest - age)
        oldest = age
        now = stage.cluster.clock.now_ns()
        second, fraction = divmod(now, 10**9)
        moment = f"2026-01-01T00:00:{second % 60:02}.{fraction // 1000:06}Z"
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": moment}
        await stage.patch(PODS, name, {"status": {"conditions": [ready]}})
    await stage.passes(oldest)


async def prepare(stage: SteppedStage, case: Case) -> str:
    key = f"default/{case['rs']['name']}"
    await make_ready(stage, case["pods"])
    if case["expectations"]:
        creations, deletions = case["expectations"]
        stage.expectations.expect_creations(key, creations)
        if deletions:
            names = [f"default/{number}" for number in range(deletions)]
            stage.expectations.expect_deletions(key, names)
        await stage.passes(case.get("expectations_age_seconds", 0))
    stage.watch.hold()
    await set_limits(stage, case)
    return key


async def set_limits(stage: SteppedStage, case: Case) -> None:
    if case["pod_control_error"] == "NamespaceTerminating":
        stage.load(
            manifest("Namespace", "default", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
        )
    elif case["pod_control_error"]:
        stage.plan_faults(fault(500).on(("create", "delete", "patch"), "pods"))
    elif case["create_limit"]:
        stage.plan_faults(fault(500).on("create", "pods").after(case["create_limit"]))


def conditions(status: Document) -> str | None:
    found = [f"{each['type']}/{each['reason']}" for each in status.get("conditions", ())]
    return ",".join(found) or None


@cases("sync")
async def test_upstreams_table_of_syncs(case: Case) -> None:
    async with stepped_stage(*objects_of(case), burst=case["burst"]) as stage:
        key, expect = await prepare(stage, case), case["expect"]
        counts = await stage.sync(key)
        assert {name: getattr(counts, name) for name in NAMED} == {n: expect[n] for n in NAMED}
        assert stage.requeued(key) == expect["requeue"]
        status = await stage.status(case["rs"]["name"])
        found: dict[str, Any] = {
            "expectations_after": list(stage.expectations.counts(key) or ()),
            "requeue_seconds": pytest.approx(stage.queue.due_in(key)),
            "condition": conditions(status),
            "status_written": counts.status_writes == 1,
            "availableReplicas": 0,
            **status,
        }
        rest = expect.keys() - NAMED - {"error", "requeue"}
        assert {name: found[name] for name in rest} == {name: expect[name] for name in rest}


@cases("burst")
async def test_upstreams_table_of_bursts(case: Case) -> None:
    web = a_replica_set(replicas=case["replicas"])
    async with stepped_stage(web, burst=case["burst"]) as stage:
        stage.watch.hold()
        for count in case["expect_creates_per_sync"]:
            await play_round(stage, "creates", count)
        assert len(await stage.all(PODS)) == case["replicas"]
        await stage.set_replicas(0)
        await stage.passes()
        for count in case["expect_deletes_per_sync"]:
            await play_round(stage, "deletes", count)
        assert await stage.all(PODS) == []


async def play_round(stage: SteppedStage, what: str, count: int) -> None:
    """Sync, let the controller observe all effects but one, which is not enough, and the last."""
    assert getattr(await stage.sync(), what) == count
    await observe_all_but(1, stage)
    counts = await stage.sync()
    assert (counts.creates, counts.deletes) == (0, 0)
    await observe_all_but(0, stage)


async def observe_all_but(missing: int, stage: SteppedStage) -> None:
    """Release events until so many of the expectations are left."""
    while sum(stage.expectations.counts(WEB) or ()) > missing:
        stage.watch.release(1)
        await stage.passes(0)


@cases("handler_sequences")
async def test_upstreams_table_of_event_sequences(case: Case) -> None:
    name = case["rs"].rpartition("/")[2]
    first = () if case["steps"][0]["do"] == "rs_add" else (a_replica_set(name),)
    async with stepped_stage(*first) as stage:
        stage.watch.hold()
        for step in case["steps"]:
            await play(stage, name, step)


async def play(stage: SteppedStage, name: str, step: Document) -> None:
    key, expectations = f"default/{name}", stage.expectations
    match step["do"]:
        case "sync":
            assert (await stage.sync(key)).creates == step["expect_creates"]
        case "rs_add":
            stage.load(a_replica_set(name, uid=step["uid"]))
            await stage.passes()
        case "rs_delete":
            await stage.delete(REPLICA_SETS, name)
            await stage.passes()
        case "rs_update":
            await replace_at_once(stage, name, step["uid"])
    if "expect_fulfilled" in step:
        assert expectations.satisfied(key) == step["expect_fulfilled"]
    if "expect_expectations_exist" in step:
        assert (expectations.counts(key) is not None) == step["expect_expectations_exist"]
    if "expect_enqueued" in step:
        assert (len(stage.queue) > 0) == step["expect_enqueued"]


async def replace_at_once(stage: SteppedStage, name: str, uid: str) -> None:
    """Deliver another ReplicaSet of the same name as an update of the old one."""
    old = stage.cached(f"default/{name}")
    new = decoded_set(a_replica_set(name, uid=uid))
    stage.component.replica_set_handler.updated(old, new)
    await stage.delete(REPLICA_SETS, name)
    stage.load(a_replica_set(name, uid=uid))
    await stage.passes()


def metric(stage: SteppedStage, name: str, **labels: str) -> float:
    registry = stage.component.metrics.registry
    found = registry.get_sample_value(f"replicaset_controller_{name}", labels)
    return 0.0 if found is None else found


RATIO = "sorting_deletion_age_ratio"


async def test_the_age_of_deleted_pods_relative_to_the_youngest_is_measured() -> None:
    async with stepped_stage(a_replica_set(replicas=2)) as stage:
        stage.load(a_pod("old", "web", creationTimestamp="2026-01-01T00:00:00Z"))
        await stage.passes(28)
        stage.load(a_pod("young", "web", creationTimestamp="2026-01-01T00:00:20Z"))
        stage.load(a_pod("unready", "web", creationTimestamp="2026-01-01T00:00:25Z"))
        for name in ("old", "young"):
            await stage.make_ready(name)
        await stage.passes()
        await stage.set_replicas(1)
        cost = {DELETION_COST: "-1"}  # so the old pod is deleted, too, with the unready one
        await stage.patch(PODS, "old", {"metadata": {"annotations": cost}})
        await stage.passes(0)
        assert (await stage.sync()).deletes == 2
        assert (metric(stage, f"{RATIO}_count"), metric(stage, f"{RATIO}_sum")) == (1, 30 // 10)
        await stage.passes()
        await stage.set_replicas(0)
        await stage.passes(0)
        assert (await stage.sync()).deletes == 1
        assert metric(stage, f"{RATIO}_count") == 1  # if all are deleted, none is chosen


async def test_a_sync_waits_until_the_caches_show_own_writes() -> None:
    async with stepped_stage(a_replica_set(replicas=2)) as stage:
        stage.watch.hold()
        assert (await stage.sync()).creates == 2
        await stage.passes(0)
        stage.expectations.forget(WEB)  # as if nothing were expected
        counts = await stage.sync()
        assert (counts.creates, counts.status_writes) == (0, 0)
        assert stage.requeued() == "rate_limited"
        assert metric(stage, "stale_sync_skips_total", group="", resource="pods") == 1
        stage.watch.release()
        await stage.passes()
        assert (await stage.sync()).creates == 0
        assert len(await stage.all(PODS)) == 2


async def test_a_response_that_is_no_pod_counts_as_a_failure() -> None:
    async with stepped_stage(a_replica_set(replicas=3)) as stage:
        stage.plan_faults(fault("cut", end="clean").on("create", "pods").once())
        counts = await stage.sync()
        assert (counts.create_calls, stage.requeued()) == (1, "rate_limited")
        (condition,) = (await stage.status())["conditions"]
        assert condition["message"].startswith("not a pod: ")


async def test_a_failed_status_write_takes_precedence() -> None:
    async with stepped_stage(a_replica_set(replicas=1)) as stage:
        status = fault(503).on("update", "replicasets", subresources="status")
        stage.plan_faults(fault(500).on("create", "pods"), status)
        counts = await stage.sync()
        assert (counts.create_calls, counts.status_writes, counts.reads) == (1, 2, 1)
        assert stage.requeued() == "rate_limited"
        assert "conditions" not in await stage.status()


async def test_a_claim_error_ends_the_sync() -> None:
    async with stepped_stage(a_replica_set(replicas=3), a_pod("a", labels={"app": "web"})) as stage:
        stage.plan_faults(fault(500).on("patch", "pods"))
        counts = await stage.sync()
        assert (counts.patches, counts.create_calls, counts.status_writes) == (1, 0, 0)
        assert stage.requeued() == "rate_limited"


async def test_deleting_a_missing_pod_is_no_error_and_not_expected() -> None:
    pods = a_pod("a", "web"), a_pod("b", "web")
    async with stepped_stage(a_replica_set(replicas=0), *pods) as stage:
        stage.watch.hold()
        await stage.end("a")
        counts = await stage.sync()
        assert (counts.deletes, stage.requeued()) == (2, None)
        assert stage.expectations.counts(WEB) == (0, 1)
        assert "conditions" not in await stage.status()


async def test_a_failed_deletion_is_reported_and_retried() -> None:
    pods = a_pod("a", "web"), a_pod("b", "web")
    async with stepped_stage(a_replica_set(replicas=0), *pods) as stage:
        stage.plan_faults(fault(500).on("delete", "pods").once())
        counts = await stage.sync()
        assert (counts.deletes, stage.requeued()) == (2, "rate_limited")
        (condition,) = (await stage.status())["conditions"]
        assert condition["reason"] == "FailedDelete"
        assert condition["message"].startswith("unable to delete pods: ")
        stage.cluster.faults.end()
        await stage.passes()
        assert (await stage.sync()).deletes == 1
        assert sorted(reason for reason, _, _ in await stage.list_events()) == [
            "FailedDelete",
            "SuccessfulDelete",
            "SuccessfulDelete",
        ]


async def test_a_terminating_replica_set_is_not_scaled_but_its_status_is_written() -> None:
    leaving = a_replica_set(replicas=5, deleting=True)
    pods = a_pod("a", "web"), a_pod("b", labels={"app": "web"})
    async with stepped_stage(leaving, *pods) as stage:
        counts = await stage.sync()
        assert (counts.creates, counts.patches, counts.status_writes) == (0, 0, 1)
        assert (await stage.status())["replicas"] == 1


class Limited:
    """Calls that succeed up to a limit; those that are under way together make a batch."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.calls = 0
        self.batches: list[int] = []

    async def __call__(self) -> SyncError | None:
        self.calls += 1
        number = self.calls
        await asyncio.sleep(0)  # all of a batch have begun by now
        if not self.batches or sum(self.batches) < self.calls:
            self.batches.append(self.calls - sum(self.batches))
        return None if number <= self._limit else RetryError(f"call {number}")


@cases("slow_start")
async def test_upstreams_table_of_slow_starts(case: Case) -> None:
    attempt = Limited(case["call_limit"])
    outcome = await slow_start_batch(case["count"], attempt, case["initial_batch_size"])
    assert attempt.calls == case["expect_calls"]
    assert attempt.batches == case["expect_batches"]
    assert outcome.successes == case["expect_successes"]
    assert (outcome.error is not None) == case["expect_error"]


async def test_the_first_error_of_a_batch_is_reported() -> None:
    outcome = await slow_start_batch(100, Limited(10))
    assert str(outcome.error) == "call 11"
