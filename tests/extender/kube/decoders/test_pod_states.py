"""The states of pods that kube-scheduler treats apart: nominated ones, and deferred resizes."""

from __future__ import annotations

import pytest

from extender.kube.decoders.pods import decode_pod
from policies.kubernetes.releases import release
from tests.builders import Document, encoded, pod_json

UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
GATED = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}


@pytest.mark.parametrize(
    ("status", "spec", "assumable"),
    [
        ({"nominatedNodeName": "node-1"}, {}, True),
        ({"nominatedNodeName": "node-1", "conditions": [GATED]}, {}, True),
        ({"nominatedNodeName": "node-1", "conditions": [UNSCHEDULABLE]}, {}, False),
        (
            {"nominatedNodeName": "node-1", "conditions": [GATED]},
            {"schedulingGates": [{"name": "example.com/wait"}]},
            False,
        ),
        ({"nominatedNodeName": "node-1"}, {"nodeName": "node-1"}, False),
        ({"nominatedNodeName": ""}, {}, False),
        ({}, {}, False),
    ],
)
def test_a_nominated_pod_may_be_assumed_unless_it_waits_for_victims_or_gates(
    status: Document, spec: Document, *, assumable: bool
) -> None:
    document = encoded(pod_json(status=status, spec=spec))
    assert decode_pod(document, release("1.35")).may_be_assumed is assumable
    assert not decode_pod(document, release("1.34")).may_be_assumed


def test_a_feature_gate_decides_whether_assumed_pods_are_nominated() -> None:
    document = encoded(pod_json(status={"nominatedNodeName": "node-1"}))
    name = "NominatedNodeNameForExpectation"
    assert decode_pod(document, release("1.34", {name: True})).may_be_assumed
    assert not decode_pod(document, release("1.36", {name: False})).may_be_assumed


RESIZES = {"InPlacePodVerticalScalingSchedulerPreemption": True}


@pytest.mark.parametrize(
    ("reasons", "deferred"),
    [
        (["Deferred"], True),
        (["Infeasible"], False),
        (["Infeasible", "Deferred"], False),  # upstream reads the first one
        ([None], False),
        ([], False),
    ],
)
def test_a_resize_is_deferred_by_the_condition_of_a_running_pod(
    reasons: list[str | None], *, deferred: bool
) -> None:
    conditions: list[Document] = [{"type": "Ready", "status": "True", "reason": "Deferred"}]
    conditions += [{"type": "PodResizePending", "status": "True", "reason": r} for r in reasons]
    running = encoded(pod_json(on="node-1", status={"conditions": conditions}))
    pending = encoded(pod_json(status={"conditions": conditions}))
    assert decode_pod(running, release("1.37", RESIZES)).resize_deferred is deferred
    assert not decode_pod(running, release("1.37")).resize_deferred
    assert not decode_pod(running, release("1.36", RESIZES)).resize_deferred
    assert not decode_pod(pending, release("1.37", RESIZES)).resize_deferred
