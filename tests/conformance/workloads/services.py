"""Scenarios of the EndpointSlices of services."""

from __future__ import annotations

from typing import Any

from tests.builders import Document
from tests.conformance.clusters.watched_cluster import WatchedCluster
from tests.conformance.objects import NAMESPACE
from tests.conformance.operators.objects import in_namespace, status, workload
from tests.conformance.workloads.runs import Scenario, Settle

READY = "readyReplicas"

_PORTS = [
    {"name": "web", "port": 80, "targetPort": "http"},
    {"name": "admin", "port": 9000, "appProtocol": "example.com/admin"},
]


def service(name: str, **spec: Any) -> Document:
    """Build a service of the pods of the ReplicaSet."""
    metadata = {"labels": {"team": "a"}}
    own = {"selector": {"app": "web"}, "ports": _PORTS, **spec}
    return in_namespace("Service", name, NAMESPACE, metadata=metadata, spec=own)


def replica_set(replicas: int) -> Document:
    """Build a ReplicaSet whose pods have a named port."""
    document = workload("ReplicaSet", "web", NAMESPACE, replicas)
    document["spec"]["template"]["spec"]["containers"][0]["ports"] = [
        {"name": "http", "containerPort": 8080}
    ]
    return document


async def the_slices_of_a_service(world: WatchedCluster, settle: Settle) -> None:
    await world.create(service("shop"))
    await settle()
    await world.create(replica_set(2))
    await settle()
    await world.patch("Service", "shop", {"metadata": {"labels": {"team": None, "tier": "b"}}})
    await settle()
    await world.patch("ReplicaSet", "web", {"spec": {"replicas": 3}})
    await settle()
    await world.patch("ReplicaSet", "web", {"spec": {"replicas": 0}})
    await settle()


async def the_slices_of_many_pods(world: WatchedCluster, settle: Settle) -> None:
    await world.create(replica_set(120))
    await world.until(lambda: status(world, "ReplicaSet", "web", NAMESPACE).get(READY) == 120)
    await world.create(service("shop"))
    await settle()


async def the_slices_of_other_services(world: WatchedCluster, settle: Settle) -> None:
    await world.create(replica_set(2))
    await world.create(service("headless", clusterIP="None"))
    await world.create(service("silent", clusterIP="None", ports=None))
    await world.create(service("external", type="ExternalName", externalName="example.com"))
    await world.create(service("manual", selector=None))
    await settle()


_ZONE = {"metadata": {"labels": {"topology.kubernetes.io/zone": "a"}}}

SCENARIOS = (
    Scenario(the_slices_of_a_service),
    Scenario(the_slices_of_many_pods),
    Scenario(the_slices_of_other_services, nodes=tuple((f"node-{n}", _ZONE) for n in range(3))),
)
