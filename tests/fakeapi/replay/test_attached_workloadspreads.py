"""WorkloadSpreads attached to replays: the shipped recording, and scenes of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from extender.kube.workloadspread.spread_pods import MATCHED_WORKLOADSPREAD
from extender.recording.files import Recording, read_recording
from extender.recording.format import decode_event, encode_event
from fakeapi import VirtualCluster
from fakeapi.replay.object_fields import SPREADS, comparable, subset_of, with_changes
from fakeapi.replay.recorded_state import RecordedState, deletion_cause
from fakeapi.replay.report import Report
from policies.replicaset import DELETION_COST
from tests.builders.replicas import a_replica_set, controlled_by
from tests.extender.recording.recording_lines import Document, a_recording, an_object, header, line
from tests.recorded.spread import BOOK, WEB, make

FILE = Path(__file__).parents[2] / "recorded" / "spread.jsonl.gz"
SPREAD = read_recording(str(FILE))
HANDS = {"replicaset": 5, "somebody": 1, "workloadspread": 2, "gc": 3}
DEFAULT = an_object("default", "Namespace")


async def played(recording: Recording, run: str, seed: int = 0) -> Report:
    book: Document = {"kubelet": BOOK} if "kubelet" in run else {}
    start = recording.header.start_ns
    async with VirtualCluster(run=run, seed=seed, start_ns=start, **book) as cluster:
        return await cluster.replay(recording)


@pytest.mark.parametrize(
    ("run", "left"),
    [
        ("none", {}),
        ("gc", {"gc": 3}),
        ("namespaces", {}),
        ("replicaset", {"replicaset": 19}),
        ("workloadspread", {"workloadspread": 2}),
        ("scheduler", {}),
        ("kubelet", {"kubelet": 9}),
        ("replicaset,workloadspread", {"replicaset": 19, "workloadspread": 2}),
        (
            "gc,namespaces,replicaset,workloadspread,scheduler,kubelet",
            {"gc": 3, "replicaset": 19, "workloadspread": 2, "kubelet": 9},
        ),
    ],
)
async def test_alone_and_together_all_do_what_they_did(run: str, left: dict[str, int]) -> None:
    report = await played(SPREAD, run)
    assert report.same
    assert report.left == left
    assert report.deletions.recorded == report.deletions.replayed == HANDS


async def test_whatever_pods_are_called() -> None:
    assert (await played(SPREAD, "replicaset,workloadspread", seed=1)).same


async def test_it_can_be_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "spread.jsonl"
    await make(path)
    assert read_recording(str(path)).events == tuple(
        replace(event, line=at) for at, event in enumerate(SPREAD.events, 2)
    )


def otherwise(change: Callable[[str, Document], Any]) -> Recording:
    """Return the shipped recording with every object changed a bit."""
    events = []
    for event in SPREAD.events:
        document = event.document()
        if event.is_object_event:
            change(event.resource, document)
        encoded = encode_event(event.at_ns, event.type, event.resource, document)
        events.append(decode_event(encoded, event.line))
    return replace(SPREAD, events=tuple(events))


def last_pod() -> str:
    """Name a pod that is there in the end."""
    gone = {event.key for event in SPREAD.events if event.type == "DELETED"}
    there = (e for e in SPREAD.events if e.resource == "pods" and e.key not in gone)
    return next(there).metadata.name


class TestInjectedDifferences:
    """The recording differs from what is done: exactly that is reported."""

    @pytest.mark.parametrize("run", ["workloadspread", "replicaset,workloadspread"])
    async def test_a_subset(self, run: str) -> None:
        name = last_pod()

        def change(_: str, document: Document) -> None:
            marks = document["metadata"].get("annotations", {})
            if document["metadata"]["name"] == name and MATCHED_WORKLOADSPREAD in marks:
                marks[MATCHED_WORKLOADSPREAD] = '{"name":"web","subset":"elastic"}'

        report = await played(otherwise(change), run)
        [changed] = report.resources["pods"].changed
        assert (changed.name, changed.fields) == (
            f"default/{name}",
            [f"metadata.annotations.{MATCHED_WORKLOADSPREAD}"],
        )
        assert [n for n, each in report.resources.items() if not each.same] == ["pods"]

    @pytest.mark.parametrize("run", ["workloadspread", "replicaset,workloadspread"])
    async def test_a_deletion_cost(self, run: str) -> None:
        name = last_pod()

        def change(_: str, document: Document) -> None:
            marks = document["metadata"].get("annotations", {})
            if document["metadata"]["name"] == name and DELETION_COST in marks:
                marks[DELETION_COST] = "7"

        report = await played(otherwise(change), run)
        [changed] = report.resources["pods"].changed
        assert changed.fields == [f"metadata.annotations.{DELETION_COST}"]

    async def test_a_status(self) -> None:
        def change(resource: str, document: Document) -> None:
            if resource == SPREADS and document.get("status"):
                document["status"]["subsetStatuses"][0]["missingReplicas"] = 7

        report = await played(otherwise(change), "workloadspread")
        told = {each.name: each.fields for each in report.resources[SPREADS].changed}
        field = "status.subsetStatuses.0.missingReplicas"
        assert told == {"default/web": [field], "default/batch": [field]}

    async def test_a_limit(self) -> None:
        """Where the first subset has room for all, all are put there."""

        def change(resource: str, document: Document) -> None:
            if resource == SPREADS and document["metadata"]["name"] == "web":
                document["spec"]["subsets"][0]["maxReplicas"] = 9

        report = await played(otherwise(change), "replicaset,workloadspread")
        assert not report.same
        assert not report.resources[SPREADS].same


def a_member(name: str, subset: str = "", **metadata: Any) -> Document:
    """Write a pod of the ReplicaSet ``web`` down, which was put into a subset."""
    metadata["labels"] = {"app": "web"}
    metadata["ownerReferences"] = [controlled_by("web", "web")]
    if subset:
        metadata["annotations"] = {MATCHED_WORKLOADSPREAD: f'{{"name":"web","subset":"{subset}"}}'}
    spec: Document = {"containers": [{"name": "main", "image": "i"}]}
    return an_object(name, metadata=metadata, spec=spec, status={"phase": "Pending"})


def spread_line(at: float) -> bytes:
    document = orjson.loads(orjson.dumps(WEB))
    document["metadata"] |= {"uid": "spread", "generation": 1}
    document["spec"]["subsets"][0]["maxReplicas"] = 1
    return encode_event(round(at * 10**9), "LISTED", SPREADS, document)


KINDS = header("Namespace", "Pod", "ReplicaSet")


def there(replicas: int) -> list[bytes]:
    return [
        line(0, "LISTED", DEFAULT),
        spread_line(0),
        line(0, "LISTED", a_replica_set(replicas=replicas)),
    ]


async def subsets_after(recording: Recording, run: str) -> dict[str, str]:
    async with VirtualCluster(run=run, start_ns=recording.header.start_ns) as cluster:
        await cluster.replay(recording)
        pods = [each for each in cluster.export() if each["kind"] == "Pod"]
    marks = {each["metadata"]["name"]: each["metadata"].get("annotations", {}) for each in pods}
    return {name: subset_of({"metadata": {"annotations": m}}) for name, m in marks.items()}


async def test_pods_that_are_played_are_put_into_subsets_anew() -> None:
    """Here they come with what another cluster's webhooks decided."""
    lines = [*there(2), line(1, "ADDED", a_member("a", "elastic")), line(2, "ADDED", a_member("b"))]
    found = await subsets_after(a_recording(*lines, first=KINDS), "workloadspread")
    assert found == {"a": "web/reserved", "b": "web/elastic"}


