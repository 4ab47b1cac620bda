"""The effect of an event: upstream's table, and every other branch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from extender.controllers.replicaset.event_handlers import ReplicaSetPodEventHandler
from extender.kube.controller_runtime.expectations import UIDTrackingControllerExpectations
from extender.kube.controller_runtime.workqueue import WorkQueue
from extender.kube.rest.rate_limited_log import OnceLog
from tests.builders.replicas import a_pod, a_replica_set, controlled_by
from tests.extender.controllers.replicaset.controller_cluster import Workshop, workshop
from tests.extender.controllers.replicaset.upstream_tables import (
    Case,
    Document,
    cases,
    pod,
)

POD = "default/pod"
NOON = "2026-01-01T12:00:00Z"


class Ears:
    """Handlers of their own over a workshop's copies, and what they note."""

    def __init__(
        self, shop: Workshop, expect: Callable[[UIDTrackingControllerExpectations, str], None]
    ) -> None:
        clock = shop.cluster.clock
        self.queue: WorkQueue[str] = WorkQueue(clock)
        self.expectations = UIDTrackingControllerExpectations(clock)
        self.events = ReplicaSetPodEventHandler(
            shop.part.caches, self.queue, self.expectations, OnceLog()
        )
        self._keys = [each.metadata.key for each in shop.part.caches.replica_sets.objects.values()]
        for key in self._keys:
            expect(self.expectations, key)

    def hear(self, event: str, old: Document | None, new: Document) -> None:
        if event == "update" and old is not None:
            self.events.updated(pod(old), pod(new))
        elif event == "add":
            self.events.added(pod(new))
        else:
            self.events.removed(pod(new))

    @property
    def enqueued(self) -> list[str]:
        found = []
        while (key := self.queue.take()) is not None:
            self.queue.done(key)
            found.append(key.partition("/")[2])
        return sorted(found)

    @property
    def enqueued_later(self) -> dict[str, float]:
        due = {key.partition("/")[2]: self.queue.due_in(key) for key in self._keys}
        return {name: seconds for name, seconds in due.items() if seconds is not None}

    @property
    def observed(self) -> list[str]:
        """Return the ReplicaSets whose expectations are satisfied."""
        done = [key.partition("/")[2] for key in self._keys if self.expectations.satisfied(key)]
        return sorted(done)


def a_creation(expectations: UIDTrackingControllerExpectations, key: str) -> None:
    expectations.expect_creations(key, 1)


def the_deletion(expectations: UIDTrackingControllerExpectations, key: str) -> None:
    expectations.expect_deletions(key, [POD])


@dataclass(frozen=True)
class Heard:
    """Everything that followed from one event."""

    enqueued: list[str]
    enqueued_later: Mapping[str, float]
    creations: list[str]
    deletions: list[str]


async def heard(sets: list[Document], event: str, old: Document | None, new: Document) -> Heard:
    async with workshop(*sets) as shop:
        before, after = Ears(shop, a_creation), Ears(shop, the_deletion)
        for ears in (before, after):
            ears.hear(event, old, new)
        return Heard(before.enqueued, before.enqueued_later, before.observed, after.observed)


def pod_of(given: Document) -> Document:
    ready = NOON if given["ready"] else ""
    document = a_pod(
        given["name"], labels=given["labels"], deleting=given["deleting"], ready_since=ready
    )
    document["metadata"]["resourceVersion"] = given["resourceVersion"]
    if given["controllerRef"]:
        reference = controlled_by(given["controllerRef"]["name"], given["controllerRef"]["uid"])
        reference["kind"] = given["controllerRef"]["kind"]
        document["metadata"]["ownerReferences"] = [reference]
    return document


@cases("handlers")
async def test_upstreams_table(case: Case) -> None:
    sets = [
        a_replica_set(
            each["name"],
            each["selector"],
            uid=each["uid"],
            minReadySeconds=each["minReadySeconds"],
        )
        for each in case["rss"]
    ]
    old = pod_of(case["old"]) if case["old"] else None
    found = await heard(sets, case["event"], old, pod_of(case["cur"]))
    assert found == Heard(
        sorted(case["expect_enqueued"]),
        case["expect_enqueue_after"],
        case["expect_creation_observed"],
        case["expect_deletion_observed"],
    )


SETS = [
    a_replica_set("web", minReadySeconds=30),
    a_replica_set("db"),
    a_replica_set("odd", selector={"matchExpressions": [{"key": "a", "operator": "Odd"}]}),
    a_replica_set("all", selector={}),
    a_replica_set("none", selector=None),
]
NOTHING = Heard([], {}, [], [])


