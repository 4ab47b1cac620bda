"""Events that are replayed, events that are left to attached components, and the results."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from extender.recording.format import EventType
from fakeapi import VirtualCluster
from fakeapi.controlplane.components import COMPONENTS
from fakeapi.replay.comparison import DeletedPod
from fakeapi.replay.component_effects import EFFECTS, UnsupportedComponentError, attach
from fakeapi.replay.recorded_state import CAUSES_BY_REASON, RecordedState, deletion_cause
from fakeapi.replay.report import Report
from tests.builders.replicas import a_replica_set
from tests.extender.recording.recording_lines import (
    CREATED,
    Document,
    a_recording,
    an_object,
    header,
    line,
)
from tests.fakeapi.replay.random_world import GADGET_DEFINITION
from tests.fakeapi.replay.replays import (
    DEFAULT,
    GONE_AT,
    listed,
    of_kind,
    replay,
    replayed,
    web_pod,
)


def web(replicas: int) -> Document:
    document = a_replica_set(replicas=replicas)
    document["metadata"]["creationTimestamp"] = CREATED
    return document


def has_same_pods(report: Report) -> bool:
    """Return whether the same pods exist and the same were deleted, by the same components."""
    return report.resources["pods"].same and not report.deletions.differences


def made(replicas: int) -> list[bytes]:
    """Record the creation of a ReplicaSet and of its pods, each on a node."""
    names = [f"web-{n}" for n in range(replicas)]
    return [
        *listed(DEFAULT),
        line(1, "ADDED", web(replicas)),
        *(line(1.1, "ADDED", web_pod(name)) for name in names),
        *(line(2, "MODIFIED", web_pod(name, node="node-1")) for name in names),
    ]


class TestNothingAttached:
    async def test_all_events_are_replayed_with_their_uids(self) -> None:
        report, objects = await replay(a_recording(*made(2)), "none")
        metadata = [(each["kind"], each["metadata"]) for each in objects]
        uids = {(kind, meta["name"]): meta["uid"] for kind, meta in metadata}
        assert report.same
        assert {key: uid for key, uid in uids.items() if key[0] != "PriorityClass"} == {
            ("Namespace", "default"): "default",
            ("ReplicaSet", "web"): "web",
            ("Pod", "web-0"): "web-0",
            ("Pod", "web-1"): "web-1",
        }

    async def test_unlisted_objects_are_deleted_within_listed_resources(self) -> None:
        recording = a_recording(*listed(an_object("ours")), first=header("Pod"))
        async with VirtualCluster(run="none") as cluster:
            cluster.load([an_object("theirs"), an_object("n", "Node")])
            report = await cluster.replay(recording)
            names = [each["metadata"]["name"] for each in cluster.export()]
        assert report.same
        assert "theirs" not in names
        assert {"ours", "n", "kube-system"} <= set(names)

    async def test_pods_may_exist_before_their_namespace_and_after_it(self) -> None:
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
        report = await replayed(recording, "none")
        assert report.same
        assert report.resources == {}

    async def test_events_of_unserved_resources_are_only_counted(self) -> None:
        widget = line(1, "ADDED", an_object("w", "Widget"))
        recording = a_recording(*listed(DEFAULT), widget, first=header("Namespace", "Widget"))
        report = await replayed(recording, "none")
        assert report.skipped == {"widgets.example.com": 1}
        assert report.same

    @pytest.mark.parametrize("when", [(0, "LISTED"), (0, "ADDED"), (5, "ADDED")])
    async def test_custom_objects_wait_for_definitions(self, when: tuple[float, EventType]) -> None:
        """Resources are listed one by one, sometimes before their definition."""
        recording = a_recording(
            *listed(DEFAULT, an_object("g", "Gadget")),
            line(*when, GADGET_DEFINITION),
            line(6, "MODIFIED", an_object("g", "Gadget", size=3)),
            first=header("Namespace", "CustomResourceDefinition", "Gadget"),
        )
        report, objects = await replay(recording, "none")
        assert (report.resources["gadgets.example.com"].same, report.skipped) == (True, {})
        assert [each["size"] for each in of_kind("Gadget", objects)] == [3]


class TestReplicaSetsAttached:
    async def test_created_pods_replace_the_recorded_ones(self) -> None:
        report, objects = await replay(a_recording(*made(3)), "replicaset")
        pods = of_kind("Pod", objects)
        assert (has_same_pods(report), report.left) == (True, {"replicaset": 3})
        assert [pod["spec"]["nodeName"] for pod in pods] == ["node-1"] * 3
        assert not {pod["metadata"]["name"] for pod in pods} & {"web-0", "web-1", "web-2"}

    async def test_a_pod_that_is_not_created_is_missing(self) -> None:
        lines = made(2)
        lines[1] = line(1, "ADDED", web(1))
        report = await replayed(a_recording(*lines), "replicaset")
        pods = report.resources["pods"]
        assert (pods.recorded, pods.replayed, pods.only_recorded) == (2, 1, ["default/web-1"])
        assert not report.same

    async def test_an_excess_pod_is_reported_under_its_own_name(self) -> None:
        lines = made(2)
        lines[1] = line(1, "ADDED", web(3))
        report = await replayed(a_recording(*lines), "replicaset")
        assert len(report.resources["pods"].only_replayed) == 1
        assert report.resources["pods"].only_replayed[0].startswith("default/web-")

    async def test_a_pod_deleted_by_a_client_is_deleted_and_replaced(self) -> None:
        recording = a_recording(
            *made(2),
            line(5, "DELETED", web_pod("web-0", node="node-1")),
            line(5.1, "ADDED", web_pod("web-2")),
            line(5.2, "MODIFIED", web_pod("web-2", node="node-1")),
        )
        report = await replayed(recording, "replicaset")
        assert has_same_pods(report)
        assert report.deletions.recorded == report.deletions.replayed == {"somebody": 1}

    async def test_scaled_down_pods_are_deleted_and_terminating_ones_end(self) -> None:
        recording = a_recording(
            *made(2),
            line(4, "MODIFIED", web(1)),
            line(4.1, "MODIFIED", web_pod("web-0", node="node-1", **GONE_AT)),
            line(9, "DELETED", web_pod("web-0", node="node-1", **GONE_AT)),
        )
        report, objects = await replay(recording, "replicaset")
        assert report.deletions.recorded == report.deletions.replayed == {"replicaset": 1}
        [left] = of_kind("Pod", objects)
        assert "deletionTimestamp" not in left["metadata"]

    async def test_a_slow_scale_down_deletes_the_same_pods_which_end_at_once(self) -> None:
        """Meanwhile the recorded end of a pod is not replayed."""
        ended = web_pod("web-0", node="node-1", **GONE_AT)
        ended["status"] = {"phase": "Failed"}
        recording = a_recording(
            *made(2),
            line(4, "MODIFIED", web(1)),
            line(4.1, "MODIFIED", web_pod("web-0", node="node-1", **GONE_AT)),
            line(4.2, "MODIFIED", ended),
            line(4.3, "DELETED", ended),
            line(20, "MODIFIED", DEFAULT),
        )

        async def pause() -> None:
            await cluster.clock.sleep(3)
            cluster.control_plane["replicaset"].pause()
            await cluster.clock.sleep(10)
            cluster.control_plane["replicaset"].resume()

        async with VirtualCluster(run="replicaset") as cluster:
            pausing = asyncio.create_task(pause())
            report = await cluster.replay(recording)
            await pausing
        assert has_same_pods(report)
        assert report.deletions.recorded == report.deletions.replayed == {"replicaset": 1}

    async def test_another_choice_is_a_difference(self) -> None:
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:01Z"}
        running = web_pod("web-1", node="node-1")
        running["status"] = {"phase": "Running", "conditions": [ready]}
        recording = a_recording(
            *made(2),
            line(3, "MODIFIED", running),
            line(4, "MODIFIED", web(1)),
            line(4.1, "DELETED", running),
        )
        report = await replayed(recording, "replicaset")
        assert report.deletions.differences == [
            DeletedPod("default/web-1", "replicaset", ""),
            DeletedPod("default/web-0", "", "replicaset"),
        ]
        assert report.resources["pods"].only_recorded == ["default/web-0"]
        assert report.resources["pods"].only_replayed[0].endswith("(for default/web-1)")

    async def test_the_controller_writes_the_status(self) -> None:
        wrong = web(2)
        wrong["status"] = {"replicas": 7}
        recording = a_recording(*made(2), line(3, "MODIFIED", wrong))
        report = await replayed(recording, "replicaset")
        [changed] = report.resources["replicasets.apps"].changed
        assert "status.replicas" in changed.fields

    async def test_a_late_watcher_gets_the_missed_events(self) -> None:
        lines = made(1)
        recording = a_recording(lines[0], *lines[2:], lines[1].replace(b'"t":1000000000', b'"t":9'))
        report = await replayed(recording, "replicaset")
        assert has_same_pods(report)


class TestOthersAttached:
    async def test_gc_deletes_what_the_recorded_one_deleted(self) -> None:
        recording = a_recording(
            *made(1), line(5, "DELETED", web(1)), line(5.2, "DELETED", web_pod("web-0"))
        )
        report = await replayed(recording, "gc")
        assert (report.same, report.left) == (True, {"gc": 1})
        assert report.deletions.replayed == {"gc": 1}

    async def test_unrecorded_owners_are_noted(self) -> None:
        recording = a_recording(*listed(web_pod("web-0")), first=header("Pod"))
        report = await replayed(recording, "gc")
        assert report.notes == [
            "1 objects are owned by a ReplicaSet, which was not recorded: gc deletes them"
        ]

    async def test_kubelets_delete_pods(self) -> None:
        node = an_object("node-1", "Node", status={"capacity": {"cpu": "8", "memory": "8Gi"}})
        pod = web_pod("p", node="node-1")
        del pod["metadata"]["ownerReferences"]
        leaving = orjson.loads(orjson.dumps(pod))
        leaving["metadata"].update(GONE_AT)
        recording = a_recording(
            *listed(DEFAULT, node),
            line(1, "ADDED", pod),
            line(10, "MODIFIED", leaving),
            line(14, "DELETED", leaving),
            first=header("Namespace", "Node", "Pod"),
        )
        report = await replayed(recording, "kubelet")
        assert report.left == {"kubelet": 1}
        assert report.deletions.differences == []
        assert "pods" not in report.resources


class TestCauses:
    @pytest.mark.parametrize(("reason", "cause"), CAUSES_BY_REASON.items())
    def test_the_disrupting_component_is_named(self, reason: str, cause: str) -> None:
        condition = {"type": "DisruptionTarget", "status": "True", "reason": reason}
        pod = an_object("p", status={"conditions": [condition]})
        assert deletion_cause(RecordedState(deletion_cause), "pods", pod) == cause

    @pytest.mark.parametrize(
        ("replicas", "phase", "cause"),
        [
            (1, "Running", "replicaset"),
            (2, "Running", "somebody"),
            (0, "Running", "replicaset"),
            (1, "Failed", "somebody"),
        ],
    )
    def test_replica_sets_delete_surplus_pods(self, replicas: int, phase: str, cause: str) -> None:
        state = RecordedState(deletion_cause)
        state.apply("LISTED", "replicasets.apps", web(replicas))
        pods = [web_pod("a"), web_pod("b")]
        pods[0]["status"] = {"phase": phase}
        for pod in pods:
            state.apply("ADDED", "pods", pod)
        begun = state.apply("DELETED", "pods", pods[0])
        assert begun is not None
        assert begun.cause == cause

    def test_a_terminating_namespace_deletes_its_content(self) -> None:
        state = RecordedState(deletion_cause)
        state.apply("MODIFIED", "namespaces", an_object("default", "Namespace", metadata=GONE_AT))
        assert deletion_cause(state, "pods", web_pod("a")) == "namespaces"

    def test_a_slow_deletion_is_reported_once(self) -> None:
        state = RecordedState(deletion_cause)
        state.apply("ADDED", "pods", web_pod("a"))
        going = web_pod("a", **GONE_AT)
        deletions = [
            state.apply(kind, "pods", going) for kind in ("MODIFIED", "MODIFIED", "DELETED")
        ]
        assert [each is not None for each in deletions] == [True, False, False]
        assert len(state.deletions) == 1


class TestComponents:
    def test_all_that_can_be_attached_are_components(self) -> None:
        assert set(EFFECTS) <= set(COMPONENTS)

    def test_other_components_are_rejected(self) -> None:
        with pytest.raises(UnsupportedComponentError, match="'nodelifecycle' cannot be attached"):
            attach(("gc", "nodelifecycle"))
