"""Objects that only policies read, from files and from a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from extender.explain.cluster_files import load_cluster
from extender.explain.cluster_objects import SCHEDULING_KINDS, list_objects, read_objects
from extender.kube.rest.client import Client
from fakeapi import VirtualCluster
from policies.kubernetes.policy_objects import PolicyObjects, ResourceQuota
from policies.kubernetes.releases import NEWEST
from tests.builders import SECOND, pod_json
from tests.commands import written

QUOTA: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "q", "namespace": "default"},
    "spec": {"hard": {"requests.nvidia.com/gpu": "8", "pods": "5"}},
}
FOUND = PolicyObjects(
    {"default": (ResourceQuota("default", "q", {"nvidia.com/gpu": 8}),)}, {"vip": 7 * SECOND}
)


def event(name: str, reason: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "vip", "uid": "vip"},
        "reason": reason,
        "lastTimestamp": "1970-01-01T00:00:07Z",
    }


OBJECTS = (QUOTA, event("a", "Nominated"), event("b", "Scheduled"), pod_json("vip"))


def test_files_have_them(tmp_path: Path) -> None:
    path = written(tmp_path, "cluster.json", *OBJECTS)
    assert load_cluster(read_objects([path]), NEWEST).snapshot.policy_objects == FOUND


async def test_a_server_lists_them_without_other_events() -> None:
    async with VirtualCluster() as cluster:
        cluster.load(OBJECTS)
        client = Client(cluster.local_transport())
        listed = await list_objects(client, "the server", SCHEDULING_KINDS)
    assert load_cluster(listed, NEWEST).snapshot.policy_objects == FOUND
    assert sum(each.kind == "Event" for each in listed.manifests) == 1
