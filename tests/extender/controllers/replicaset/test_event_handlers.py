"""The effect of an event: upstream's table, and every other branch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from extender.controllers.replicaset.event_handlers import ReplicaSetPodEventHandler
from extender.kube.controller_runtime.expectations import (
    UIDTrackingControllerExpectations as Expectations,
)
from extender.kube.controller_runtime.workqueue import WorkQueue
from extender.kube.rest.rate_limited_log import OnceLog
from tests.builders import Document
from tests.builders.replicas import a_pod, a_replica_set, controlled_by
from tests.extender.controllers.replicaset.stages import SteppedStage, stepped_stage
from tests.extender.controllers.replicaset.upstream_tables import Case, cases, owned_pod

POD = "default/pod"
NOON = "2026-01-01T12:00:00Z"


@dataclass(frozen=True)
class Effects:
    """The enqueued keys, with the delays of later ones, and the expectations that are met."""

    enqueued: list[str]
    enqueued_later: Mapping[str, float]
    creations: list[str]
    deletions: list[str]


class Handler:
    """An event handler over the caches of a stage, with a queue and expectations of its own."""

    def __init__(self, stage: SteppedStage, expect: Callable[[Expectations, str], None]) -> None:
        clock = stage.cluster.clock
        self.queue: WorkQueue[str] = WorkQueue(clock)
        self.expectations = Expectations(clock)
        self._events = ReplicaSetPodEventHandler(
            stage.caches, self.queue, self.expectations, OnceLog()
        )
        self._keys = [each.metadata.key for each in stage.caches.replica_sets.objects.values()]
        for key in self._keys:
            expect(self.expectations, key)

    def handle(self, event: str, old: Document | None, new: Document) -> None:
        if event == "update" and old is not None:
            self._events.updated(owned_pod(old), owned_pod(new))
        elif event == "add":
            self._events.added(owned_pod(new))
        else:
            self._events.removed(owned_pod(new))

    def enqueued(self) -> list[str]:
        """Take the keys from the queue, and return their names."""
        found = []
        while (key := self.queue.take()) is not None:
            self.queue.done(key)
            found.append(name_of(key))
        return sorted(found)

    @property
    def enqueued_later(self) -> dict[str, float]:
        due = {name_of(key): self.queue.due_in(key) for key in self._keys}
        return {name: seconds for name, seconds in due.items() if seconds is not None}

    @property
    def satisfied(self) -> list[str]:
        """The ReplicaSets whose expectations are satisfied."""
        return sorted(name_of(key) for key in self._keys if self.expectations.satisfied(key))


def name_of(key: str) -> str:
    return key.partition("/")[2]


def one_creation(expectations: Expectations, key: str) -> None:
    expectations.expect_creations(key, 1)


def the_deletion(expectations: Expectations, key: str) -> None:
    expectations.expect_deletions(key, [POD])


async def effects(sets: list[Document], event: str, old: Document | None, new: Document) -> Effects:
    async with stepped_stage(*sets) as stage:
        creating, deleting = Handler(stage, one_creation), Handler(stage, the_deletion)
        for handler in (creating, deleting):
            handler.handle(event, old, new)
        return Effects(
            creating.enqueued(), creating.enqueued_later, creating.satisfied, deleting.satisfied
        )


def pod_of(fields: Document) -> Document:
    document = a_pod(
        fields["name"],
        labels=fields["labels"],
        deleting=fields["deleting"],
        ready_since=NOON if fields["ready"] else "",
        resourceVersion=fields["resourceVersion"],
    )
    if controller := fields["controllerRef"]:
        document["metadata"]["ownerReferences"] = [controlled_by(**controller)]
    return document


@cases("handlers")
async def test_upstreams_table(case: Case) -> None:
    several = map(dict, case["rss"])
    sets = [a_replica_set(labels=each.pop("selector"), **each) for each in several]
    old = pod_of(case["old"]) if case["old"] else None
    found = await effects(sets, case["event"], old, pod_of(case["cur"]))
    assert found == Effects(
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
NOTHING = Effects([], {}, [], [])
WEB_ENQUEUED = Effects(["web"], {}, [], [])
DELETION_OBSERVED = Effects(["web"], {}, [], ["web"])


def web(version: str = "2", **fields: Any) -> Document:
    return a_pod("pod", "web", resourceVersion=version, **fields)


def orphan(version: str = "2", **fields: Any) -> Document:
    return a_pod("pod", resourceVersion=version, **{"labels": {"app": "web"}, **fields})


def of_another(version: str = "2", **reference: str) -> Document:
    document = orphan(version)
    document["metadata"]["ownerReferences"] = [{**controlled_by("web", "web"), **reference}]
    return document


EVENTS: list[tuple[str, str, Document | None, Document, Effects]] = [
    ("an orphan is added", "add", None, orphan(), WEB_ENQUEUED),
    ("an orphan without labels is added", "add", None, orphan(labels={}), NOTHING),
    ("an orphan of another namespace is added", "add", None, orphan(namespace="n"), NOTHING),
    ("a terminating orphan is added", "add", None, orphan(deleting=True), NOTHING),
    ("an orphan is deleted", "delete", None, orphan(), NOTHING),
    ("another kind's pod is added", "add", None, of_another(kind="StatefulSet"), NOTHING),
    ("a pod of an object of the same name is added", "add", None, of_another(uid="other"), NOTHING),
    ("a pod of an unknown object is added", "add", None, of_another(name="x"), NOTHING),
    (
        "a pod of a ReplicaSet of another version is added",
        "add",
        None,
        of_another(apiVersion="extensions/v1beta1"),
        Effects(["web"], {}, ["web"], []),
    ),
    ("another kind's pod is deleted", "delete", None, of_another(kind="StatefulSet"), NOTHING),
    ("a pod is deleted", "delete", None, web(), DELETION_OBSERVED),
    ("a pod begins to terminate", "update", web("1"), web(deleting=True), DELETION_OBSERVED),
    ("a pod changes", "update", web("1"), web(node="n"), WEB_ENQUEUED),
    (
        "a pod becomes ready",
        "update",
        web("1"),
        web(ready_since=NOON),
        Effects(["web"], {"web": 30}, [], []),
    ),
    (
        "a pod stays ready",
        "update",
        web("1", ready_since=NOON),
        web(ready_since=NOON),
        WEB_ENQUEUED,
    ),
    ("a pod becomes an orphan", "update", web("1"), orphan(), WEB_ENQUEUED),
    ("a pod becomes an orphan without labels", "update", web("1"), orphan(labels={}), WEB_ENQUEUED),
    (
        "a pod gets a controller of another kind",
        "update",
        web("1"),
        of_another(kind="StatefulSet"),
        WEB_ENQUEUED,
    ),
    ("a pod is adopted", "update", orphan("1"), web(), WEB_ENQUEUED),
    ("an orphan is bound", "update", orphan("1"), orphan(node="n"), NOTHING),
    (
        "an orphan is relabelled",
        "update",
        orphan("1"),
        orphan(labels={"app": "db"}),
        Effects(["db"], {}, [], []),
    ),
    (
        "a pod that begins to terminate gets another controller",
        "update",
        web("1"),
        a_pod("pod", "db", resourceVersion="2", deleting=True),
        Effects(["db", "web"], {}, [], ["db", "web"]),
    ),
]


@pytest.mark.parametrize(
    ("event", "old", "new", "expected"), [e[1:] for e in EVENTS], ids=[e[0] for e in EVENTS]
)
async def test_an_event_has_its_effects(
    event: str, old: Document | None, new: Document, expected: Effects
) -> None:
    assert await effects(SETS, event, old, new) == expected


async def test_several_replica_sets_of_an_orphan_are_enqueued_and_logged_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sets = [a_replica_set(name, {"app": "web"}) for name in ("web", "web-2")]
    async with stepped_stage(*sets) as stage:
        handler = Handler(stage, one_creation)
        for _ in range(3):
            handler.handle("add", None, orphan())
            assert handler.enqueued() == ["web", "web-2"]
    log = capsys.readouterr().out
    assert log.count("several_replica_sets_select_a_pod") == 1
    assert "default/pod" in log


async def test_a_pod_with_two_controllers_belongs_to_the_first_and_is_logged_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = web()
    document["metadata"]["ownerReferences"].append(controlled_by("db", "db"))
    async with stepped_stage(*SETS) as stage:
        handler = Handler(stage, one_creation)
        for _ in range(3):
            handler.handle("add", None, document)
        assert handler.enqueued() == ["web"]
        assert handler.satisfied == ["web"]
    assert capsys.readouterr().out.count("pod_has_several_controllers") == 1
