"""ReplicaSets and pods decoded for scaling down: missing, odd and invalid fields."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.decoders.replicasets import decode_member, decode_replica_set
from extender.kube.decoders.typed_decoder import ObjectError
from policies.kubernetes.selectors import LabelSelector, equals_all, label_requirement
from policies.replicaset import RankedPod, ReplicaSet, ReplicaSetPod
from tests.builders import Document, encoded
from tests.builders.replicas import NOW, NOW_NS, condition, member_json, reference, replica_set_json

COST = "controller.kubernetes.io/pod-deletion-cost"
SECOND = 10**9
SIDECAR = {"name": "proxy", "restartPolicy": "Always"}
ZERO = "0001-01-01T00:00:00Z"


def decoded(**fields: Any) -> ReplicaSetPod:
    return decode_member(encoded(member_json("web-1", **fields)))


def restarting(**counts: int) -> list[Document]:
    return [{"name": name, "restartCount": count} for name, count in counts.items()]


def test_a_complete_pod_is_decoded() -> None:
    status = {
        "containerStatuses": restarting(main=1, more=3),
        "initContainerStatuses": restarting(proxy=2, setup=9),
    }
    pod = decoded(
        uid="u",
        metadata={"annotations": {COST: "-7"}},
        spec={"initContainers": [SIDECAR, {"name": "setup"}]},
        status=status,
    )
    replica = RankedPod(
        namespace="default",
        name="web-1",
        uid="u",
        node="node-1",
        phase="Running",
        ready=True,
        ready_since_ns=NOW_NS - 3600 * SECOND,
        deletion_cost=-7,
        restarts=3,
        sidecar_restarts=2,
        created_ns=NOW_NS - 7200 * SECOND,
    )
    assert pod == ReplicaSetPod(replica, labels={"app": "web"}, owner="rs-web", active=True)


def test_a_minimal_pod_is_decoded() -> None:
    for bare in ({"metadata": {"name": "a"}}, {"metadata": {"name": "a"}, "status": None}):
        assert decode_member(encoded(bare)) == ReplicaSetPod(
            RankedPod("default", "a", "default/a", "", "", False, None, 0, 0, 0, None),  # noqa: FBT003
            labels={},
            owner=None,
            active=True,
        )


def test_nulls_are_the_same_as_absent_fields() -> None:
    status = dict.fromkeys(("phase", "conditions", "containerStatuses", "initContainerStatuses"))
    meta = dict.fromkeys(("creationTimestamp", "annotations", "ownerReferences", "labels"))
    pod = {
        "metadata": {"name": "a", **meta},
        "spec": {"nodeName": None, "initContainers": None},
        "status": status,
    }
    assert decode_member(encoded(pod)) == decode_member(encoded({"metadata": {"name": "a"}}))
    counts = {"containerStatuses": [{"name": "main", "restartCount": None}]}
    assert decoded(status=counts).replica.restarts == 0


@pytest.mark.parametrize(
    ("conditions", "ready", "since"),
    [
        ([], False, None),
        ([condition("True", NOW)], True, NOW_NS),
        ([condition("False", NOW)], False, NOW_NS),
        ([condition("Unknown", None)], False, None),
        ([condition("True", None)], True, None),
        ([{**condition("True", None), "lastTransitionTime": ZERO}], True, None),
        ([condition("True", NOW, "ContainersReady")], False, None),
        ([condition("True", 5, "Initialized"), condition("True", NOW)], True, NOW_NS),
        ([condition("False", 5), condition("True", NOW)], False, 5 * SECOND),
    ],
)
def test_the_first_ready_condition_counts(
    conditions: list[Document], *, ready: bool, since: int | None
) -> None:
    replica = decoded(status={"conditions": conditions}).replica
    assert (replica.ready, replica.ready_since_ns) == (ready, since)


@pytest.mark.parametrize(
    ("fields", "active"),
    [
        ({}, True),
        ({"phase": "Pending"}, True),
        ({"phase": "Unknown"}, True),
        ({"phase": "Succeeded"}, False),
        ({"phase": "Failed"}, False),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, False),
    ],
)
def test_active_pods_are_neither_finished_nor_being_deleted(
    fields: dict[str, Any], *, active: bool
) -> None:
    assert decoded(**fields).active == active


@pytest.mark.parametrize(
    ("references", "owner"),
    [
        ([], None),
        ([reference("ReplicaSet", "web", "u", controller=False)], None),
        ([reference("ReplicaSet", "web", "u", controller=None)], None),
        ([reference("X", "x", "1", controller=False), reference("Job", "j", "2")], "2"),
        ([reference("ReplicaSet", "web", "1"), reference("ReplicaSet", "web", "2")], "1"),
        ([reference("ReplicaSet", "web", "")], "ReplicaSet/default/web"),
    ],
)
def test_the_owner_is_the_first_controller(references: list[Document], owner: str | None) -> None:
    assert decoded(metadata={"ownerReferences": references}).owner == owner


def test_the_zero_time_is_none() -> None:
    assert decoded(metadata={"creationTimestamp": ZERO}).replica.created_ns is None


def test_a_replica_set_is_decoded() -> None:
    expressions = [{"key": "tier", "operator": "Exists"}]
    written = replica_set_json("web", owner="d")
    written["spec"]["selector"]["matchExpressions"] = expressions
    selector = LabelSelector((*equals_all({"app": "web"}), label_requirement("tier", "Exists", ())))
    assert decode_replica_set(encoded(written)) == ReplicaSet(
        "default", "web", "rs-web", "d", selector
    )


def test_handwritten_owners_without_uids_are_distinguished_by_name() -> None:
    written = replica_set_json("web", uid="")
    pod = member_json("a", metadata={"ownerReferences": [reference("ReplicaSet", "web", "")]})
    assert decode_replica_set(encoded(written)).uid == decode_member(encoded(pod)).owner


def test_a_replica_set_without_a_spec_selects_nothing() -> None:
    bare = decode_replica_set(encoded({"metadata": {"name": "web"}}))
    assert bare.selector is None
    assert not bare.selects(decoded())


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        ({"metadata": {"name": "a", "labels": 5}}, "Pod a: metadata.labels: expected object"),
        (
            {"metadata": {"name": "a"}, "status": {"containerStatuses": [{"restartCount": "x"}]}},
            "Pod a: status.containerStatuses[0].restartCount: expected int",
        ),
        (
            {"metadata": {"name": "a", "creationTimestamp": "yesterday"}},
            "Pod a: metadata.creationTimestamp: invalid RFC3339",
        ),
    ],
)
def test_an_invalid_pod_is_reported_with_the_field(broken: Document, problem: str) -> None:
    with pytest.raises(ObjectError) as raised:
        decode_member(encoded(broken))
    assert str(raised.value).startswith(problem)


def test_an_invalid_selector_is_reported() -> None:
    written = replica_set_json()
    written["spec"]["selector"] = {"matchExpressions": [{"key": "a", "operator": "Like"}]}
    with pytest.raises(ObjectError) as raised:
        decode_replica_set(encoded(written))
    assert str(raised.value) == (
        "ReplicaSet default/web: spec.selector: 'Like' is not a valid label selector operator"
    )
