"""Services in a cluster: the slices with the addresses of their pods."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.rest.resources import NODES, PODS, REPLICA_SETS, SERVICES, Resource
from fakeapi.controlplane.workloads.endpoint_slice_controller import (
    Endpoint,
    EndpointConditions,
    EndpointPort,
    EndpointSlice,
    Service,
    ServiceSpec,
    plan_slices,
)
from fakeapi.controlplane.workloads.types import PodIP, WorkloadPod
from tests.builders import Document, manifest
from tests.fakeapi.controlplane.workloads.conftest import (
    SetWorkloads,
    WorkloadStage,
    workload,
)

SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", namespaced=True)
LONG = 30.0
PORTS = [{"name": "http", "containerPort": 8080}]


def service(**spec: Any) -> Document:
    ports = [{"name": "web", "port": 80, "targetPort": "http"}]
    own = {"selector": {"app": "web"}, "ports": ports, **spec}
    return manifest("Service", "shop", metadata={"labels": {"team": "a"}}, spec=own)


def replica_set(**spec: Any) -> Document:
    document = workload("ReplicaSet", 2, **spec)
    document["spec"]["template"]["spec"]["containers"][0]["ports"] = PORTS
    return document


async def opened(workloads: SetWorkloads, *documents: Document) -> WorkloadStage:
    stage = await workloads("endpointslice", seconds=1)
    await stage.patch(NODES, "node-0", {"metadata": {"labels": {ZONE: "a"}}})
    for each in documents:
        await stage.create(SERVICES if each["kind"] == "Service" else REPLICA_SETS, each)
    await stage.passes(LONG)
    return stage


async def the_slice(stage: WorkloadStage) -> Document:
    (found,) = await stage.all(SLICES)
    return found


ZONE = "topology.kubernetes.io/zone"


async def test_a_slice_has_the_pods_of_a_service(workloads: SetWorkloads) -> None:
    stage = await opened(workloads, replica_set(), service())
    found = await the_slice(stage)
    assert found["metadata"]["labels"] == {
        "team": "a",
        "kubernetes.io/service-name": "shop",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    assert found["metadata"]["ownerReferences"][0]["name"] == "shop"
    assert found["addressType"] == "IPv4"
    assert found["ports"] == [{"name": "web", "port": 8080, "protocol": "TCP"}]
    by_name = {each["targetRef"]["name"]: each for each in found["endpoints"]}
    pods = await stage.pods(app="web")
    assert sorted(by_name) == [pod["metadata"]["name"] for pod in pods]
    for pod in pods:
        endpoint = by_name[pod["metadata"]["name"]]
        assert endpoint["addresses"] == [pod["status"]["podIP"]]
        assert endpoint["nodeName"] == pod["spec"]["nodeName"]
        assert endpoint.get("zone") == ("a" if endpoint["nodeName"] == "node-0" else None)
        assert endpoint["conditions"] == {"ready": True, "serving": True, "terminating": False}


async def test_a_terminating_pod_serves_but_is_not_ready(workloads: SetWorkloads) -> None:
    stage = await opened(workloads, replica_set(), service())
    first, _ = await stage.pods(app="web")
    await stage.end(first["metadata"]["name"], 30)
    await stage.passes(0.5)
    endpoints = (await the_slice(stage))["endpoints"]
    (ending,) = [each for each in endpoints if each["conditions"]["terminating"]]
    assert ending["conditions"] == {"ready": False, "serving": True, "terminating": True}
    await stage.passes(LONG)
    assert len((await the_slice(stage))["endpoints"]) == 2


async def test_slices_follow_labels_and_the_scale(workloads: SetWorkloads) -> None:
    stage = await opened(workloads, replica_set(), service())
    await stage.set_replicas(0)
    await stage.passes(LONG)
    assert not (await the_slice(stage)).get("endpoints")
    await stage.patch(SERVICES, "shop", {"metadata": {"labels": {"team": None, "tier": "b"}}})
    await stage.set_replicas(3)
    await stage.passes(LONG)
    found = await the_slice(stage)
    assert len(found["endpoints"]) == 3
    assert found["metadata"]["labels"]["tier"] == "b"
    assert "team" not in found["metadata"]["labels"]
    first, *_ = await stage.pods(app="web")
    await stage.patch(PODS, first["metadata"]["name"], {"metadata": {"labels": {"app": "x"}}})
    await stage.passes(LONG)
    names = {each["targetRef"]["name"] for each in (await the_slice(stage))["endpoints"]}
    assert first["metadata"]["name"] not in names


async def test_a_headless_service_names_it(workloads: SetWorkloads) -> None:
    stage = await opened(workloads, replica_set(), service(clusterIP="None"))
    labels = (await the_slice(stage))["metadata"]["labels"]
    assert labels["service.kubernetes.io/headless"] == ""


@pytest.mark.parametrize("publish", [True, False])
def test_pods_that_are_not_ready_may_be_published(*, publish: bool) -> None:
    found = Service(spec=ServiceSpec(publish_not_ready_addresses=publish))
    _, (content,) = plan_slices(found, [pod(1)], {}, [])
    (endpoint,) = content.endpoints
    assert endpoint.conditions == EndpointConditions(
        ready=publish, serving=False, terminating=False
    )


@pytest.mark.parametrize("spec", [{"selector": None}, {"type": "ExternalName"}])
async def test_a_service_without_pods_of_its_own_has_no_slices(
    workloads: SetWorkloads, spec: Document
) -> None:
    external = {"externalName": "example.com"} if "type" in spec else {}
    stage = await opened(workloads, service(**spec, **external))
    assert not await stage.all(SLICES)


def pod(index: int, address: str = "") -> WorkloadPod:
    found = WorkloadPod()
    found.metadata.name = found.metadata.uid = f"p{index}"
    found.status.pod_ips = [PodIP(address or f"10.0.{index // 256}.{index % 256}")]
    return found


def present(name: str, endpoints: list[Endpoint], ports: list[EndpointPort]) -> EndpointSlice:
    found = EndpointSlice(address_type="IPv4", endpoints=endpoints, ports=ports)
    found.metadata.name = name
    return found


def test_a_slice_has_at_most_a_hundred_endpoints() -> None:
    pods = [pod(index) for index in range(250)]
    _, new = plan_slices(Service(), pods, {}, [])
    assert [len(each.endpoints) for each in new] == [100, 100, 50]
    slices = [present(f"s{i}", each.endpoints, each.ports) for i, each in enumerate(new)]
    changed, more = plan_slices(Service(), [*pods[50:], pod(300)], {}, slices)
    assert {name: len(each.endpoints) for name, each in changed.items()} == {
        "s0": 51,
        "s1": 100,
        "s2": 50,
    }
    assert not more


def test_each_ip_family_has_its_own_slices() -> None:
    found = Service(spec=ServiceSpec(ip_families=["IPv4", "IPv6"]))
    _, new = plan_slices(found, [pod(1), pod(2, "fd00::2")], {}, [])
    assert [(each.address_type, each.endpoints[0].addresses) for each in new] == [
        ("IPv4", ["10.0.0.1"]),
        ("IPv6", ["fd00::2"]),
    ]
