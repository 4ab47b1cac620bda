"""Calls for a running pod whose in-place resize is deferred."""

from __future__ import annotations

from typing import Final

from extender.kube.decoders.pods import decode_pod
from extender.protocol.request_size import at_once
from extender.server.service import Service, VerbCall
from policies.kubernetes.releases import release
from policies.preemption.policy import SchedulerRules
from policies.preemption.vectorized import VectorizedEngine
from tests.builders import encoded, node, pod, pod_json
from tests.extender.conftest import HandClock, filter_body, live_cluster, preempt_body
from tests.extender.go_decoder import Victims, filtered, preempted

RESIZES: Final = release("1.37", {"InPlacePodVerticalScalingSchedulerPreemption": True})
DEFERRED: Final = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}
GROWING: Final = pod_json(
    "growing", on="node-1", cpu="3", priority=10, status={"conditions": [DEFERRED]}
)


def serve(node_cpu: str = "4") -> Service:
    """Return an extender for a node with the pod and two less important ones."""
    cluster = live_cluster(
        node("node-1", cpu=node_cpu),
        node("node-2", cpu="4"),
        decode_pod(encoded(GROWING), RESIZES),
        pod("cheap", on="node-1", cpu="1", priority=1),
        pod("dear", on="node-1", cpu="1", priority=5),
    )
    return Service(cluster, VectorizedEngine(SchedulerRules(RESIZES)), HandClock())


def call(service: Service, verb: str, body: bytes) -> bytes:
    return at_once(service.answer(VerbCall(verb, body, 0.0))).body


def test_its_victims_are_the_pods_that_over_allocate_its_node() -> None:
    service = serve()
    answer = call(service, "preempt", preempt_body(GROWING, node_1=["cheap"]))
    found = preempted(answer, service.cluster.snapshot(), RESIZES)
    assert found == {"node-1": Victims(("cheap",), 0)}


def test_its_victims_count_as_leaving_and_the_pod_as_nominated_nowhere() -> None:
    service = serve()
    call(service, "preempt", preempt_body(GROWING, node_1=["cheap"]))
    state = service.cluster.snapshot().nodes["node-1"]
    assert [each.name for each in state.pods if each.departing] == ["cheap"]
    assert state.nominated == ()
    service.cluster.pods.remove(pod("cheap", on="node-1"))
    assert service.cluster.assumed_count == 0


def test_its_node_passes_filtering_once_the_desired_resources_fit() -> None:
    for node_cpu, failed in (("5", {}), ("4", {"node-1": "Insufficient cpu"})):
        answer = call(serve(node_cpu), "filter", filter_body(GROWING, "node-1"))
        assert filtered(answer, ["node-1"], cached=True).failed == failed
