"""Services and controllers: which pods they select, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.decoders.cluster_objects import WORKLOAD_DECODERS
from extender.kube.decoders.typed_decoder import ObjectError
from policies.kubernetes.default_selector import WORKLOAD_KINDS, PodSelectingObject
from policies.kubernetes.selectors import LabelSelector, Requirement
from tests.builders import encoded

WEB = Requirement("app", "In", ("web",))
EXISTS = Requirement("hash", "Exists")


def decode(kind: str, spec: Any, **meta: str) -> PodSelectingObject:
    document = {"metadata": {"name": "web", **meta}, "spec": spec}
    return WORKLOAD_DECODERS[kind](encoded(document))


def test_every_kind_is_read() -> None:
    assert set(WORKLOAD_DECODERS) == set(WORKLOAD_KINDS)


@pytest.mark.parametrize("kind", ["Service", "ReplicationController"])
@pytest.mark.parametrize(
    ("selector", "requirements"),
    [(None, None), ({}, ()), ({"app": "web"}, (WEB,))],
)
def test_kinds_that_select_by_a_map(
    kind: str, selector: Any, requirements: tuple[Requirement, ...] | None
) -> None:
    expected = None if requirements is None else LabelSelector(requirements)
    spec = {"selector": selector, "ports": [{"port": 80}], "replicas": 3}
    assert decode(kind, spec) == PodSelectingObject(kind, "default", "web", expected)


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet"])
@pytest.mark.parametrize(
    ("selector", "requirements"),
    [
        (None, None),
        ({}, ()),
        (
            {
                "matchLabels": {"app": "web"},
                "matchExpressions": [{"key": "hash", "operator": "Exists"}],
            },
            (WEB, EXISTS),
        ),
    ],
)
def test_kinds_that_select_by_a_selector(
    kind: str, selector: Any, requirements: tuple[Requirement, ...] | None
) -> None:
    expected = None if requirements is None else LabelSelector(requirements)
    found = decode(kind, {"selector": selector, "template": {}}, namespace="blue")
    assert found == PodSelectingObject(kind, "blue", "web", expected)


@pytest.mark.parametrize("kind", WORKLOAD_KINDS)
def test_one_without_a_spec_selects_nothing(kind: str) -> None:
    assert decode(kind, None).selector is None


def test_a_broken_selector_is_named() -> None:
    with pytest.raises(ObjectError) as raised:
        decode("ReplicaSet", {"selector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}})
    assert str(raised.value) == (
        "ReplicaSet web: spec.selector: 'Gt' is not a valid label selector operator"
    )
