"""Discovery of served resources, also if a group is unavailable."""

from __future__ import annotations

import pytest

from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import Client
from extender.kube.rest.discovery import discover, discover_group
from extender.kube.rest.resources import PODS
from extender.kube.rest.transport import Response
from fakeapi import VirtualCluster
from tests.extender.kube.conftest import ScriptedApi, SteppedClock, a_refusal


async def test_every_resource_is_found_once_in_the_preferred_version(
    virtual_cluster: VirtualCluster,
) -> None:
    found = await discover(virtual_cluster.client)
    names = [str(each.resource) for each in found.resources]
    assert len(names) == len(set(names))
    pods = found.of_kind("v1", "Pod")
    assert pods is not None
    assert (pods.resource, pods.api_version) == (PODS, "v1")
    assert {"status", "eviction", "binding"} <= pods.subresources
    assert found.failures == {}


async def test_a_kind_is_found_in_the_version_that_its_group_prefers(
    virtual_cluster: VirtualCluster,
) -> None:
    found = await discover(virtual_cluster.client)
    scaler = found.of_kind("autoscaling/v1", "HorizontalPodAutoscaler")
    assert scaler is not None
    assert scaler.api_version == "autoscaling/v2"
    assert found.of_kind("apps/v1", "Pod") is None


async def test_deletable_resources_can_be_listed_watched_and_deleted(
    virtual_cluster: VirtualCluster,
) -> None:
    deletable = {str(r.resource) for r in (await discover(virtual_cluster.client)).deletable()}
    assert "pods" in deletable
    assert not deletable & {"bindings", "subjectaccessreviews.authorization.k8s.io"}


async def test_an_unavailable_group_does_not_hide_the_others() -> None:
    core = b'{"resources":[{"name":"pods","kind":"Pod","namespaced":true,"verbs":["list"]}]}'
    down = b'{"groups":[{"preferredVersion":{"groupVersion":"down.io/v1"}}]}'
    api = ScriptedApi(
        SteppedClock(),
        Response(200, b'{"versions":["v1"]}'),
        Response(200, down),
        Response(200, core),
        a_refusal(503, "ServiceUnavailable"),
    )
    found = await discover(Client(api))
    assert [str(each.resource) for each in found.resources] == ["pods"]
    assert list(found.failures) == ["down.io/v1"]
    assert "it is ServiceUnavailable" in found.failures["down.io/v1"]


async def test_each_kind_of_a_group_is_found_in_the_first_version_that_has_it(
    virtual_cluster: VirtualCluster,
) -> None:
    scaling = {each.kind: each for each in await discover_group(virtual_cluster.client, "apps")}
    assert str(scaling["Deployment"].resource) == "deployments.apps"
    assert "scale" in scaling["Deployment"].subresources
    core = {each.kind: each.resource for each in await discover_group(virtual_cluster.client, "")}
    assert core["Pod"] == PODS
    assert await discover_group(virtual_cluster.client, "nowhere.io") == ()


async def test_a_kind_may_be_in_an_older_version_only() -> None:
    def listed(*kinds: str) -> Response:
        resources = ",".join(
            f'{{"name":"{kind.lower()}s","kind":"{kind}","namespaced":true}}' for kind in kinds
        )
        return Response(200, f'{{"resources":[{resources}]}}'.encode())

    versions = b'{"versions":[{"groupVersion":"a.io/v2"},{"groupVersion":"a.io/v1"}]}'
    api = ScriptedApi(SteppedClock(), Response(200, versions), listed("New"), listed("New", "Old"))
    found = {each.kind: each.api_version for each in await discover_group(Client(api), "a.io")}
    assert found == {"New": "a.io/v2", "Old": "a.io/v1"}


async def test_an_unavailable_group_is_reported() -> None:
    api = ScriptedApi(SteppedClock(), a_refusal(503, "ServiceUnavailable"))
    with pytest.raises(ApiError, match="ServiceUnavailable"):
        await discover_group(Client(api), "down.io")