async def test_a_terminating_pod_leaves_its_subset_before_another_comes() -> None:
    gone = a_member("a", deletionTimestamp="2026-01-01T00:00:09Z", deletionGracePeriodSeconds=30)
    lines = [
        *there(1),
        line(1, "ADDED", a_member("a", "reserved")),
        line(5, "MODIFIED", gone),
        line(5, "ADDED", a_member("b", "reserved")),
        line(5, "DELETED", gone),
    ]
    found = await subsets_after(a_recording(*lines, first=KINDS), "workloadspread")
    assert found == {"b": "web/reserved"}


async def test_webhooks_that_were_recorded_are_not_asked() -> None:
    hook = {
        "name": "deny.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": "https://127.0.0.1:9/deny"},
        "rules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}
        ],
    }
    resource = "validatingwebhookconfigurations.admissionregistration.k8s.io"
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "theirs", "uid": "theirs"},
        "webhooks": [hook],
    }
    recording = a_recording(
        line(0, "LISTED", DEFAULT),
        encode_event(0, "LISTED", resource, configuration),
        line(1, "ADDED", a_replica_set()),
        line(1.1, "ADDED", a_member("web-0")),
    )
    report = await played(recording, "replicaset")
    assert (report.resources["pods"].replayed, resource in report.resources) == (1, False)


