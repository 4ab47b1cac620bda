"""WorkloadSpreads attached to replays of the shipped recording, and of short ones."""

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
from fakeapi.replay.object_fields import SPREADS, comparable, subset_of, with_changes
from fakeapi.replay.recorded_state import RecordedState, deletion_cause
from policies.replicaset import DELETION_COST
from tests.builders.replicas import a_replica_set
from tests.extender.recording.recording_lines import Document, a_recording, header, line
from tests.fakeapi.admission_webhooks import configuration, webhook
from tests.fakeapi.replay.replays import (
    DEFAULT,
    GONE_AT,
    listed,
    of_kind,
    replay,
    replayed,
    web_pod,
)
from tests.recorded.spread import SIMULATION_SCRIPT, WEB, make

FILE = Path(__file__).parents[2] / "recorded" / "spread.jsonl.gz"
SPREAD = read_recording(str(FILE))
CAUSES = {"replicaset": 5, "somebody": 1, "workloadspread": 2, "gc": 3}


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
async def test_attached_components_act_as_recorded(run: str, left: dict[str, int]) -> None:
    script: Document = {"kubelet": SIMULATION_SCRIPT} if "kubelet" in run else {}
    report = await replayed(SPREAD, run, seed=0, **script)
    assert report.same
    assert report.left == left
    assert report.deletions.recorded == report.deletions.replayed == CAUSES


async def test_names_of_pods_do_not_count() -> None:
    assert (await replayed(SPREAD, "replicaset,workloadspread", seed=1)).same


async def test_the_recording_can_be_made_again(tmp_path: Path) -> None:
    path = tmp_path / "spread.jsonl"
    await make(path)
    assert read_recording(str(path)).events == tuple(
        replace(event, line=at) for at, event in enumerate(SPREAD.events, 2)
    )


def changed_recording(change: Callable[[str, Document], Any]) -> Recording:
    """Return the shipped recording with a change of every object."""
    events = []
    for event in SPREAD.events:
        document = event.document()
        if event.is_object_event:
            change(event.resource, document)
        encoded = encode_event(event.at_ns, event.type, event.resource, document)
        events.append(decode_event(encoded, event.line))
    return replace(SPREAD, events=tuple(events))


def last_pod() -> str:
    """Return the name of a pod that exists in the end."""
    gone = {event.key for event in SPREAD.events if event.type == "DELETED"}
    there = (e for e in SPREAD.events if e.resource == "pods" and e.key not in gone)
    return next(there).metadata.name


class TestInjectedDifferences:
    """The report names exactly the changed fields of the recording."""

    @pytest.mark.parametrize("run", ["workloadspread", "replicaset,workloadspread"])
    @pytest.mark.parametrize(
        ("annotation", "value"),
        [
            (MATCHED_WORKLOADSPREAD, '{"name":"web","subset":"elastic"}'),
            (DELETION_COST, "7"),
        ],
        ids=["subset", "deletion cost"],
    )
    async def test_an_annotation(self, run: str, annotation: str, value: str) -> None:
        name = last_pod()

        def change(_: str, document: Document) -> None:
            annotations = document["metadata"].get("annotations", {})
            if document["metadata"]["name"] == name and annotation in annotations:
                annotations[annotation] = value

        report = await replayed(changed_recording(change), run)
        [changed] = report.resources["pods"].changed
        assert changed.name == f"default/{name}"
        assert changed.fields == [f"metadata.annotations.{annotation}"]
        assert [n for n, each in report.resources.items() if not each.same] == ["pods"]

    async def test_a_status(self) -> None:
        def change(resource: str, document: Document) -> None:
            if resource == SPREADS and document.get("status"):
                document["status"]["subsetStatuses"][0]["missingReplicas"] = 7

        report = await replayed(changed_recording(change), "workloadspread")
        found = {each.name: each.fields for each in report.resources[SPREADS].changed}
        field = "status.subsetStatuses.0.missingReplicas"
        assert found == {"default/web": [field], "default/batch": [field]}

    async def test_a_limit(self) -> None:
        """With a larger first subset, all pods are put there."""

        def change(resource: str, document: Document) -> None:
            if resource == SPREADS and document["metadata"]["name"] == "web":
                document["spec"]["subsets"][0]["maxReplicas"] = 9

        report = await replayed(changed_recording(change), "replicaset,workloadspread")
        assert not report.same
        assert not report.resources[SPREADS].same


def pod_in_subset(name: str, subset: str = "", **metadata: Any) -> Document:
    """Build a pod of the ReplicaSet ``web`` that was put into a subset."""
    if subset:
        metadata["annotations"] = {MATCHED_WORKLOADSPREAD: f'{{"name":"web","subset":"{subset}"}}'}
    return web_pod(name, **metadata)


