"""The shipped clusters: valid, consistent, and those of the captured requests."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from extender.kube.decoders.cluster_objects import (
    decode_budget,
    decode_namespace,
    decode_node,
    decode_priority_class,
)
from extender.kube.decoders.pods import decode_pod
from fakeapi.demo.scenarios import SCENARIOS, UnknownScenarioError, captured_request, scenario
from fakeapi.demo.scenarios.demo_cluster import PRIORITIES, pending_pod
from policies.kubernetes.releases import NEWEST
from policies.kubernetes.snapshot import Pod, Snapshot, assemble
from tests.builders import encoded


def documents(kind: str) -> list[dict[str, Any]]:
    return [each for each in scenario("demo") if each["kind"] == kind]


def pods() -> list[Pod]:
    return [decode_pod(encoded(each), NEWEST) for each in documents("Pod")]


def demo() -> Snapshot:
    return assemble(
        [decode_node(encoded(each)) for each in documents("Node")],
        pods(),
        [decode_budget(encoded(each)) for each in documents("PodDisruptionBudget")],
        {
            each.name: each.labels
            for each in map(decode_namespace, map(encoded, documents("Namespace")))
        },
    )


def test_an_unknown_scenario_lists_the_known_ones() -> None:
    with pytest.raises(UnknownScenarioError) as raised:
        scenario("nope")
    assert str(raised.value) == f"unknown scenario 'nope'; expected {', '.join(SCENARIOS)}"


def test_the_demo_is_deterministic() -> None:
    assert scenario("demo") == scenario("demo")


def test_the_demo_is_forty_nodes_in_three_zones_with_budgets_and_four_priorities() -> None:
    zones = {
        each["metadata"]["labels"]["topology.kubernetes.io/zone"] for each in documents("Node")
    }
    classes = [decode_priority_class(encoded(each)) for each in documents("PriorityClass")]
    assert len(documents("Node")) == 40
    assert {"zone-a", "zone-b", "zone-c"} <= zones
    assert {each.name: each.value for each in classes} == PRIORITIES
    assert len(PRIORITIES) == 4
    assert documents("PodDisruptionBudget")


def test_no_node_holds_more_than_it_has() -> None:
    for state in demo().nodes.values():
        free = state.node.allocatable - state.requested
        amounts = [free.milli_cpu, free.memory, *free.scalars.values()]
        assert min(amounts) >= 0, state.node.name


def test_no_two_pods_share_a_uid_or_a_name() -> None:
    found = pods()
    assert Counter(each.uid for each in found).most_common(1)[0][1] == 1
    assert Counter(each.key for each in found).most_common(1)[0][1] == 1


def test_nodes_and_namespaces_of_pods_exist() -> None:
    nodes = {each["metadata"]["name"] for each in documents("Node")}
    namespaces = {each["metadata"]["name"] for each in documents("Namespace")}
    for each in pods():
        assert each.node_name in nodes
        assert each.namespace in namespaces | {"default"}


def test_the_captured_requests_match_the_demo_cluster() -> None:
    nodes = {each["metadata"]["name"] for each in documents("Node")}
    uids = {each.uid for each in pods()}
    assert set(json.loads(captured_request("filter-cache-true"))["NodeNames"]) <= nodes
    offers = json.loads(captured_request("preempt-cache-true"))["NodeNameToMetaVictims"]
    assert set(offers) <= nodes
    assert {pod["UID"] for offer in offers.values() for pod in offer["Pods"]} <= uids


def test_a_pending_pod_is_as_admission_leaves_it() -> None:
    document = pending_pod("research", "train", "research", {"nvidia.com/gpu": "1"})
    pod = decode_pod(encoded(document), NEWEST)
    assert (pod.priority, pod.preempts, pod.node_name) == (PRIORITIES["research"], True, None)
    assert pod.tolerations
