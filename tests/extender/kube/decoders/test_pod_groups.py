"""PodGroups and CompositePodGroups as each version of their API writes them."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.decoders.pod_groups import decode_composite_pod_group, decode_pod_group
from extender.kube.decoders.pods import decode_pod
from extender.kube.decoders.typed_decoder import ObjectError
from policies.kubernetes.pod_groups import PodGroup
from policies.kubernetes.releases import NEWEST
from tests.builders import encoded, pod_group, pod_json


def decoded(**spec: Any) -> PodGroup:
    return decode_pod_group(encoded({"metadata": {"name": "g"}, "spec": spec}))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, pod_group("g", "single")),
        ({"disruptionMode": {"all": {}}, "priority": -5}, pod_group("g", priority=-5)),
        ({"disruptionMode": {"single": {}}}, pod_group("g", "single")),
        ({"disruptionMode": "PodGroup"}, pod_group("g")),
        ({"disruptionMode": "Pod"}, pod_group("g", "single")),
        ({"parentCompositePodGroupName": "top"}, pod_group("g", "single", parent="top")),
        ({"preemptionPolicy": "Never"}, pod_group("g", "single", preempts=False)),
        ({"schedulingPolicy": {"basic": {}}}, pod_group("g", "single")),
        ({"schedulingPolicy": {"gang": {"minCount": 8}}}, pod_group("g", "single", min_count=8)),
    ],
)
def test_the_fields_of_a_pod_group(spec: dict[str, Any], expected: PodGroup) -> None:
    assert decoded(**spec) == expected


@pytest.mark.parametrize("mode", [{}, {"some": {}}, "Some", 7])
def test_an_unknown_disruption_mode_is_refused(mode: object) -> None:
    with pytest.raises(ObjectError, match=r"PodGroup g: spec\.disruptionMode"):
        decoded(disruptionMode=mode)


def test_a_composite_pod_group_has_the_same_fields() -> None:
    shape = {"metadata": {"name": "g", "namespace": "ml"}, "spec": {"priority": 3}}
    expected = pod_group("g", "single", namespace="ml", priority=3)
    assert decode_composite_pod_group(encoded(shape)) == expected


@pytest.mark.parametrize(
    ("spec", "group"),
    [({}, ""), ({"schedulingGroup": {"podGroupName": "g"}}, "g"), ({"schedulingGroup": {}}, "")],
)
def test_the_group_of_a_pod(spec: dict[str, Any], group: str) -> None:
    assert decode_pod(encoded(pod_json("p", spec=spec)), NEWEST).group == group
