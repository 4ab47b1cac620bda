"""RuntimeClass admission."""

from __future__ import annotations

from typing import Any

import pytest

from fakeapi.apiserver.admission.runtime_class import merge_tolerations
from tests.fakeapi.api_requests import DEFAULT, Ask

CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
GPU = {"key": "gpu", "operator": "Exists"}
A = {"key": "gpu", "operator": "Equal", "value": "a"}
B = {**A, "value": "b"}
ALL: dict[str, Any] = {"operator": "Exists"}
OVERHEAD = {"podFixed": {"cpu": "250m", "memory": "1Gi"}}


def create_pod(ask: Ask, **spec: Any) -> tuple[int, Any]:
    """Create a pod whose class is that of the fields of ``runtime_class``, if there are any."""
    if fields := spec.pop("runtime_class", None):
        created, answer = ask(
            "POST", CLASSES, {"metadata": {"name": "sandbox"}, "handler": "runsc", **fields}
        )
        assert created == 201, answer
        spec["runtimeClassName"] = "sandbox"
    containers = [{"name": "c", "image": "i"}]
    body = {"metadata": {"name": "p"}, "spec": {"containers": containers, **spec}}
    return ask("POST", f"{DEFAULT}/pods", body)


def test_a_pod_gets_the_fields_of_its_class(ask: Ask) -> None:
    scheduling = {"nodeSelector": {"runtime": "sandbox"}, "tolerations": [GPU]}
    status, pod = create_pod(
        ask,
        runtime_class={"overhead": OVERHEAD, "scheduling": scheduling},
        nodeSelector={"disk": "ssd"},
    )
    assert status == 201, pod
    assert pod["spec"]["overhead"] == OVERHEAD["podFixed"]
    assert pod["spec"]["nodeSelector"] == {"disk": "ssd", "runtime": "sandbox"}
    assert GPU in pod["spec"]["tolerations"]


def test_a_pod_may_repeat_the_overhead_of_its_class(ask: Ask) -> None:
    overhead = {"cpu": "0.25", "memory": "1024Mi"}
    status, pod = create_pod(ask, runtime_class={"overhead": OVERHEAD}, overhead=overhead)
    assert (status, pod["spec"]["overhead"]) == (201, OVERHEAD["podFixed"])


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"runtimeClassName": "absent"}, 'pod rejected: RuntimeClass "absent" not found'),
        (
            {"runtime_class": {"overhead": OVERHEAD}, "overhead": {"cpu": "1"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            {"overhead": {"cpu": "1"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            {
                "runtime_class": {"scheduling": {"nodeSelector": {"os": "a"}}},
                "nodeSelector": {"os": "b"},
            },
            "conflict: runtimeClass.scheduling.nodeSelector[os] = a; pod.spec.nodeSelector[os] = b",
        ),
    ],
    ids=["no class", "another overhead", "an overhead without a class", "another node"],
)
def test_a_pod_that_contradicts_its_class_is_rejected(
    ask: Ask, spec: dict[str, Any], reason: str
) -> None:
    status, answer = create_pod(ask, **spec)
    assert (status, answer["message"]) == (403, f'pods "p" is forbidden: {reason}')


@pytest.mark.parametrize(
    ("tolerations", "merged"),
    [
        ((GPU, GPU), [GPU]),
        (({**GPU, "effect": "NoSchedule"}, GPU), [GPU]),
        ((ALL, GPU), [ALL]),
        ((GPU, ALL), [ALL]),
        (
            (
                {**GPU, "operator": "Equal", "value": "a"},
                {**GPU, "operator": "Equal", "value": "b"},
            ),
            [
                {**GPU, "operator": "Equal", "value": "a"},
                {**GPU, "operator": "Equal", "value": "b"},
            ],
        ),
        (
            (
                {**ALL, "effect": "NoExecute", "tolerationSeconds": 60},
                {**GPU, "effect": "NoExecute", "tolerationSeconds": 30},
                {**GPU, "effect": "NoExecute"},
            ),
            [
                {**ALL, "effect": "NoExecute", "tolerationSeconds": 60},
                {**GPU, "effect": "NoExecute"},
            ],
        ),
    ],
    ids=["equal", "an effect", "a later key", "an earlier key", "values", "seconds"],
)
def test_redundant_tolerations_are_left_out(
    tolerations: tuple[dict[str, Any], ...], merged: list[dict[str, Any]]
) -> None:
    assert merge_tolerations(tolerations) == merged
