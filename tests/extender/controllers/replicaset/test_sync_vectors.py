"""One sync of a ReplicaSet: upstream's tables, run against an API server without sockets."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.decoders.object_meta import format_time
from extender.kube.rest.resources import PODS, REPLICA_SETS
from fakeapi.testing.faults import fault
from tests.builders import manifest
from tests.builders.replicas import a_pod, a_replica_set
from tests.extender.controllers.replicaset.controller_cluster import WEB, Workshop, workshop
from tests.extender.controllers.replicaset.upstream_tables import (
    Case,
    Document,
    cases,
    replica_set,
)

NAMED = {"creates", "create_calls", "deletes", "patches"}


def written_down(case: Case) -> list[Document]:
    given = dict(case["rs"])
    name, uid, labels = given.pop("name"), given.pop("uid"), given.pop("selector")
    leaving = given.pop("deleting")
    document = a_replica_set(name, labels, uid=uid, **given)
    if leaving:
        document["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y"]}
    return [document, *(pod_of(each, name, uid) for each in case["pods"])]


def pod_of(given: Document, owner: str, uid: str) -> Document:
    document = a_pod(
        given["name"],
        owner if given.get("controller_uid") == uid else "",
        labels=given["labels"],
        phase=given["phase"],
        deleting=given.get("deleting", False),
    )
    for reference in document["metadata"].get("ownerReferences", ()):
        reference["uid"] = uid
    return document


async def tell_when_ready(shop: Workshop, pods: list[Document]) -> None:
    """Make pods ready so many seconds before the sync, to a fraction of a second."""
    ages = {each["name"]: each["ready_seconds_ago"] for each in pods if "ready_seconds_ago" in each}
    oldest = max(ages.values(), default=0.0)
    for name, age in sorted(ages.items(), key=lambda each: -each[1]):
        await shop.passes(oldest - age)
        oldest = age
        now = shop.cluster.clock.now_ns()
        second, fraction = divmod(now, 10**9)
        moment = f"2026-01-01T00:00:{second % 60:02}.{fraction // 1000:06}Z"
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": moment}
        await shop.patch_pod(name, {"status": {"conditions": [ready]}})
    await shop.passes(oldest)


async def prepare(shop: Workshop, case: Case) -> str:
    key = f"default/{case['rs']['name']}"
    await tell_when_ready(shop, case["pods"])
    if case["expectations"]:
        creations, deletions = case["expectations"]
        shop.part.expectations.expect_creations(key, creations)
        if deletions:
            names = [f"default/{number}" for number in range(deletions)]
            shop.part.expectations.expect_deletions(key, names)
        await shop.passes(case.get("expectations_age_seconds", 0))
    shop.valve.close_watch()
    await set_limits(shop, case)
    return key


async def set_limits(shop: Workshop, case: Case) -> None:
    if case["pod_control_error"] == "NamespaceTerminating":
        shop.load(
            manifest("Namespace", "default", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
        )
    elif case["pod_control_error"]:
        shop.plan(fault(500).on(("create", "delete", "patch"), "pods"))
    elif case["create_limit"]:
        shop.plan(fault(500).on("create", "pods").after(case["create_limit"]))


def requeued(shop: Workshop, key: str) -> str | None:
    due = shop.queue.due_in(key)
    if due is None:
        return None
    return "rate_limited" if due == pytest.approx(0.005) else "after"


def conditions(status: Document) -> str | None:
    found = [f"{each['type']}/{each['reason']}" for each in status.get("conditions", ())]
    return ",".join(found) or None


@cases("sync")
async def test_upstreams_table(case: Case) -> None:
    async with workshop(*written_down(case), burst=case["burst"]) as shop:
        key, expect = await prepare(shop, case), case["expect"]
        asked = await shop.look(key)
        assert {name: getattr(asked, name) for name in NAMED} == {n: expect[n] for n in NAMED}
        assert requeued(shop, key) == expect["requeue"]
        status = await shop.status(case["rs"]["name"])
        found: dict[str, Any] = {
            "expectations_after": list(shop.part.expectations.counts(key) or ()),
            "requeue_seconds": pytest.approx(shop.queue.due_in(key)),
            "condition": conditions(status),
            "status_written": asked.status_writes == 1,
            "availableReplicas": 0,
            **status,
        }
        rest = expect.keys() - NAMED - {"error", "requeue"}
        assert {name: found[name] for name in rest} == {name: expect[name] for name in rest}


@cases("burst")
async def test_upstreams_burst(case: Case) -> None:
    async with workshop(a_replica_set(replicas=case["replicas"]), burst=case["burst"]) as shop:
        shop.valve.close_watch()
        for count in case["expect_creates_per_sync"]:
            await play_round(shop, "creates", count)
        assert len(await shop.pods()) == case["replicas"]
        await shop.scaled(0)
        await shop.passes()
        for count in case["expect_deletes_per_sync"]:
            await play_round(shop, "deletes", count)
        assert await shop.pods() == []


async def play_round(shop: Workshop, what: str, count: int) -> None:
    """Have so much done, see all of it but one, which is not enough, and then the last."""
    assert getattr(await shop.look(), what) == count
    await see_all_but(1, shop)
    asked = await shop.look()
    assert (asked.creates, asked.deletes) == (0, 0)
    await see_all_but(0, shop)


async def see_all_but(missing: int, shop: Workshop) -> None:
    """Let the watch go on until so much of what is expected has not been seen."""
    while sum(shop.part.expectations.counts(WEB) or ()) > missing:
        shop.valve.let_through(1)
        await shop.passes(0)


@cases("handler_sequences")
async def test_upstreams_sequences(case: Case) -> None:
    name = case["rs"].rpartition("/")[2]
    first = () if case["steps"][0]["do"] == "rs_add" else (a_replica_set(name),)
    async with workshop(*first) as shop:
        shop.valve.close_watch()
        for step in case["steps"]:
            await play(shop, name, step)


async def play(shop: Workshop, name: str, step: Document) -> None:
    key, expectations = f"default/{name}", shop.part.expectations
    match step["do"]:
        case "sync":
            assert (await shop.look(key)).creates == step["expect_creates"]
        case "rs_add":
            shop.load(a_replica_set(name, uid=step["uid"]))
            await shop.passes()
        case "rs_delete":
            await shop.delete(REPLICA_SETS, name)
            await shop.passes()
        case "rs_update":
            await replace_at_once(shop, name, step["uid"])
    if "expect_fulfilled" in step:
        assert expectations.satisfied(key) == step["expect_fulfilled"]
    if "expect_expectations_exist" in step:
        assert (expectations.counts(key) is not None) == step["expect_expectations_exist"]
    if "expect_enqueued" in step:
        assert (len(shop.queue) > 0) == step["expect_enqueued"]


async def replace_at_once(shop: Workshop, name: str, uid: str) -> None:
    """Show the controller another ReplicaSet of the same name as a change of the old one."""
    old = shop.part.caches.get(f"default/{name}")
    new = replica_set(a_replica_set(name, uid=uid))
    assert old is not None
    shop.part.replica_set_handler.updated(old, new)
    await shop.delete(REPLICA_SETS, name)
    shop.load(a_replica_set(name, uid=uid))
    await shop.passes()


async def ready(shop: Workshop, name: str) -> None:
    now = format_time(shop.cluster.clock.now_ns())
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": now}
    await shop.patch_pod(name, {"status": {"conditions": [condition]}})


def figure(shop: Workshop, name: str, **labels: str) -> float:
    found = shop.part.metrics.registry.get_sample_value(f"replicaset_controller_{name}", labels)
    return 0.0 if found is None else found


RATIO = "sorting_deletion_age_ratio"


async def test_how_old_the_chosen_were_beside_the_youngest_is_measured() -> None:
    async with workshop(a_replica_set(replicas=2)) as shop:
        shop.load(a_pod("old", "web", creationTimestamp="2026-01-01T00:00:00Z"))
        await shop.passes(28)
        shop.load(a_pod("young", "web", creationTimestamp="2026-01-01T00:00:20Z"))
        shop.load(a_pod("unready", "web", creationTimestamp="2026-01-01T00:00:25Z"))
        for name in ("old", "young"):
            await ready(shop, name)
        await shop.passes()
        await shop.scaled(1)  # a cost makes the old pod go first, and the unready one goes anyway
        cost = {"controller.kubernetes.io/pod-deletion-cost": "-1"}
        await shop.patch_pod("old", {"metadata": {"annotations": cost}})
        await shop.passes(0)
        assert (await shop.look()).deletes == 2
        assert (figure(shop, f"{RATIO}_count"), figure(shop, f"{RATIO}_sum")) == (1, 30 // 10)
        await shop.passes()
        await shop.scaled(0)
        await shop.passes(0)
        assert (await shop.look()).deletes == 1
        assert figure(shop, f"{RATIO}_count") == 1  # where all go, none is chosen


async def test_a_look_waits_until_the_copies_show_what_was_written() -> None:
    async with workshop(a_replica_set(replicas=2)) as shop:
        shop.valve.close_watch()
        assert (await shop.look()).creates == 2
        await shop.passes(0)
        shop.part.expectations.forget(WEB)  # as if nothing were expected
        asked = await shop.look()
        assert (asked.creates, asked.status_writes) == (0, 0)
        assert requeued(shop, WEB) == "rate_limited"
        assert figure(shop, "stale_sync_skips_total", group="", resource="pods") == 1
        shop.valve.let_through()
        await shop.passes()
        assert (await shop.look()).creates == 0
        assert len(await shop.pods()) == 2


async def test_an_answer_that_is_no_pod_counts_as_a_failure() -> None:
    async with workshop(a_replica_set(replicas=3)) as shop:
        shop.plan(fault("cut", end="clean").on("create", "pods").once())
        asked = await shop.look()
        assert (asked.create_calls, requeued(shop, WEB)) == (1, "rate_limited")
        (condition,) = (await shop.status())["conditions"]
        assert condition["message"].startswith("not a pod: ")


async def test_a_failed_status_write_takes_precedence() -> None:
    async with workshop(a_replica_set(replicas=1)) as shop:
        status = fault(503).on("update", "replicasets", subresources="status")
        shop.plan(fault(500).on("create", "pods"), status)
        asked = await shop.look()
        assert (asked.create_calls, asked.status_writes, asked.reads) == (1, 2, 1)
        assert requeued(shop, WEB) == "rate_limited"
        assert "conditions" not in await shop.status()


async def test_a_claim_error_ends_the_sync() -> None:
    async with workshop(a_replica_set(replicas=3), a_pod("a", labels={"app": "web"})) as shop:
        shop.plan(fault(500).on("patch", "pods"))
        asked = await shop.look()
        assert (asked.patches, asked.create_calls, asked.status_writes) == (1, 0, 0)
        assert requeued(shop, WEB) == "rate_limited"


async def test_deleting_a_missing_pod_is_no_error_and_not_expected() -> None:
    async with workshop(a_replica_set(replicas=0), a_pod("a", "web"), a_pod("b", "web")) as shop:
        shop.valve.close_watch()
        await shop.client.delete(PODS.object("a", "default"), grace_period_seconds=0)
        asked = await shop.look()
        assert (asked.deletes, requeued(shop, WEB)) == (2, None)
        assert shop.part.expectations.counts(WEB) == (0, 1)
        assert "conditions" not in await shop.status()


async def test_a_failed_deletion_is_reported_and_retried() -> None:
    async with workshop(a_replica_set(replicas=0), a_pod("a", "web"), a_pod("b", "web")) as shop:
        shop.plan(fault(500).on("delete", "pods").once())
        asked = await shop.look()
        assert (asked.deletes, requeued(shop, WEB)) == (2, "rate_limited")
        (condition,) = (await shop.status())["conditions"]
        assert condition["reason"] == "FailedDelete"
        assert condition["message"].startswith("unable to delete pods: ")
        shop.cluster.faults.end()
        await shop.passes()
        assert (await shop.look()).deletes == 1
        assert sorted(reason for reason, _, _ in await shop.told()) == [
            "FailedDelete",
            "SuccessfulDelete",
            "SuccessfulDelete",
        ]


async def test_a_replica_set_on_its_way_out_scales_nothing_but_says_what_it_has() -> None:
    leaving = a_replica_set(replicas=5)
    leaving["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y"]}
    async with workshop(leaving, a_pod("a", "web"), a_pod("b", labels={"app": "web"})) as shop:
        asked = await shop.look()
        assert (asked.creates, asked.patches, asked.status_writes) == (0, 0, 1)
        assert (await shop.status())["replicas"] == 1