async def test_pods_without_subsets_are_reported() -> None:
    lines = [line(1, "ADDED", a_replica_set()), line(1.1, "ADDED", a_member("a", "elastic"))]
    report = await played(a_recording(line(0, "LISTED", DEFAULT), *lines), "replicaset")
    assert report.notes == [
        (
            "1 pods were put into subsets of WorkloadSpreads; pods that replicaset creates have "
            "no subset, because workloadspread is not attached"
        )
    ]


def given_up(subset: str = "reserved", **metadata: Any) -> Document:
    pod = a_member("a", subset, **metadata)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    pod["status"]["conditions"] = [condition]
    pod["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    return pod


@pytest.mark.parametrize(
    ("subset", "told", "seconds", "hand"),
    [
        ("reserved", "2026-01-01T00:00:30Z", 30, "workloadspread"),
        ("reserved", "2026-01-01T00:00:29Z", 30, "somebody"),
        ("reserved", None, 30, "workloadspread"),
        ("reserved", "2026-01-01T00:00:30Z", None, "somebody"),
        (
            "elastic",
            "2026-01-01T00:00:30Z",
            30,
            "somebody",
        ),  # no pod of the last one is rescheduled
    ],
)
def test_which_component_deletes_a_pod(
    subset: str, told: str | None, seconds: int | None, hand: str
) -> None:
    ledger = RecordedState(deletion_cause)
    strategy: Document = {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": seconds}}
    spread = {**WEB, "spec": {**WEB["spec"], "scheduleStrategy": strategy}}
    ledger.apply("ADDED", SPREADS, spread)
    ledger.apply("ADDED", "pods", given_up(subset))
    assert deletion_cause(ledger, "pods", given_up(subset, deletionTimestamp=told)) == hand


def test_ids_of_one_world_are_not_compared() -> None:
    one = a_member("a", metadata={})
    one["metadata"]["annotations"] = {MATCHED_WORKLOADSPREAD: '{"name":"w","subset":"s","uid":"1"}'}
    other = {**one, "metadata": {**one["metadata"], "annotations": {}}}
    other["metadata"]["annotations"] = {MATCHED_WORKLOADSPREAD: '{"subset":"s","name":"w"}'}
    assert comparable(one) == comparable(other)
    statuses = [
        {"subsetStatuses": [{"name": "s", "creatingPods": {key: "2026-01-01T00:00:00Z"}}]}
        for key in "ab"
    ]
    first, second = ({"kind": "WorkloadSpread", "metadata": {}, "status": s} for s in statuses)
    assert comparable(first) == comparable(second)


@pytest.mark.parametrize(
    ("there", "before", "after", "result"),
    [
        ({"a": 1, "own": 2}, {}, {"b": 3}, {"a": 1, "own": 2, "b": 3}),
        ({"a": 1, "own": 2}, {"a": 1}, {}, {"own": 2}),
        ({"a": {"x": 1, "own": 2}}, {"a": {"x": 1}}, {"a": {"x": 3}}, {"a": {"x": 3, "own": 2}}),
        ({"a": [1]}, {"a": [2]}, {"a": [2]}, {"a": [1]}),
        ({"a": [1]}, {"a": [2]}, {"a": [2, 3]}, {"a": [2, 3]}),
        ({}, {"a": {"x": 1}}, {"a": {"x": 1}}, {}),
        ({}, {"a": 1}, {}, {}),
    ],
)
def test_changes_are_done_to_what_is_there(
    there: Document, before: Document, after: Document, result: Document
) -> None:
    assert with_changes(there, before, after) == result
