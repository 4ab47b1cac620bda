"""The features that a pod requires of its node, and those that a node declares."""

from __future__ import annotations

import pytest

from extender.kube.decoders.cluster_objects import decode_node
from extender.kube.decoders.pods import decode_pod
from policies.kubernetes.releases import NEWEST
from tests.builders import Document, container_json, encoded, node_json, pod_json

RESTART_ALL = [{"action": "Restart"}, {"action": "RestartAllContainers"}]


@pytest.mark.parametrize(
    ("spec", "required"),
    [
        ({}, set()),
        (
            {"containers": [container_json(restartPolicyRules=RESTART_ALL)]},
            {"RestartAllContainersOnContainerExits"},
        ),
        (
            {"initContainers": [container_json(restartPolicyRules=RESTART_ALL)]},
            {"RestartAllContainersOnContainerExits"},
        ),
        ({"containers": [container_json(restartPolicyRules=[{"action": "Restart"}])]}, set()),
        ({"containers": [container_json(restartPolicyRules=None, volumeMounts=None)]}, set()),
        ({"hostNetwork": True, "hostUsers": False}, {"UserNamespacesHostNetworkSupport"}),
        ({"hostNetwork": True, "hostUsers": True}, set()),
        ({"hostNetwork": True}, set()),
        ({"hostUsers": False}, set()),
        (
            {"containers": [container_json(volumeMounts=[{"bindMountOptions": ["noexec"]}])]},
            {"VolumeBindMountOptions"},
        ),
        ({"containers": [container_json(volumeMounts=[{"bindMountOptions": []}, {}])]}, set()),
    ],
)
def test_the_required_features_follow_from_the_spec(spec: Document, required: set[str]) -> None:
    assert decode_pod(encoded(pod_json(spec=spec)), NEWEST).required_features == required


@pytest.mark.parametrize(
    ("status", "declared"),
    [
        ({"declaredFeatures": ["A", "B"]}, {"A", "B"}),
        ({"declaredFeatures": None}, set()),
        ({}, set()),
    ],
)
def test_a_node_declares_features_in_its_status(status: Document, declared: set[str]) -> None:
    document = node_json() | {"status": status}
    assert decode_node(encoded(document)).declared_features == declared
