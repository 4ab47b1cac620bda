"""A cluster with ``bootstrap`` has the objects that kube-apiserver creates for itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from fakeapi import FakeCluster
from fakeapi.apiserver.endpoints import Request, Response
from tests.builders import manifest

NETWORKING = "/apis/networking.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
SERVICE = "/api/v1/namespaces/default/services/kubernetes"
SLICE = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    async with FakeCluster(bootstrap=True) as cluster:
        yield cluster


def ask(cluster: FakeCluster, method: str, path: str) -> Any:
    answer = cluster.api.handle(Request(method, path))
    assert isinstance(answer, Response)
    return orjson.loads(answer.body)


def get(cluster: FakeCluster, path: str) -> Any:
    return ask(cluster, "GET", path)


async def test_the_service_kubernetes_leads_to_the_server(cluster: FakeCluster) -> None:
    service = get(cluster, SERVICE)
    assert service["spec"]["clusterIP"] == "10.96.0.1"
    [port] = service["spec"]["ports"]
    assert cluster.url == f"http://127.0.0.1:{port['targetPort']}"
    endpoint_slice = get(cluster, SLICE)
    assert endpoint_slice["endpoints"][0]["addresses"] == ["127.0.0.1"]
    assert endpoint_slice["ports"][0]["port"] == port["targetPort"]
    [subset] = (get(cluster, SERVICE.replace("services", "endpoints")))["subsets"]
    assert subset["addresses"] == [{"ip": "127.0.0.1"}]


async def test_each_served_version_has_an_api_service(cluster: FakeCluster) -> None:
    services = (get(cluster, "/apis/apiregistration.k8s.io/v1/apiservices"))["items"]
    names = {item["metadata"]["name"] for item in services}
    groups = (get(cluster, "/apis"))["groups"]
    served = {f"{v['version']}.{g['name']}" for g in groups for v in g["versions"]}
    assert served | {"v1."} == names | {"v1.apiregistration.k8s.io"}


async def test_the_range_and_the_address_of_services_are_objects(cluster: FakeCluster) -> None:
    cidr = get(cluster, f"{NETWORKING}/servicecidrs/kubernetes")
    assert cidr["spec"]["cidrs"] == ["10.96.0.0/12"]
    address = get(cluster, f"{NETWORKING}/ipaddresses/10.96.0.1")
    assert address["spec"]["parentRef"]["name"] == "kubernetes"


async def test_the_default_roles_exist_without_rbac(cluster: FakeCluster) -> None:
    roles = {r["metadata"]["name"]: r for r in (get(cluster, f"{RBAC}/clusterroles"))["items"]}
    assert {"admin", "cluster-admin", "edit", "system:kube-scheduler", "view"} <= roles.keys()
    viewed = {name for rule in roles["view"]["rules"] for name in rule.get("resources", ())}
    assert {"pods", "deployments", "configmaps"} <= viewed
    assert "secrets" not in viewed
    reader = "namespaces/kube-system/roles/extension-apiserver-authentication-reader"
    assert (get(cluster, f"{RBAC}/{reader}"))["rules"]


async def test_administrators_may_what_editors_and_viewers_may(cluster: FakeCluster) -> None:
    roles = get(cluster, f"{RBAC}/clusterroles")["items"]
    rules = {role["metadata"]["name"]: role.get("rules") or [] for role in roles}
    assert all(rule in rules["edit"] for rule in rules["view"])
    assert all(rule in rules["admin"] for rule in rules["edit"])


async def test_an_object_of_the_server_returns_ten_seconds_after_its_deletion(
    cluster: FakeCluster,
) -> None:
    ask(cluster, "DELETE", SERVICE)
    assert get(cluster, SERVICE)["reason"] == "NotFound"
    await cluster.clock.advance(11)
    assert (get(cluster, SERVICE))["spec"]["clusterIP"] == "10.96.0.1"


async def test_the_objects_of_the_server_exist_after_a_reset(cluster: FakeCluster) -> None:
    cluster.load([manifest("Node", "a")])
    cluster.reset()
    assert (get(cluster, "/api/v1/nodes"))["items"] == []
    assert (get(cluster, SERVICE))["spec"]["clusterIP"] == "10.96.0.1"


async def test_restoring_an_object_writes_no_other() -> None:
    async with FakeCluster(bootstrap=True, rbac=True) as cluster:
        ask(cluster, "DELETE", SERVICE)
        roles = get(cluster, f"{RBAC}/clusterroles")
        await cluster.clock.advance(11)
        assert get(cluster, SERVICE)["kind"] == "Service"
        assert get(cluster, f"{RBAC}/clusterroles")["items"] == roles["items"]
