"""Pods: every field that scheduling reads, absent, null and set."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from extender.kube.decoders import core_v1_types
from extender.kube.decoders.pods import decode_pod
from policies.kubernetes.releases import NEWEST, RELEASES, release
from policies.kubernetes.selectors import LabelSelector, Requirement, Toleration
from policies.kubernetes.snapshot import AffinityTerm, HostPort, Pod, Resources
from tests.builders import Document, container_json, encoded, host_port, pod_json

NODE_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def decode(document: Document, release: str = NEWEST.name) -> Pod:
    return decode_pod(encoded(document), RELEASES[release])


def with_spec(**spec: Any) -> Pod:
    return decode(pod_json(spec=spec))


def with_status(**status: Any) -> Pod:
    return decode(pod_json(status=status))


def test_a_minimal_pod_has_the_defaults_of_scheduling() -> None:
    bare = decode_pod(b'{"metadata":{"name":"x"},"spec":{}}', NEWEST)
    assert bare == Pod(namespace="default", name="x", uid="")


def test_null_everywhere_is_the_same_as_absent() -> None:
    nothing = dict.fromkeys(core_v1_types.PodSpecV1.__struct_fields__)
    unset = dict.fromkeys(core_v1_types.PodStatusV1.__struct_fields__)
    meta = {"namespace": None, "uid": None, "labels": None, "deletionTimestamp": None}
    document = {"metadata": {"name": "x", **meta}, "spec": nothing, "status": unset}
    assert decode(document) == Pod(namespace="default", name="x", uid="")
    assert decode({**document, "status": None}) == Pod(namespace="default", name="x", uid="")


def test_nested_null_is_the_same_as_absent() -> None:
    container = {
        "name": "c",
        "resources": {"requests": None, "limits": None},
        "ports": [{"hostPort": None, "hostIP": None, "protocol": None}],
        "restartPolicy": None,
    }
    empty = {"nodeAffinity": {NODE_REQUIRED: None}, "podAntiAffinity": {NODE_REQUIRED: None}}
    found = with_spec(
        containers=[container, {"name": "d", "resources": None, "ports": None}],
        affinity={**empty, "podAffinity": None},
        tolerations=[dict.fromkeys(("key", "operator", "value", "effect"))],
    )
    assert found == Pod("default", "pod", "pod", tolerations=(Toleration(),))


def test_unknown_fields_are_ignored() -> None:
    odd = pod_json(spec={"nodeNome": 5, "containers": [{"name": "c", "image": {"odd": []}}]})
    assert decode({**odd, "apiVersion": 7, "more": None}).name == "pod"


def test_plain_fields_are_decoded() -> None:
    found = decode(
        pod_json(
            "web-0",
            namespace="blue",
            uid="1",
            on="node-1",
            labels={"app": "web"},
            priority=-7,
            started=3,
            metadata={"deletionTimestamp": "2024-01-01T00:00:00Z"},
            status={"nominatedNodeName": "node-2"},
        )
    )
    assert found == Pod(
        namespace="blue",
        name="web-0",
        uid="1",
        labels={"app": "web"},
        priority=-7,
        node_name="node-1",
        nominated_node="node-2",
        started_ns=3 * 10**9,
        terminating=True,
    )


@pytest.mark.parametrize("field", ["nodeName", "preemptionPolicy", "priorityClassName"])
def test_an_empty_string_is_the_same_as_absent(field: str) -> None:
    assert with_spec(**{field: ""}) == with_spec()
    assert with_status(nominatedNodeName="") == with_status()


@pytest.mark.parametrize(
    ("policy", "preempts"), [("Never", False), ("PreemptLowerPriority", True), (None, True)]
)
def test_the_preemption_policy_is_decoded(policy: str | None, *, preempts: bool) -> None:
    assert with_spec(preemptionPolicy=policy).preempts is preempts


@pytest.mark.parametrize(
    ("phase", "finished"),
    [("Succeeded", True), ("Failed", True), ("Running", False), ("Pending", False), ("", False)],
)
def test_the_phase_decides_whether_a_pod_has_finished(phase: str, *, finished: bool) -> None:
    assert with_status(phase=phase).finished is finished


def target(status: str = "True", reason: str | None = "PreemptionByScheduler") -> Document:
    return {"type": "DisruptionTarget", "status": status, "reason": reason}


@pytest.mark.parametrize(
    ("conditions", "preempted"),
    [
        ([], False),
        ([target()], True),
        ([{"type": "Ready", "status": "True"}, target()], True),
        ([target("False")], False),
        ([target("Unknown")], False),
        ([target(reason="DeletionByTaintManager")], False),
        ([target(reason=None)], False),
        ([target("False"), target()], False),
        ([target(), target("False")], True),
        ([{**target(), "type": "Ready"}], False),
    ],
)
def test_only_the_first_disruption_target_condition_counts(
    conditions: list[Document], *, preempted: bool
) -> None:
    assert with_status(conditions=conditions).preempted is preempted


# Requests


def test_requests_are_summed_over_containers_and_overhead() -> None:
    found = with_spec(
        containers=[
            container_json(requests={"cpu": "100m", "memory": "1Gi", "example.com/gpu": "1"}),
            container_json(requests={"cpu": "200m", "ephemeral-storage": "2Gi"}),
        ],
        initContainers=[
            container_json(requests={"cpu": "250m"}, restartPolicy="Always"),
            container_json(requests={"cpu": "2"}),
        ],
        overhead={"cpu": "50m"},
    )
    assert found.requests == Resources(2300, 2**30, 2 * 2**30, {"example.com/gpu": 1})


@pytest.mark.parametrize(
    ("release", "milli_cpu"), [("1.32", 100), ("1.33", 300), ("1.36", 300), ("1.37", 300)]
)
def test_the_status_of_a_container_is_decoded(release: str, milli_cpu: int) -> None:
    document = pod_json(
        containers=[container_json("main", {"cpu": "100m"})],
        status={
            "containerStatuses": [
                {
                    "name": "main",
                    "allocatedResources": {"cpu": "200m"},
                    "resources": {"requests": {"cpu": "300m"}},
                },
                {"name": "other", "resources": {"requests": {"cpu": "9"}}},
            ]
        },
    )
    assert decode(document, release).requests.milli_cpu == milli_cpu


@pytest.mark.parametrize(("release", "milli_cpu"), [("1.32", 150), ("1.33", 450)])
def test_the_status_of_a_sidecar_is_decoded(release: str, milli_cpu: int) -> None:
    sidecar = container_json("side", {"cpu": "100m"}, restartPolicy="Always")
    document = pod_json(
        cpu="50m",
        spec={"initContainers": [sidecar]},
        status={
            "initContainerStatuses": [{"name": "side", "resources": {"requests": {"cpu": "400m"}}}]
        },
    )
    assert decode(document, release).requests.milli_cpu == milli_cpu


@pytest.mark.parametrize(
    ("conditions", "milli_cpu"),
    [
        ([{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}], 200),
        ([{"type": "PodResizePending", "status": "True", "reason": "Deferred"}], 900),
        ([{"type": "PodResizeInProgress", "status": "True", "reason": "Infeasible"}], 900),
    ],
)
def test_an_infeasible_resize_is_read_from_its_condition(
    conditions: list[Document], milli_cpu: int
) -> None:
    document = pod_json(
        containers=[container_json("main", {"cpu": "900m"})],
        status={
            "conditions": conditions,
            "containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "200m"}}}],
        },
    )
    assert decode(document, "1.36").requests.milli_cpu == milli_cpu


@pytest.mark.parametrize(("resize", "milli_cpu"), [("Infeasible", 200), ("Deferred", 900)])
def test_an_infeasible_resize_is_read_from_the_status_in_1_32(resize: str, milli_cpu: int) -> None:
    document = pod_json(
        containers=[container_json("main", {"cpu": "900m"})],
        status={
            "resize": resize,
            "containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "200m"}}}],
        },
    )
    rules = release("1.32", {"InPlacePodVerticalScaling": True})
    assert decode_pod(encoded(document), rules).requests.milli_cpu == milli_cpu


@pytest.mark.parametrize(
    ("release", "milli_cpu"), [("1.33", 100), ("1.34", 1000), ("1.35", 1000), ("1.36", 3000)]
)
def test_pod_level_resources_and_their_status_are_read(release: str, milli_cpu: int) -> None:
    document = pod_json(
        cpu="100m",
        spec={"resources": {"requests": {"cpu": "1"}}},
        status={"resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "2"}},
    )
    assert decode(document, release).requests.milli_cpu == milli_cpu


def test_a_limit_alone_requests_nothing() -> None:
    found = with_spec(containers=[{"name": "a", "resources": {"limits": {"cpu": "1"}}}])
    assert found.requests == Resources()


def test_every_named_resource_is_known_even_at_zero() -> None:
    found = with_spec(
        containers=[{"name": "a", "resources": {"limits": {"example.com/gpu": "0"}}}],
        initContainers=[container_json(requests={"cpu": "0"})],
    )
    assert found.resource_names == {"example.com/gpu", "cpu"}


# Host ports


@pytest.mark.parametrize(
    ("port", "taken"),
    [
        ({"hostPort": 80}, [80]),
        ({"hostPort": 80, "hostIP": "", "protocol": ""}, [80]),
        ({"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}, ["10.0.0.1:UDP:53"]),
        ({"containerPort": 80}, []),
        ({"hostPort": 0}, []),
    ],
)
def test_host_ports_are_decoded(port: Document, taken: Iterable[str | int]) -> None:
    found = with_spec(containers=[container_json(ports=[port])])
    assert found.host_ports == {host_port(each) for each in taken}


@pytest.mark.parametrize(("release", "taken"), [("1.32", {80}), ("1.33", {80, 81})])
def test_the_host_ports_of_sidecars_count_since_1_33(release: str, taken: set[int]) -> None:
    document = pod_json(
        containers=[container_json(ports=[{"hostPort": 80}])],
        spec={
            "initContainers": [
                container_json("side", ports=[{"hostPort": 81}], restartPolicy="Always"),
                container_json("once", ports=[{"hostPort": 82}]),
            ]
        },
    )
    ports: frozenset[HostPort] = decode(document, release).host_ports
    assert {each.port for each in ports} == taken


# Placement


def test_node_selector_and_required_node_affinity_are_decoded() -> None:
    found = with_spec(
        nodeSelector={"disk": "ssd"},
        affinity={
            "nodeAffinity": {
                NODE_REQUIRED: {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]},
                        {
                            "matchFields": [
                                {"key": "metadata.name", "operator": "In", "values": ["node-1"]}
                            ]
                        },
                    ]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": "ignored"}],
            }
        },
    )
    assert found.node_selector == (Requirement("disk", "In", ("ssd",)),)
    assert found.node_affinity is not None
    assert found.node_affinity.matches("node-9", {"zone": "a"})
    assert found.node_affinity.matches("node-1", {})
    assert not found.node_affinity.matches("node-9", {})


def test_an_affinity_with_empty_terms_matches_no_node() -> None:
    found = with_spec(affinity={"nodeAffinity": {NODE_REQUIRED: {"nodeSelectorTerms": None}}})
    assert found.node_affinity is not None
    assert not found.node_affinity.matches("node-1", {})


def test_equal_tolerations_are_one_object() -> None:
    document = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
    first, second = (with_spec(tolerations=[document]).tolerations for _ in range(2))
    assert first == (Toleration("gpu", "Exists", "", "NoSchedule"),)
    assert first[0] is second[0]


WEB = LabelSelector((Requirement("app", "In", ("web",)),))


@pytest.mark.parametrize(
    ("fields", "namespaces", "selector"),
    [
        ({}, {"default"}, None),
        ({"namespaces": []}, {"default"}, None),
        ({"namespaces": ["blue"]}, {"blue"}, None),
        ({"namespaceSelector": {}}, set(), LabelSelector()),
        ({"namespaces": ["blue"], "namespaceSelector": {}}, {"blue"}, LabelSelector()),
    ],
)
def test_anti_affinity_concerns_the_own_namespace_unless_it_names_others(
    fields: Document, namespaces: set[str], selector: LabelSelector | None
) -> None:
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone", **fields}
    found = with_spec(affinity={"podAntiAffinity": {NODE_REQUIRED: [term]}})
    assert found.anti_affinity == (AffinityTerm(WEB, frozenset(namespaces), selector, "zone"),)
