"""Which events are played, which are left to parts, and what a world looks like afterwards.

The worlds are real ones; what is attached is what runs in them.
"""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from extender.recording.files import Recording
from extender.recording.format import EventType
from fakeapi import VirtualCluster
from fakeapi.controlplane.components import COMPONENTS
from fakeapi.replay.comparison import DeletedPod
from fakeapi.replay.component_effects import EFFECTS, UnsupportedComponentError, attach
from fakeapi.replay.recorded_state import CAUSES_BY_REASON, RecordedState, deletion_cause
from fakeapi.replay.report import Report
from tests.builders.replicas import a_replica_set, controlled_by
from tests.extender.recording.recording_lines import (
    CREATED,
    Document,
    a_recording,
    an_object,
    header,
    line,
)
from tests.fakeapi.replay.random_world import GADGET_DEFINITION

DEFAULT = an_object("default", "Namespace")
GONE_AT: Document = {"deletionTimestamp": "2026-01-01T00:00:09Z", "deletionGracePeriodSeconds": 30}


def a_member(name: str, *, node: str = "", **metadata: Any) -> Document:
    """Write a pod of the ReplicaSet ``web`` down."""
    metadata["labels"] = {"app": "web"}
    metadata["ownerReferences"] = [controlled_by("web", "web")]
    spec: Document = {"containers": [{"name": "c", "image": "i"}]}
    if node:
        spec["nodeName"] = node
    return an_object(name, metadata=metadata, spec=spec, status={"phase": "Pending"})


def web(replicas: int) -> Document:
    document = a_replica_set(replicas=replicas)
    document["metadata"]["creationTimestamp"] = CREATED
    return document


def pods_alike(report: Report) -> bool:
    """Return whether the same pods are there and the same have gone, each in its own way."""
    return report.resources["pods"].same and not report.deletions.differences


async def played(recording: Recording, run: str = "replicaset", seed: int = 4) -> Report:
    start = recording.header.start_ns
    async with VirtualCluster(run=run, seed=seed, start_ns=start) as cluster:
        return await cluster.replay(recording)


def made(replicas: int) -> list[bytes]:
    """Record how a ReplicaSet is created and gets its pods, each on a node."""
    names = [f"web-{n}" for n in range(replicas)]
    return [
        line(0, "LISTED", DEFAULT),
        line(1, "ADDED", web(replicas)),
        *(line(1.1, "ADDED", a_member(name)) for name in names),
        *(line(2, "MODIFIED", a_member(name, node="node-1")) for name in names),
    ]


class TestNothingAttached:
    async def test_all_is_played_and_uids_are_kept(self) -> None:
        recording = a_recording(*made(2))
        async with VirtualCluster(run="none") as cluster:
            report = await cluster.replay(recording)
            there = {
                (each["kind"], each["metadata"]["name"]): each["metadata"]["uid"]
                for each in cluster.export()
                if each["kind"] != "PriorityClass"
            }
        assert report.same
        assert there == {
            ("Namespace", "default"): "default",
            ("ReplicaSet", "web"): "web",
            ("Pod", "web-0"): "web-0",
            ("Pod", "web-1"): "web-1",
        }

    async def test_unlisted_objects_are_deleted_within_listed_resources(self) -> None:
        ours = an_object("ours")
        recording = a_recording(line(0, "LISTED", ours), first=header("Pod"))
        async with VirtualCluster(run="none") as cluster:
            cluster.load([an_object("theirs"), an_object("n", "Node")])
            report = await cluster.replay(recording)
            names = [each["metadata"]["name"] for each in cluster.export()]
        assert report.same
        assert "theirs" not in names
        assert {"ours", "n", "kube-system"} <= set(names)

    async def test_pods_may_come_before_their_namespace_and_go_after_it(self) -> None:
        space = an_object("late", "Namespace")
        pod = an_object("p")
        pod["metadata"]["namespace"] = "late"
        recording = a_recording(
            line(1, "ADDED", pod),
            line(2, "ADDED", space),
            line(3, "DELETED", space),
            line(4, "MODIFIED", {**pod, "spec": {"nodeName": "n"}}),
            line(5, "DELETED", pod),
        )
        report = await played(recording, run="none")
        assert report.same
        assert report.resources == {}

    async def test_events_of_unserved_resources_are_only_counted(self) -> None:
        widget = an_object("w", "Widget")
        recording = a_recording(
            line(0, "LISTED", DEFAULT),
            line(1, "ADDED", widget),
            first=header("Namespace", "Widget"),
        )
        report = await played(recording, run="none")
        assert report.skipped == {"widgets.example.com": 1}
        assert report.same

    @pytest.mark.parametrize("when", [(0, "LISTED"), (0, "ADDED"), (5, "ADDED")])
    async def test_custom_objects_wait_for_their_definition(
        self, when: tuple[float, EventType]
    ) -> None:
        """Of a server each resource is listed by itself, its definition sometimes last."""
        recording = a_recording(
            line(0, "LISTED", DEFAULT),
            line(0, "LISTED", an_object("g", "Gadget")),
            line(*when, GADGET_DEFINITION),
            line(6, "MODIFIED", an_object("g", "Gadget", size=3)),
            first=header("Namespace", "CustomResourceDefinition", "Gadget"),
        )
        async with VirtualCluster(run="none") as cluster:
            report = await cluster.replay(recording)
            sizes = [each["size"] for each in cluster.export() if each["kind"] == "Gadget"]
        assert (report.resources["gadgets.example.com"].same, report.skipped) == (True, {})
        assert sizes == [3]


