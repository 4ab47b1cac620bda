"""Pods that come and go: whose they are, what is written down, and when they are refused."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from extender.controllers.webhooks.registration import CREATE_POD
from extender.controllers.workloadspread.spread_cache import WORKLOAD_SPREADS
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.resources import PODS, REPLICA_SETS
from fakeapi import VirtualCluster
from fakeapi.testing.faults import fault
from tests.builders import manifest
from tests.builders.definitions import definition
from tests.builders.replicas import a_replica_set
from tests.builders.workloadspread import Document, clone_set_json, pod_of, spread_json
from tests.extender.controllers.webhooks.clusters import PODS as POD_PATH
from tests.extender.controllers.webhooks.clusters import in_process, put_into
from tests.extender.controllers.webhooks.stages import KRUISE, counts, pod, processes, stage
from tests.stage import Stage, decode

TWO = ({"name": "a", "maxReplicas": 1}, {"name": "b"})
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


async def subset(stage: Stage, name: str, **parts: Document) -> str | None:
    """Create a pod of the CloneSet web, and give its subset."""
    return (put_into(await pod(stage, name, **parts)) or {}).get("subset")


def owned(kind: str, name: str, version: str = "apps/v1", **fields: Any) -> Document:
    reference = {"apiVersion": version, "kind": kind, "name": name, "uid": name, "controller": True}
    return {"ownerReferences": [{**reference, **fields}]}


def refused(error: pytest.ExceptionInfo[ApiError]) -> tuple[int, str]:
    return error.value.status, error.value.message


async def test_the_first_subset_is_filled_first_and_counted_at_once() -> None:
    async with stage(*KRUISE, spread_json(*TWO)) as world:
        assert [await subset(world, f"web-{n}") for n in range(3)] == ["a", "b", "b"]
        assert await counts(world) == {"versionIgnored": {"a": 0, "b": -1}}


async def test_a_pod_that_goes_makes_room() -> None:
    async with stage(*KRUISE, spread_json(*TWO), pod_of("web-0", "a")) as world:
        await world.patch(WORKLOAD_SPREADS, "web", full_status())
        await world.passes()
        await world.delete(PODS, "web-0")
        assert await counts(world) == {"versionIgnored": {"a": 1, "b": -1}}
        assert await subset(world, "web-1") == "a"


def full_status() -> Document:
    subsets = [
        {"name": "a", "replicas": 1, "missingReplicas": 0},
        {"name": "b", "replicas": 0, "missingReplicas": -1},
    ]
    return {"status": {"versionedSubsetStatuses": {"versionIgnored": subsets}}}


@pytest.mark.parametrize(("options", "missing"), [({}, 1), ({"dryRun": ["All"]}, 0)])
async def test_a_pod_that_is_evicted_makes_room(options: Document, missing: int) -> None:
    async with stage(*KRUISE, spread_json(*TWO), pod_of("web-0", "a")) as world:
        await world.patch(WORKLOAD_SPREADS, "web", full_status())
        await world.passes()
        eviction: Document = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": "web-0"},
            "deleteOptions": options,
        }
        path = PODS.object("web-0", "default").subresource("eviction")
        await world.client.create(path, orjson.dumps(eviction), decode)
        assert await counts(world) == {"versionIgnored": {"a": missing, "b": -1}}


@pytest.mark.parametrize(
    "parts",
    [
        {"metadata": {"ownerReferences": []}},
        {"metadata": owned("CloneSet", "web", "apps.kruise.io/v1alpha1", controller=False)},
        {"metadata": owned("Sorcery", "web", "example.com/v1")},
        {"metadata": owned("CloneSet", "web", "apps.kruise.io/v1/alpha1")},
        {"metadata": owned("CloneSet", "other", "apps.kruise.io/v1alpha1")},
    ],
    ids=["no owner", "no controller", "an unknown kind", "no version", "another's"],
)
async def test_pods_that_no_workload_spread_concerns_pass(parts: Document) -> None:
    other = clone_set_json()
    other["metadata"] = {**other["metadata"], "name": "other", "uid": "other"}
    async with stage(*KRUISE, other, spread_json(*TWO)) as world:
        assert await subset(world, "web-1", **parts) is None
        assert await counts(world) == {}


async def test_a_dry_run_leaves_no_trace() -> None:
    async with in_process(*KRUISE, spread_json(*TWO)) as world:
        code, made = await world.ask("POST", f"{POD_PATH}?dryRun=All", pod_of("web-1"))
        assert (code, put_into(made), await world.status("web")) == (201, None, {})


async def test_owners_are_followed_up_to_the_target_and_versions_distinguished() -> None:
    sets = [
        {**a_replica_set(name=f"web-{hash_}"), "kind": "ReplicaSet", "apiVersion": "apps/v1"}
        for hash_ in ("old", "new")
    ]
    for each in sets:
        each["metadata"] = {**each["metadata"], **owned("Deployment", "web")}
    deployment = manifest("Deployment", "web", spec=sets[0]["spec"])
    spread = spread_json(*TWO, targetRef=DEPLOYMENT)
    async with stage(*KRUISE, spread, deployment, *sets) as world:
        found = {}
        for name in ("old", "new"):
            labels = {"labels": {"app": "web", "pod-template-hash": name}}
            of = {**owned("ReplicaSet", f"web-{name}"), **labels}
            found[name] = await subset(world, f"web-{name}-1", metadata=of)
        assert found == {"old": "a", "new": "a"}
        assert await counts(world) == {"old": {"a": 0, "b": -1}, "new": {"a": 0, "b": -1}}


async def test_shares_are_of_the_targets_replicas_as_they_are() -> None:
    spread = spread_json({"name": "a", "maxReplicas": "50%"}, {"name": "b"})
    async with stage(*KRUISE, spread, clone_set_json(3)) as world:
        assert await subset(world, "web-1") == "a"
        assert await counts(world) == {"versionIgnored": {"a": 1, "b": -1}}


async def test_kinds_of_the_configuration_are_followed_from_the_day_that_they_are_in_it() -> None:
    kind = definition("game.kruise.io/v1alpha1", "GameServerSet")
    reference = {"apiVersion": "game.kruise.io/v1alpha1", "kind": "GameServerSet", "name": "web"}
    spread = spread_json({"name": "a", "maxReplicas": "50%"}, {"name": "b"}, targetRef=reference)
    game: Document = {
        "apiVersion": reference["apiVersion"],
        "kind": reference["kind"],
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"size": 6},
    }
    listed = [{"Group": "game.kruise.io", "Kind": "GameServerSet", "replicasPath": "spec.size"}]
    configuration = manifest(
        "ConfigMap",
        "kruise-configuration",
        namespace="kruise-system",
        data={
            "WorkloadSpread_Watch_Custom_Workload_WhiteList": orjson.dumps(
                {"workloads": listed}
            ).decode()
        },
    )
    of = {"metadata": owned("GameServerSet", "web", "game.kruise.io/v1alpha1")}
    async with stage(*KRUISE, kind, spread, game) as world:
        assert await subset(world, "before", **of) is None
        world.load(configuration)
        await world.passes()
        assert await subset(world, "after", **of) == "a"
        assert await counts(world) == {"versionIgnored": {"a": 2, "b": -1}}


async def test_a_pod_whose_owner_is_missing_is_refused_and_its_owner_says_so() -> None:
    orphan = a_replica_set(replicas=1)
    orphan["metadata"] = {**orphan["metadata"], **owned("Deployment", "gone")}
    spread = spread_json(*TWO, targetRef=DEPLOYMENT)
    async with stage(*KRUISE, spread, orphan, run="replicaset") as world:
        await world.passes(5)
        told = [each for each in await world.told() if each[0] == "FailedCreate"]
        why = f'admission webhook "{CREATE_POD}" denied the request: Deployment "gone" not found'
        assert told[0][1:] == ("web", f"Error creating: {why}")


async def test_while_the_webhooks_are_down_the_owner_says_why_no_pod_comes() -> None:
    async with stage(*KRUISE, run="replicaset") as world:
        await world.cluster.control_plane["spreadwebhooks"].stop()
        await world.create(REPLICA_SETS, a_replica_set(replicas=1))
        await world.passes(5)
        told = [each for each in await world.told() if each[0] == "FailedCreate"]
        assert told[0][1] == "web"
        assert f'failed calling webhook "{CREATE_POD}"' in told[0][2]
        assert 'service "reprieve-webhooks" not found' in told[0][2]
        world.cluster.control_plane["spreadwebhooks"].start()
        await world.passes(60)
        assert len(await world.names(PODS)) == 1


async def test_a_patch_that_does_not_fit_refuses_the_pod_which_stays_counted() -> None:
    wrong = {"spec": {"containers": [{"image": "nameless"}]}}
    spread = spread_json({"name": "a", "maxReplicas": 2, "patch": wrong}, {"name": "b"})
    async with stage(*KRUISE, spread) as world:
        with pytest.raises(ApiError) as error:
            await pod(world, "web-1")
        assert refused(error)[0] == 500
        assert "merge key: name" in refused(error)[1]
        assert await counts(world) == {"versionIgnored": {"a": 1, "b": -1}}


async def test_an_invalid_workload_spread_affects_no_other_and_is_logged_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    broken = spread_json({"name": "a", "maxReplicas": 1.5}, name="broken")
    async with stage(*KRUISE, broken, spread_json(*TWO)) as world:
        assert [await subset(world, f"web-{n}") for n in range(2)] == ["a", "b"]
    said = [each for each in capsys.readouterr().out.splitlines() if "ignored" in each]
    assert len(said) == 1
    assert "default/broken" in said[0]


async def test_without_the_definition_pods_pass_unchanged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with stage() as world:
        for number in range(3):
            assert await subset(world, f"web-{number}") is None
        world.load(*KRUISE)
        await world.passes(5)
        await world.create(WORKLOAD_SPREADS, spread_json(*TWO))
        await world.passes()
        assert await subset(world, "web-4") == "a"
    assert "Traceback" not in capsys.readouterr().out


async def test_other_namespaces_are_left_alone() -> None:
    elsewhere = pod_of("web-1")
    elsewhere["metadata"]["namespace"] = "kube-system"
    async with stage(*KRUISE, spread_json(*TWO)) as world:
        made = await world.create(PODS, elsewhere)
        assert put_into(made) is None


async def test_while_workload_spreads_may_not_be_listed_pods_are_refused_with_that_reason() -> None:
    cluster = VirtualCluster(run="none")
    cluster.load([*KRUISE, spread_json(*TWO)])
    cluster.faults.plan(fault(403).on(("list", "watch"), "workloadspreads"))
    async with cluster, processes(cluster) as [process]:
        asking = asyncio.create_task(process.admit(pod_of("web-1")))
        await cluster.clock.advance(5)
        response = await asking
        assert response["status"] == {
            "code": 500,
            "message": "WorkloadSpreads have not been listed yet; try again",
        }
        cluster.faults.end()
        await cluster.clock.advance(60)
        assert (await process.admit(pod_of("web-1")))["patch"]


@pytest.mark.parametrize("document", [None, [], {"metadata": 1}, {"spec": {"nodeName": 1}}])
async def test_an_invalid_pod_is_reported(document: Any) -> None:
    cluster = VirtualCluster(run="none")
    cluster.load([*KRUISE, spread_json(*TWO)])
    async with cluster, processes(cluster) as [process]:
        response = await process.admit(document)
        assert (response["allowed"], response["status"]["code"]) == (False, 400)
        assert response["status"]["message"].startswith("Pod")


async def test_a_world_that_is_turned_back_is_seen_as_it_is() -> None:
    async with stage(*KRUISE, spread_json(*TWO)) as world:
        before = world.cluster.snapshot()
        assert await subset(world, "web-1") == "a"
        world.cluster.restore(before)
        await world.passes(5)
        assert await subset(world, "web-1") == "a"
        assert await subset(world, "web-2") == "b"