def web(version: str = "2", **fields: Any) -> Document:
    return a_pod("pod", "web", resourceVersion=version, **fields)


def orphan(version: str = "2", **fields: Any) -> Document:
    return a_pod("pod", resourceVersion=version, **{"labels": {"app": "web"}, **fields})


def of_a_stranger(version: str = "2", **reference: str) -> Document:
    document = orphan(version)
    document["metadata"]["ownerReferences"] = [{**controlled_by("web", "web"), **reference}]
    return document


EVENTS: list[tuple[str, str, Document | None, Document, Heard]] = [
    ("an orphan comes", "add", None, orphan(), Heard(["web"], {}, [], [])),
    ("an orphan without labels comes", "add", None, orphan(labels={}), NOTHING),
    ("an orphan of another namespace comes", "add", None, orphan(namespace="n"), NOTHING),
    ("an orphan comes on its way out", "add", None, orphan(deleting=True), NOTHING),
    ("an orphan goes", "delete", None, orphan(), NOTHING),
    ("a stranger's pod comes", "add", None, of_a_stranger(kind="StatefulSet"), NOTHING),
    ("a pod of a namesake comes", "add", None, of_a_stranger(uid="other"), NOTHING),
    ("a pod of somebody unknown comes", "add", None, of_a_stranger(name="x"), NOTHING),
    (
        "a pod comes of a ReplicaSet of another version",
        "add",
        None,
        of_a_stranger(apiVersion="extensions/v1beta1"),
        Heard(["web"], {}, ["web"], []),
    ),
    ("a stranger's pod goes", "delete", None, of_a_stranger(kind="StatefulSet"), NOTHING),
    ("a pod goes", "delete", None, web(), Heard(["web"], {}, [], ["web"])),
    (
        "a pod is told to go",
        "update",
        web("1"),
        web(deleting=True),
        Heard(["web"], {}, [], ["web"]),
    ),
    ("a pod changes", "update", web("1"), web(node="n"), Heard(["web"], {}, [], [])),
    (
        "a pod gets ready",
        "update",
        web("1"),
        web(ready_since=NOON),
        Heard(["web"], {"web": 30}, [], []),
    ),
    (
        "a pod stays ready",
        "update",
        web("1", ready_since=NOON),
        web(ready_since=NOON),
        Heard(["web"], {}, [], []),
    ),
    ("a pod is made an orphan", "update", web("1"), orphan(), Heard(["web"], {}, [], [])),
    (
        "a pod is made an orphan of nobody",
        "update",
        web("1"),
        orphan(labels={}),
        Heard(["web"], {}, [], []),
    ),
    (
        "a pod is given to a stranger",
        "update",
        web("1"),
        of_a_stranger(kind="StatefulSet"),
        Heard(["web"], {}, [], []),
    ),
    ("a pod is adopted", "update", orphan("1"), web(), Heard(["web"], {}, [], [])),
    ("an orphan is marked", "update", orphan("1"), orphan(node="n"), NOTHING),
    (
        "an orphan is relabelled",
        "update",
        orphan("1"),
        orphan(labels={"app": "db"}),
        Heard(["db"], {}, [], []),
    ),
    (
        "a pod that is told to go is relabelled and given away",
        "update",
        web("1"),
        a_pod("pod", "db", resourceVersion="2", deleting=True),
        Heard(["db", "web"], {}, [], ["db", "web"]),
    ),
]


@pytest.mark.parametrize(
    ("event", "old", "new", "expected"), [e[1:] for e in EVENTS], ids=[e[0] for e in EVENTS]
)
async def test_what_follows_from_an_event(
    event: str, old: Document | None, new: Document, expected: Heard
) -> None:
    assert await heard(SETS, event, old, new) == expected


async def test_an_orphan_that_several_want_is_offered_to_all_and_named_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sets = [a_replica_set(name, {"app": "web"}) for name in ("web", "web-2")]
    async with workshop(*sets) as shop:
        ears = Ears(shop, a_creation)
        for _ in range(3):
            ears.hear("add", None, orphan())
            assert ears.enqueued == ["web", "web-2"]
    said = capsys.readouterr().out
    assert said.count("several_replica_sets_select_a_pod") == 1
    assert "default/pod" in said


async def test_a_pod_with_two_controllers_is_the_firsts_and_named_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = web()
    document["metadata"]["ownerReferences"].append(controlled_by("db", "db"))
    async with workshop(*SETS) as shop:
        ears = Ears(shop, a_creation)
        for _ in range(3):
            ears.hear("add", None, document)
        assert ears.enqueued == ["web"]
        assert ears.observed == ["web"]
    assert capsys.readouterr().out.count("pod_has_several_controllers") == 1
