"""Nodes and pods as the advisor sees them."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.decoders.node_hosts import (
    AdvisedNode,
    AdvisedPod,
    advised_pod_decoder,
    decode_advised_node,
)
from policies.eviction.kubelet_releases import NEWEST_EVICTION
from tests.builders import Document, encoded, manifest, pod_json

decode_advised_pod = advised_pod_decoder(NEWEST_EVICTION)


def advised_node(**fields: Any) -> AdvisedNode:
    return decode_advised_node(encoded(manifest("Node", "n", metadata={"uid": "u"}, **fields)))


def advised_pod(meta: Document | None = None, **fields: Any) -> AdvisedPod:
    document = pod_json("p", namespace="shop", uid="u", on="n", metadata=meta)
    return decode_advised_pod(encoded({**document, **fields}))


CONDITIONS = [
    {"type": "PIDPressure", "status": "True"},
    {"type": "MemoryPressure", "status": "True"},
    {"type": "DiskPressure", "status": "False"},
    {"type": "Ready", "status": "True"},
]


@pytest.mark.parametrize(
    ("fields", "node"),
    [
        ({}, AdvisedNode("n", "u")),
        ({"spec": {"unschedulable": True}}, AdvisedNode("n", "u", unschedulable=True)),
        (
            {"status": {"conditions": CONDITIONS}},
            AdvisedNode("n", "u", pressures=("MemoryPressure", "PIDPressure")),
        ),
        ({"spec": {"unschedulable": "yes"}}, AdvisedNode("n")),  # invalid, but it exists
    ],
)
def test_a_node_is_decoded(fields: Document, node: AdvisedNode) -> None:
    assert advised_node(**fields) == node


def test_a_pod_is_decoded() -> None:
    found = advised_pod()
    assert (found.key, found.node, found.active) == ("shop/p", "n", True)
    assert (found.terminating, found.daemon, found.static_uid, found.problem) == (
        False,
        False,
        "",
        "",
    )
    assert found.pod is not None
    assert found.pod.uid == "u"


@pytest.mark.parametrize(
    ("phase", "active"),
    [("Pending", True), ("Running", True), ("Succeeded", False), ("Failed", False)],
)
def test_a_finished_pod_is_not_active(phase: str, *, active: bool) -> None:
    assert advised_pod(status={"phase": phase}).active == active


def test_a_deleted_pod_is_terminating() -> None:
    assert advised_pod({"deletionTimestamp": "2026-01-01T00:00:00Z"}).terminating


@pytest.mark.parametrize(
    ("owner", "daemon"),
    [
        ({"kind": "DaemonSet", "apiVersion": "apps/v1", "controller": True}, True),
        ({"kind": "DaemonSet", "apiVersion": "apps/v1"}, False),
        ({"kind": "DaemonSet", "apiVersion": "apps.kruise.io/v1alpha1", "controller": True}, True),
        ({"kind": "ReplicaSet", "apiVersion": "apps/v1", "controller": True}, False),
    ],
)
def test_a_pod_of_a_daemon_set_is_recognized(owner: Document, *, daemon: bool) -> None:
    assert advised_pod({"ownerReferences": [{"name": "o", "uid": "o", **owner}]}).daemon == daemon


def test_a_mirror_pod_has_the_uid_of_its_static_pod() -> None:
    annotations = {"kubernetes.io/config.mirror": "x", "kubernetes.io/config.hash": "static"}
    found = advised_pod({"annotations": annotations})
    assert found.static_uid == "static"
    assert found.pod is not None
    assert found.pod.critical


def test_an_invalid_pod_keeps_its_name_and_node() -> None:
    found = advised_pod(spec={"nodeName": "n", "containers": "none"})
    assert (found.key, found.node, found.pod) == ("shop/p", "n", None)
    assert "containers" in found.problem
    assert "\n" not in found.problem