class TestReplicaSetsAttached:
    async def test_pods_are_expected_and_stand_ins_get_what_others_did(self) -> None:
        recording = a_recording(*made(3))
        async with VirtualCluster(run="replicaset") as cluster:
            report = await cluster.replay(recording)
            pods = [each for each in cluster.export() if each["kind"] == "Pod"]
        assert (pods_alike(report), report.left) == (True, {"replicaset": 3})
        assert [pod["spec"]["nodeName"] for pod in pods] == ["node-1"] * 3
        assert not {pod["metadata"]["name"] for pod in pods} & {"web-0", "web-1", "web-2"}

    async def test_a_pod_that_is_not_made_is_missing(self) -> None:
        lines = made(2)
        lines[1] = line(1, "ADDED", web(1))
        report = await played(a_recording(*lines))
        pods = report.resources["pods"]
        assert (pods.recorded, pods.replayed, pods.only_recorded) == (2, 1, ["default/web-1"])
        assert not report.same

    async def test_an_excess_pod_is_reported_under_its_own_name(self) -> None:
        lines = made(2)
        lines[1] = line(1, "ADDED", web(3))
        report = await played(a_recording(*lines))
        assert len(report.resources["pods"].only_replayed) == 1
        assert report.resources["pods"].only_replayed[0].startswith("default/web-")

    async def test_a_pod_deleted_by_a_client_is_deleted_and_replaced(self) -> None:
        recording = a_recording(
            *made(2),
            line(5, "DELETED", a_member("web-0", node="node-1")),
            line(5.1, "ADDED", a_member("web-2")),
            line(5.2, "MODIFIED", a_member("web-2", node="node-1")),
        )
        report = await played(recording)
        assert pods_alike(report)
        assert report.deletions.recorded == report.deletions.replayed == {"somebody": 1}

    async def test_scaled_down_pods_are_deleted_and_terminating_ones_end(self) -> None:
        recording = a_recording(
            *made(2),
            line(4, "MODIFIED", web(1)),
            line(4.1, "MODIFIED", a_member("web-0", node="node-1", **GONE_AT)),
            line(9, "DELETED", a_member("web-0", node="node-1", **GONE_AT)),
        )
        async with VirtualCluster(run="replicaset") as cluster:
            report = await cluster.replay(recording)
            left = [each for each in cluster.export() if each["kind"] == "Pod"]
        assert report.deletions.recorded == report.deletions.replayed == {"replicaset": 1}
        assert len(left) == 1
        assert "deletionTimestamp" not in left[0]["metadata"]

    async def test_a_slow_scale_down_deletes_the_same_pods_which_end_at_once(self) -> None:
        """Nothing is done to its pods meanwhile that belongs to their end."""
        ended = a_member("web-0", node="node-1", **GONE_AT)
        ended["status"] = {"phase": "Failed"}
        recording = a_recording(
            *made(2),
            line(4, "MODIFIED", web(1)),
            line(4.1, "MODIFIED", a_member("web-0", node="node-1", **GONE_AT)),
            line(4.2, "MODIFIED", ended),
            line(4.3, "DELETED", ended),
            line(20, "MODIFIED", DEFAULT),
        )

        async def sleep_on() -> None:
            await cluster.clock.sleep(3)
            cluster.control_plane["replicaset"].pause()
            await cluster.clock.sleep(10)
            cluster.control_plane["replicaset"].resume()

        async with VirtualCluster(run="replicaset") as cluster:
            sleeping = asyncio.create_task(sleep_on())
            report = await cluster.replay(recording)
            await sleeping
        assert pods_alike(report)
        assert report.deletions.recorded == report.deletions.replayed == {"replicaset": 1}

    async def test_another_choice_is_a_difference(self) -> None:
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:01Z"}
        running = a_member("web-1", node="node-1")
        running["status"] = {"phase": "Running", "conditions": [ready]}
        recording = a_recording(
            *made(2),
            line(3, "MODIFIED", running),
            line(4, "MODIFIED", web(1)),
            line(4.1, "DELETED", running),
        )
        report = await played(recording)
        assert report.deletions.differences == [
            DeletedPod("default/web-1", "replicaset", ""),
            DeletedPod("default/web-0", "", "replicaset"),
        ]
        assert report.resources["pods"].only_recorded == ["default/web-0"]
        assert report.resources["pods"].only_replayed[0].endswith("(for default/web-1)")

    async def test_the_status_is_its_own(self) -> None:
        wrong = web(2)
        wrong["status"] = {"replicas": 7}
        recording = a_recording(*made(2), line(3, "MODIFIED", wrong))
        report = await played(recording)
        [changed] = report.resources["replicasets.apps"].changed
        assert "status.replicas" in changed.fields

    async def test_a_late_watcher_gets_the_missed_events(self) -> None:
        lines = made(1)
        recording = a_recording(lines[0], *lines[2:], lines[1].replace(b'"t":1000000000', b'"t":9'))
        report = await played(recording)
        assert pods_alike(report)


