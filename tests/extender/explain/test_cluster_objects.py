"""The objects of a cluster, in files and of an API server, and the pod that an option names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from extender.explain.cluster_objects import (
    SCHEDULING_KINDS,
    SPREAD_KINDS,
    ClusterObjects,
    find_pod,
    list_objects,
    read_objects,
)
from extender.kube.decoders.manifests import ManifestError
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import Client
from fakeapi import VirtualCluster
from fakeapi.faults import fault
from tests.builders import node_json, pod_json
from tests.commands import written

TEMPLATE: Mapping[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"priorityClassName": "high", "containers": [{"name": "c", "image": "i"}]},
}


def keys(objects: ClusterObjects) -> set[tuple[str, str]]:
    documents = [(each.kind, msgspec.json.decode(each.raw)) for each in objects.manifests]
    assert all(kind == document["kind"] for kind, document in documents)
    return {(document["apiVersion"], document["metadata"]["name"]) for _, document in documents}


async def test_a_server_lists_the_kinds_that_decisions_read() -> None:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
    async with VirtualCluster() as cluster:
        cluster.load([node_json(), pod_json("a"), settings])
        client = Client(cluster.local_transport())
        scheduling = await list_objects(client, "the server", SCHEDULING_KINDS)
        spreading = await list_objects(client, "the server", SPREAD_KINDS)
    assert {("v1", "node-1"), ("v1", "a"), ("v1", "default")} <= keys(scheduling)
    assert ("v1", "settings") not in keys(spreading)
    assert scheduling.problems == []
    pod = scheduling.find("Pod", "default/a")
    assert pod is not None
    assert pod.source == "pods[0] of the server"


@pytest.mark.parametrize(("resource", "required"), [("pods", True), ("storageclasses", False)])
async def test_only_nodes_and_pods_are_required(resource: str, *, required: bool) -> None:
    async with VirtualCluster() as cluster:
        cluster.load([node_json(), pod_json("a")])
        cluster.faults.plan(fault(403).on("list", resource))
        client = Client(cluster.local_transport())
        if required:
            with pytest.raises(ApiError, match="403"):
                await list_objects(client, "the server", SCHEDULING_KINDS)
        else:
            found = await list_objects(client, "the server", SCHEDULING_KINDS)
            assert len(found.problems) == 1
            assert found.problems[0].startswith("storageclasses count as unknown: ")


def test_a_pod_is_named_or_read_from_a_file(tmp_path: Path) -> None:
    objects = read_objects([written(tmp_path, "cluster.json", pod_json("a"), pod_json("b"))])
    assert find_pod("default/b", objects).source.endswith("cluster.json[1]")
    path = written(tmp_path, "pod.json", pod_json("c"))
    assert find_pod(path, objects).source == f"{path}[0]"


def test_a_missing_pod_is_reported() -> None:
    with pytest.raises(ManifestError) as raised:
        find_pod("default/none", ClusterObjects([], "--cluster c.yaml"))
    assert str(raised.value) == (
        "default/none: cannot be read: No such file or directory; "
        "and no pod 'default/none' in --cluster c.yaml"
    )


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("Deployment", {"replicas": 3, "template": TEMPLATE}),
        ("Job", {"template": TEMPLATE}),
        ("CronJob", {"jobTemplate": {"spec": {"template": TEMPLATE}}}),
    ],
)
def test_the_template_of_a_workload_is_a_pod(
    kind: str, spec: Mapping[str, Any], tmp_path: Path
) -> None:
    metadata = {"name": "web", "namespace": "shop"}
    document = {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}
    path = written(tmp_path, "workload.json", document)
    found = find_pod(path, ClusterObjects([], ""))
    assert found.source == f"the pod template of {path}[0]"
    assert msgspec.json.decode(found.raw) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"labels": {"app": "web"}, "name": "web", "namespace": "shop"},
        "spec": TEMPLATE["spec"],
    }


def test_a_workload_without_a_template_is_reported(tmp_path: Path) -> None:
    document = {"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 3}}
    path = written(tmp_path, "workload.json", document)
    with pytest.raises(ManifestError, match="no pod template: "):
        find_pod(path, ClusterObjects([], ""))