def spread_and_replica_set(replicas: int) -> list[bytes]:
    document = orjson.loads(orjson.dumps(WEB))
    document["metadata"] |= {"uid": "spread", "generation": 1}
    document["spec"]["subsets"][0]["maxReplicas"] = 1
    spread = encode_event(0, "LISTED", SPREADS, document)
    return [*listed(DEFAULT), spread, *listed(a_replica_set(replicas=replicas))]


KINDS = header("Namespace", "Pod", "ReplicaSet")


async def subsets_after(recording: Recording, run: str) -> dict[str, str]:
    _, objects = await replay(recording, run)
    return {each["metadata"]["name"]: subset_of(each) for each in of_kind("Pod", objects)}


async def test_replayed_pods_are_put_into_subsets_again() -> None:
    """They are recorded with the decisions of another cluster's webhooks."""
    pods = line(1, "ADDED", pod_in_subset("a", "elastic")), line(2, "ADDED", pod_in_subset("b"))
    lines = [*spread_and_replica_set(2), *pods]
    found = await subsets_after(a_recording(*lines, first=KINDS), "workloadspread")
    assert found == {"a": "web/reserved", "b": "web/elastic"}


async def test_a_terminating_pod_leaves_its_subset_before_another_comes() -> None:
    gone = pod_in_subset("a", **GONE_AT)
    lines = [
        *spread_and_replica_set(1),
        line(1, "ADDED", pod_in_subset("a", "reserved")),
        line(5, "MODIFIED", gone),
        line(5, "ADDED", pod_in_subset("b", "reserved")),
        line(5, "DELETED", gone),
    ]
    found = await subsets_after(a_recording(*lines, first=KINDS), "workloadspread")
    assert found == {"b": "web/reserved"}


async def test_recorded_webhooks_are_not_called() -> None:
    address = {"url": "https://127.0.0.1:9/deny"}
    hook = webhook("deny.example.com", "pods", clientConfig=address)
    resource = "validatingwebhookconfigurations.admissionregistration.k8s.io"
    theirs = configuration("validating", hook)
    theirs["metadata"]["uid"] = "theirs"
    recording = a_recording(
        *listed(DEFAULT),
        encode_event(0, "LISTED", resource, theirs),
        line(1, "ADDED", a_replica_set()),
        line(1.1, "ADDED", pod_in_subset("web-0")),
    )
    report = await replayed(recording, "replicaset")
    assert (report.resources["pods"].replayed, resource in report.resources) == (1, False)


async def test_pods_without_subsets_are_reported() -> None:
    lines = [line(1, "ADDED", a_replica_set()), line(1.1, "ADDED", pod_in_subset("a", "elastic"))]
    report = await replayed(a_recording(*listed(DEFAULT), *lines), "replicaset")
    assert report.notes == [
        (
            "1 pods were put into subsets of WorkloadSpreads; pods that replicaset creates have "
            "no subset, because workloadspread is not attached"
        )
    ]


def unschedulable(subset: str = "reserved", **metadata: Any) -> Document:
    pod = pod_in_subset("a", subset, **metadata)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    pod["status"]["conditions"] = [condition]
    pod["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    return pod


@pytest.mark.parametrize(
    ("subset", "deleted", "seconds", "cause"),
    [
        ("reserved", "2026-01-01T00:00:30Z", 30, "workloadspread"),
        ("reserved", "2026-01-01T00:00:29Z", 30, "somebody"),
        ("reserved", None, 30, "workloadspread"),
        ("reserved", "2026-01-01T00:00:30Z", None, "somebody"),
        # No pod of the last subset is rescheduled.
        ("elastic", "2026-01-01T00:00:30Z", 30, "somebody"),
    ],
)
def test_deletion_causes(subset: str, deleted: str | None, seconds: int | None, cause: str) -> None:
    state = RecordedState(deletion_cause)
    strategy: Document = {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": seconds}}
    spread = {**WEB, "spec": {**WEB["spec"], "scheduleStrategy": strategy}}
    state.apply("ADDED", SPREADS, spread)
    state.apply("ADDED", "pods", unschedulable(subset))
    assert deletion_cause(state, "pods", unschedulable(subset, deletionTimestamp=deleted)) == cause


def test_ids_of_a_cluster_are_not_compared() -> None:
    one = pod_in_subset("a", metadata={})
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
    ("current", "before", "after", "result"),
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
def test_changes_apply_to_the_current_object(
    current: Document, before: Document, after: Document, result: Document
) -> None:
    assert with_changes(current, before, after) == result
