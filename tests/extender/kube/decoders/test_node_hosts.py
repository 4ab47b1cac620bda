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
from tests.builders import encoded

decode_occupant = advised_pod_decoder(NEWEST_EVICTION)


def node(**parts: Any) -> bytes:
    return encoded({"kind": "Node", "metadata": {"name": "n", "uid": "u"}, **parts})


def pod(meta: dict[str, Any] | None = None, **parts: Any) -> AdvisedPod:
    metadata = {"name": "p", "namespace": "shop", "uid": "u", **(meta or {})}
    spec = {"nodeName": "n", "containers": [{"name": "c"}]}
    return decode_occupant(encoded({"kind": "Pod", "metadata": metadata, "spec": spec, **parts}))


def condition(type_: str, status: str) -> dict[str, str]:
    return {"type": type_, "status": status}


@pytest.mark.parametrize(
    ("parts", "host"),
    [
        ({}, AdvisedNode("n", "u")),
        ({"spec": {"unschedulable": True}}, AdvisedNode("n", "u", unschedulable=True)),
        (
            {
                "status": {
                    "conditions": [
                        condition("PIDPressure", "True"),
                        condition("MemoryPressure", "True"),
                        condition("DiskPressure", "False"),
                        condition("Ready", "True"),
                    ]
                }
            },
            AdvisedNode("n", "u", pressures=("MemoryPressure", "PIDPressure")),
        ),
        ({"spec": {"unschedulable": "yes"}}, AdvisedNode("n")),  # makes no sense, but is there
    ],
)
def test_a_node_is_read(parts: dict[str, Any], host: AdvisedNode) -> None:
    assert decode_advised_node(node(**parts)) == host


def test_a_pod_is_read() -> None:
    found = pod()
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
def test_a_pod_that_has_ended_is_not_active(phase: str, *, active: bool) -> None:
    assert pod(status={"phase": phase}).active == active


def test_a_pod_that_was_deleted_is_leaving() -> None:
    assert pod({"deletionTimestamp": "2026-01-01T00:00:00Z"}).terminating


@pytest.mark.parametrize(
    ("owner", "daemon"),
    [
        ({"kind": "DaemonSet", "apiVersion": "apps/v1", "controller": True}, True),
        ({"kind": "DaemonSet", "apiVersion": "apps/v1"}, False),
        ({"kind": "DaemonSet", "apiVersion": "apps.kruise.io/v1alpha1", "controller": True}, True),
        ({"kind": "ReplicaSet", "apiVersion": "apps/v1", "controller": True}, False),
    ],
)
def test_a_pod_may_be_one_that_a_daemon_set_makes_anew(
    owner: dict[str, Any], *, daemon: bool
) -> None:
    assert pod({"ownerReferences": [{"name": "o", "uid": "o", **owner}]}).daemon == daemon


def test_a_mirror_tells_its_static_pod() -> None:
    annotations = {"kubernetes.io/config.mirror": "x", "kubernetes.io/config.hash": "static"}
    found = pod({"annotations": annotations})
    assert found.static_uid == "static"
    assert found.pod is not None
    assert found.pod.critical


def test_a_pod_that_cannot_be_read_keeps_its_name_and_node() -> None:
    found = pod(spec={"nodeName": "n", "containers": "none"})
    assert (found.key, found.node, found.pod) == ("shop/p", "n", None)
    assert "containers" in found.problem
    assert "\n" not in found.problem
