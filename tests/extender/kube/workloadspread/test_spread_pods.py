"""Pods decoded for spreading, and their annotation."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.decoders.typed_decoder import ObjectError
from extender.kube.workloadspread.spread_pods import (
    MATCHED_WORKLOADSPREAD,
    decode_spread_pod,
    read_injection,
    write_injection,
)
from policies.kubernetes.selectors import Toleration
from policies.workloadspread.model import Expression, NodeTerm, SpreadPod, SubsetInjection
from policies.workloadspread.object_references import WorkloadReference
from tests.builders import encoded, owner
from tests.builders.workloadspread import CLONE_SET, UNSCHEDULABLE, at, pod_of


def decoded(document: Any) -> SpreadPod:
    return decode_spread_pod(encoded(document))


def test_a_complete_pod_is_decoded() -> None:
    document = pod_of(
        "web-1",
        "a",
        metadata={
            "uid": "u",
            "labels": {"app": "web"},
            "creationTimestamp": "2026-01-01T11:59:00Z",
            "annotations": {
                MATCHED_WORKLOADSPREAD: '{"name": "web", "subset": "a", "uid": "i"}',
                "controller.kubernetes.io/pod-deletion-cost": "100",
            },
        },
        spec={
            "nodeName": "node-1",
            "tolerations": [{"operator": "Exists"}],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchFields": [{"key": "f", "operator": "In", "values": ["x"]}]}
                        ]
                    }
                }
            },
            "initContainers": [{"name": "proxy", "restartPolicy": "Always"}],
        },
        status={
            "phase": "Pending",
            "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T11:59:30Z"},
                UNSCHEDULABLE,
            ],
            "containerStatuses": [{"name": "main", "restartCount": 2}],
            "initContainerStatuses": [{"name": "proxy", "restartCount": 4}],
        },
    )
    assert decoded(document) == SpreadPod(
        "default",
        "web-1",
        uid="u",
        labels={"app": "web"},
        controller=CLONE_SET,
        owners=frozenset(["web-uid"]),
        phase="Pending",
        node="node-1",
        created_ns=at(-60),
        ready=True,
        ready_since=at(-30),
        restarts=2,
        sidecar_restarts=4,
        unschedulable=True,
        tolerations=(Toleration("", "Exists"),),
        node_terms=(NodeTerm((), (Expression("f", "In", ("x",)),)),),
        injection=SubsetInjection("web", "a", "i"),
        deletion_cost="100",
    )


def test_a_minimal_pod_is_decoded() -> None:
    for bare in ({"metadata": {"name": "x"}}, {"metadata": {"name": "x"}, "spec": None}):
        assert decoded(bare) == SpreadPod("default", "x", uid="Pod/x")


def test_a_new_pod_may_have_no_name() -> None:
    assert decoded({"metadata": {"generateName": "web-"}}).name == ""


def test_the_controller_is_the_owner_with_that_flag() -> None:
    owners = [owner("c"), owner("g", "Game", controller=True)]
    pod = decoded({"metadata": {"name": "x", "ownerReferences": owners}})
    assert pod.controller == WorkloadReference("v1", "Game", "g", "g")
    assert pod.owners == {"c", "g"}


@pytest.mark.parametrize(
    ("reason", "unschedulable"), [("Unschedulable", True), ("SchedulingGated", False), ("", False)]
)
def test_only_the_condition_of_the_scheduler_counts(reason: str, *, unschedulable: bool) -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": reason}
    assert decoded(pod_of("x", status={"conditions": [condition]})).unschedulable == unschedulable


@pytest.mark.parametrize(
    ("text", "injection"),
    [
        ('{"name":"web","subset":"a"}', SubsetInjection("web", "a")),
        ('{"Name":"web","SUBSET":"a","Uid":"i"}', SubsetInjection("web", "a", "i")),
        ('{"name":"web","subset":null,"more":1}', SubsetInjection("web", "")),
        ("{}", SubsetInjection("", "")),
        ('{"name":5}', None),
        ("[]", None),
        ("null", None),
        ("{", None),
        ("", None),
        (None, None),
    ],
)
def test_annotations_are_read_like_in_go(
    text: str | None, injection: SubsetInjection | None
) -> None:
    assert read_injection(text) == injection


def test_annotations_are_written_like_in_go() -> None:
    assert write_injection(SubsetInjection("web", "a")) == '{"name":"web","subset":"a"}'
    with_id = SubsetInjection("web", "a", "i")
    assert write_injection(with_id) == '{"name":"web","subset":"a","uid":"i"}'
    assert read_injection(write_injection(with_id)) == with_id


def test_an_invalid_pod_is_reported_in_one_line() -> None:
    with pytest.raises(ObjectError, match=r"^Pod default/x: metadata\.labels: "):
        decoded({"metadata": {"name": "x", "namespace": "default", "labels": []}})