class TestOthersAttached:
    async def test_gc_deletes_by_itself_what_it_was_seen_to_delete(self) -> None:
        recording = a_recording(
            *made(1), line(5, "DELETED", web(1)), line(5.2, "DELETED", a_member("web-0"))
        )
        report = await played(recording, run="gc")
        assert (report.same, report.left) == (True, {"gc": 1})
        assert report.deletions.replayed == {"gc": 1}

    async def test_gc_is_warned_of_where_owners_were_not_recorded(self) -> None:
        pod = a_member("web-0")
        recording = a_recording(line(0, "LISTED", pod), first=header("Pod"))
        report = await played(recording, run="gc")
        assert report.notes == [
            "1 objects are owned by a ReplicaSet, which was not recorded: gc deletes them"
        ]

    async def test_kubelets_end_pods_themselves(self) -> None:
        node = an_object("node-1", "Node", status={"capacity": {"cpu": "8", "memory": "8Gi"}})
        pod = a_member("p", node="node-1")
        del pod["metadata"]["ownerReferences"]
        leaving = orjson.loads(orjson.dumps(pod))
        leaving["metadata"].update(GONE_AT)
        recording = a_recording(
            line(0, "LISTED", DEFAULT),
            line(0, "LISTED", node),
            line(1, "ADDED", pod),
            line(10, "MODIFIED", leaving),
            line(14, "DELETED", leaving),
            first=header("Namespace", "Node", "Pod"),
        )
        report = await played(recording, run="kubelet")
        assert report.left == {"kubelet": 1}
        assert report.deletions.differences == []
        assert "pods" not in report.resources


class TestHands:
    @pytest.mark.parametrize(("reason", "hand"), CAUSES_BY_REASON.items())
    def test_the_disrupting_component_is_named(self, reason: str, hand: str) -> None:
        condition = {"type": "DisruptionTarget", "status": "True", "reason": reason}
        pod = an_object("p", status={"conditions": [condition]})
        assert deletion_cause(RecordedState(deletion_cause), "pods", pod) == hand

    @pytest.mark.parametrize(
        ("replicas", "phase", "hand"),
        [
            (1, "Running", "replicaset"),
            (2, "Running", "somebody"),
            (0, "Running", "replicaset"),
            (1, "Failed", "somebody"),
        ],
    )
    def test_a_controller_with_more_than_it_wants(
        self, replicas: int, phase: str, hand: str
    ) -> None:
        ledger = RecordedState(deletion_cause)
        ledger.apply("LISTED", "replicasets.apps", web(replicas))
        pods = [a_member("a"), a_member("b")]
        pods[0]["status"] = {"phase": phase}
        for pod in pods:
            ledger.apply("ADDED", "pods", pod)
        begun = ledger.apply("DELETED", "pods", pods[0])
        assert begun is not None
        assert begun.cause == hand

    def test_a_namespace_on_its_way_out_takes_what_it_holds(self) -> None:
        ledger = RecordedState(deletion_cause)
        ledger.apply("MODIFIED", "namespaces", an_object("default", "Namespace", metadata=GONE_AT))
        assert deletion_cause(ledger, "pods", a_member("a")) == "namespaces"

    def test_a_slow_deletion_is_reported_once(self) -> None:
        ledger = RecordedState(deletion_cause)
        ledger.apply("ADDED", "pods", a_member("a"))
        going = a_member("a", **GONE_AT)
        told = [ledger.apply(kind, "pods", going) for kind in ("MODIFIED", "MODIFIED", "DELETED")]
        assert [each is not None for each in told] == [True, False, False]
        assert len(ledger.deletions) == 1


class TestParts:
    def test_all_that_can_be_attached_are_parts(self) -> None:
        assert set(EFFECTS) <= set(COMPONENTS)

    def test_others_are_refused(self) -> None:
        with pytest.raises(UnsupportedComponentError, match="'nodelifecycle' cannot be attached"):
            attach(("gc", "nodelifecycle"))
