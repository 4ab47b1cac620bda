"""Kinds that a server lacks, forbids, or serves in an older version only."""

from __future__ import annotations

import random
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from extender.cluster.optional_kinds import OptionalKindReflector
from extender.config.component_config import Config
from extender.kube.rest.clock import SystemClock
from extender.kube.rest.resources import (
    COMPOSITE_POD_GROUPS,
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    PERSISTENT_VOLUMES,
    POD_GROUPS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from extender.kube.rest.transport import Request, Response, Stream, Transport
from extender.server.process import run_server
from fakeapi.testing.fake_cluster import FakeCluster
from tests.builders import Document, manifest
from tests.extender.kube.conftest import Reply, a_list, a_refusal, a_watch, added, an_error
from tests.extender.kube.informer_scripts import A1, ScriptRun, play
from tests.extender.secure_serving.raw_clients import wait_until

NOT_FOUND, FORBIDDEN = a_refusal(404, "NotFound"), a_refusal(403, "Forbidden")
FORBIDDEN_VOLUMES = (
    "v1 Thing rejected by the server (403 Forbidden; grant list and watch on persistentvolumes)"
)


async def followed(resource: Resource, *script: Reply) -> ScriptRun:
    """Follow a kind by a script."""

    def build(context: Any, _resource: Any, decode: Any, store: Any, _selection: Any) -> Any:
        return OptionalKindReflector(context, resource, "Thing", decode, store)

    return await play(*script, kind=build)


def paths(run: ScriptRun) -> list[str]:
    return [each.request.path for each in run.api.requests]


@pytest.mark.parametrize(
    ("resource", "versions"),
    [
        (RESOURCE_CLAIMS, ["v1", "v1beta2", "v1beta1"]),
        (RESOURCE_SLICES, ["v1", "v1beta2", "v1beta1"]),
        (DEVICE_CLASSES, ["v1", "v1beta2", "v1beta1"]),
        (DEVICE_TAINT_RULES, ["v1", "v1beta2", "v1alpha3"]),
        (POD_GROUPS, ["v1", "v1beta1", "v1alpha3", "v1alpha2"]),
        (COMPOSITE_POD_GROUPS, ["v1", "v1beta1", "v1alpha3", "v1alpha2"]),
    ],
    ids=lambda value: str(value) if isinstance(value, Resource) else "",
)
async def test_the_first_version_that_is_served_is_followed(
    resource: Resource, versions: list[str]
) -> None:
    for older in range(len(versions)):
        refusals = [NOT_FOUND] * older
        run = await followed(resource, *refusals, a_list(2, A1), a_watch(added("b", 3)))
        assert run.store.changes == ["=a1", "+b3"]
        assert run.pauses[:older] == [0.0] * older
        assert run.informer.refusal == ""
        asked = [*versions[: older + 1], versions[older]]
        assert paths(run)[: older + 2] == [
            f"/apis/{resource.group}/{version}/{resource.plural}" for version in asked
        ]


@pytest.mark.parametrize(
    ("resource", "script", "refusal"),
    [
        (
            RESOURCE_CLAIMS,
            [NOT_FOUND] * 3,
            "resource.k8s.io/v1, v1beta2, v1beta1 Thing rejected by the server (404 NotFound)",
        ),
        (
            DEVICE_TAINT_RULES,
            [FORBIDDEN],
            (
                "resource.k8s.io/v1, v1beta2, v1alpha3 Thing rejected by the server "
                "(403 Forbidden; grant list and watch on devicetaintrules.resource.k8s.io)"
            ),
        ),
        (PERSISTENT_VOLUMES, [FORBIDDEN], FORBIDDEN_VOLUMES),
    ],
)
async def test_a_kind_that_is_not_served_or_permitted_is_named(
    resource: Resource, script: list[Reply], refusal: str
) -> None:
    run = await followed(resource, *script)
    await run.informer.wait_settled()
    assert not run.informer.synced
    assert run.informer.refusal == refusal


async def test_the_refusal_is_kept_while_the_server_fails() -> None:
    run = await followed(PERSISTENT_VOLUMES, FORBIDDEN, a_refusal(503, "ServiceUnavailable"))
    assert run.informer.refusal == FORBIDDEN_VOLUMES


@pytest.mark.parametrize(
    "refusal",
    [FORBIDDEN, a_watch(an_error(404, "NotFound"))],
    ids=["no longer permitted", "no longer served"],
)
async def test_the_objects_of_a_kind_that_becomes_unavailable_are_forgotten(
    refusal: Reply,
) -> None:
    run = await followed(PERSISTENT_VOLUMES, a_list(2, A1), refusal, FORBIDDEN)
    assert run.store.changes == ["=a1", "unlisted"]
    assert (run.informer.settled, run.informer.synced) == (True, False)
    again = await followed(PERSISTENT_VOLUMES, a_list(2, A1), refusal, a_list(3, A1))
    assert again.store.changes == ["=a1", "unlisted", "=a1"]
    assert (again.informer.synced, again.informer.refusal) == (True, "")


@dataclass(frozen=True)
class OlderServer:
    """A transport to a server that has resource.k8s.io in version v1beta1 only."""

    inner: Transport

    async def request(self, request: Request) -> Response:
        if request.path.startswith(("/apis/resource.k8s.io/v1/", "/apis/resource.k8s.io/v1beta2/")):
            return a_refusal(404, "NotFound")
        return await self.inner.request(_of_v1(request))

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        return self.inner.stream(_of_v1(request))

    async def close(self) -> None:
        await self.inner.close()


def _of_v1(request: Request) -> Request:
    return replace(request, path=request.path.replace("/v1beta1/", "/v1/"))


async def test_devices_are_read_from_a_server_with_an_older_version() -> None:
    def slice_json(name: str) -> Document:
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "gpu.example.com", "nodeName": name, "pool": pool, "devices": []}
        return manifest("ResourceSlice", name, version="resource.k8s.io/v1", spec=spec)

    config = Config(port=0, upstream="1.32", feature_gates={"DynamicResourceAllocation": True})
    async with FakeCluster() as cluster:
        cluster.load([slice_json("node-1")])
        transport = OlderServer(cluster.local_transport())
        async with run_server(config, transport, SystemClock(), random.Random(0)) as extender:
            await extender.wait_synced()
            storage = extender.service.cluster.storage
            assert set(storage.slices.by_key) == {"node-1"}
            cluster.load([slice_json("node-2")])
            await wait_until(lambda: set(storage.slices.by_key) == {"node-1", "node-2"})
            states = extender.service.informers
            assert all(states[each].synced for each in ("resourceclaims", "deviceclasses"))
