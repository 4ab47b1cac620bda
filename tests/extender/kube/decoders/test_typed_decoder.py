"""The base of all decoders: errors that name object, field and expectation; invalid objects."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.kube.decoders.cluster_objects import (
    decode_budget,
    decode_namespace,
    decode_node,
    decode_priority_class,
)
from extender.kube.decoders.pods import decode_pod
from extender.kube.decoders.typed_decoder import ObjectError, Unreadable, tolerant_decoder
from policies.kubernetes.releases import NEWEST
from policies.kubernetes.snapshot import Pod
from tests.builders import Document, container_json, encoded, pod_json

MIDNIGHT_2024 = 1_704_067_200
NO_QUANTITY = "is not a quantity; expected a number such as 100m, 2 or 1.5Gi"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NEAR = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Near"}]}]}


def decode(raw: bytes) -> Pod:
    return decode_pod(raw, NEWEST)


def asking(**requests: object) -> Document:
    """Build a pod with requests of any JSON type."""
    return pod_json(containers=[{"name": "c", "resources": {"requests": requests}}])


def limited(containers: str, **limits: object) -> Document:
    """Build a pod whose first container of a list has limits of any JSON type."""
    return pod_json(spec={containers: [{"name": "c", "resources": {"limits": limits}}]})


@pytest.mark.parametrize(
    ("amount", "milli_cpu"),
    [
        ("100m", 100),
        ("1", 1000),
        (2, 2000),
        (0.1, 100),
        (1e-7, 1),
        (1e3, 1_000_000),
        (" 1 ", 1000),
        (None, 0),
    ],
)
def test_a_quantity_is_a_string_a_number_or_null_as_in_go(amount: object, milli_cpu: int) -> None:
    assert decode(encoded(asking(cpu=amount))).requests.milli_cpu == milli_cpu


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (
            asking(cpu="1 core"),
            f"spec.containers[0].resources.requests.cpu: '1 core' {NO_QUANTITY}",
        ),
        (
            pod_json(containers=[container_json(), container_json(requests={"memory": "lots"})]),
            f"spec.containers[1].resources.requests.memory: 'lots' {NO_QUANTITY}",
        ),
        (
            pod_json(spec={"initContainers": [container_json(requests={"cpu": "?"})]}),
            f"spec.initContainers[0].resources.requests.cpu: '?' {NO_QUANTITY}",
        ),
        (
            limited("containers", cpu="1 core"),
            f"spec.containers[0].resources.limits.cpu: '1 core' {NO_QUANTITY}",
        ),
        (
            limited("initContainers", memory="lots"),
            f"spec.initContainers[0].resources.limits.memory: 'lots' {NO_QUANTITY}",
        ),
        (
            pod_json(spec={"resources": {"limits": {"cpu": "?"}}}),
            f"spec.resources.limits.cpu: '?' {NO_QUANTITY}",
        ),
        (pod_json(spec={"overhead": {"cpu": "1x"}}), f"spec.overhead.cpu: '1x' {NO_QUANTITY}"),
        (
            asking(cpu=True),
            (
                "spec.containers[0].resources.requests[...]: "
                "expected int | float | str | null, got bool"
            ),
        ),
        (pod_json(spec={"priority": "5"}), "spec.priority: expected int | null, got str"),
        (pod_json(spec={"containers": "x"}), "spec.containers: expected array | null, got str"),
        (pod_json(spec={"containers": [None]}), "spec.containers[0]: expected object, got null"),
        (
            pod_json(status={"startTime": "yesterday"}),
            "status.startTime: invalid RFC3339 encoded datetime",
        ),
        (
            pod_json(spec={"affinity": {"nodeAffinity": {REQUIRED: NEAR}}}),
            f"spec.affinity.nodeAffinity.{REQUIRED}: 'Near' is not a valid node selector operator",
        ),
    ],
)
def test_an_error_names_the_object_the_field_and_what_was_expected(
    document: Document, problem: str
) -> None:
    with pytest.raises(ObjectError) as caught:
        decode(encoded(document))
    assert str(caught.value) == f"Pod default/pod: {problem}"


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"", "Pod: not JSON: Input data was truncated"),
        (b"{", "Pod: not JSON: Input data was truncated"),
        (b"[]", "Pod: (the object): expected object, got array"),
        (b"null", "Pod: (the object): expected object, got null"),
        (b"{}", "Pod: (the object): object missing required field metadata"),
        (b'{"metadata":{"name":"x"}}', "Pod x: (the object): object missing required field spec"),
        (b'{"metadata":{"name":"\xff"},"spec":{}}', "Pod: not UTF-8: invalid start byte"),
        (b'{"metadata":{"name":"x"},"spec":{}} more', "Pod: not JSON: "),
    ],
)
def test_invalid_bytes_are_an_error(raw: bytes, problem: str) -> None:
    with pytest.raises(ObjectError) as caught:
        decode(raw)
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize("metadata", [{}, {"name": ""}])
@pytest.mark.parametrize(
    ("kind", "decode_one"),
    [
        ("Pod", decode),
        ("Node", decode_node),
        ("PodDisruptionBudget", decode_budget),
        ("Namespace", decode_namespace),
        ("PriorityClass", decode_priority_class),
    ],
)
def test_a_name_is_required(
    kind: str, decode_one: Callable[[bytes], object], metadata: Document
) -> None:
    with pytest.raises(ObjectError) as caught:
        decode_one(encoded({"metadata": metadata, "spec": {}}))
    assert str(caught.value) == f"{kind}: metadata.name: required"


@pytest.mark.parametrize("depth", [500, 100_000])
def test_deep_nesting_is_skipped_or_refused(depth: int) -> None:
    nested = b"[" * depth + b"]" * depth
    raw = b'{"metadata":{"name":"x"},"spec":{"volumes":[{"rbd":' + nested + b"}]}}"
    read = tolerant_decoder("Pod", decode)(raw)
    assert isinstance(read, (Pod, Unreadable))


def test_an_invalid_node_or_budget_is_reported_as_well() -> None:
    with pytest.raises(ObjectError, match=r"^Node node-1: status\.allocatable\.cpu: 'x' is not"):
        decode_node(b'{"metadata":{"name":"node-1"},"status":{"allocatable":{"cpu":"x"}}}')
    with pytest.raises(ObjectError, match=r"^PodDisruptionBudget blue/web: spec\.selector: "):
        decode_budget(
            b'{"metadata":{"name":"web","namespace":"blue"},'
            b'"spec":{"selector":{"matchLabels":{"a b":"x"}}}}'
        )


# Invalid objects as values


def test_a_valid_object_is_returned_unchanged() -> None:
    assert tolerant_decoder("Pod", decode)(encoded(pod_json())) == decode(encoded(pod_json()))


def test_an_invalid_object_keeps_its_identity_and_its_node() -> None:
    broken = asking(cpu="?")
    broken["spec"]["nodeName"] = "node-1"
    broken["metadata"]["namespace"] = "blue"
    read = tolerant_decoder("Pod", decode)(encoded(broken))
    assert isinstance(read, Unreadable)
    assert (read.kind, read.namespace, read.name, read.uid, read.node_name) == (
        "Pod",
        "blue",
        "pod",
        "pod",
        "node-1",
    )
    assert read.problem.startswith("Pod blue/pod: spec.containers[0].resources.requests.cpu: ")
    assert read.key == "blue/pod"


@pytest.mark.parametrize(
    ("document", "identity"),
    [
        ({"metadata": {"namespace": "blue", "name": "x", "uid": "1"}, "spec": "?"}, "blue/x"),
        ({"metadata": {"namespace": "blue", "name": 5, "uid": "1"}, "spec": {}}, "blue/"),
        ({"metadata": {"name": "x"}, "spec": None}, "x"),
        ({"metadata": "?", "spec": {}}, ""),
        ({"metadata": {"name": "x"}, "spec": {"nodeName": 5}}, "x"),
    ],
)
def test_the_valid_part_of_the_identity_is_kept(document: object, identity: str) -> None:
    read = tolerant_decoder("Pod", decode)(encoded(document))
    assert isinstance(read, Unreadable)
    assert (read.key, read.node_name) == (identity, None)


def test_the_key_of_a_cluster_scoped_object_is_its_name() -> None:
    read = tolerant_decoder("Node", decode_node)(b'{"metadata":{"name":"node-1"},"spec":5}')
    assert isinstance(read, Unreadable)
    assert read.key == "node-1"


# Times


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("2024-01-01T00:00:00Z", 0),
        ("2024-01-01T00:00:01Z", 10**9),
        ("2024-01-01T02:00:00+02:00", 0),
        ("2024-01-01T00:00:00.5Z", 500_000_000),
        ("2024-01-01T00:00:00.123456Z", 123_456_000),
        ("2024-01-01T00:00:00", 0),
    ],
)
def test_times_are_nanoseconds_since_the_epoch(text: str, nanoseconds: int) -> None:
    found = decode(encoded(pod_json(status={"startTime": text}))).started_ns
    assert found == MIDNIGHT_2024 * 10**9 + nanoseconds


def test_the_epoch_itself_is_a_time() -> None:
    assert decode(encoded(pod_json(started=0))).started_ns == 0
    assert decode(encoded(pod_json())).started_ns is None
