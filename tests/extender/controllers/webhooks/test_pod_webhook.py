"""Pods that are created and deleted: their subset, the status, and when they are refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from extender.controllers.process.controller_manager import SPREAD_WEBHOOKS
from extender.controllers.webhooks.registration import CREATE_POD
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.resources import PODS, REPLICA_SETS
from extender.kube.rest.transport import Request
from fakeapi.testing.faults import fault
from tests.builders import encoded, manifest
from tests.builders.definitions import definition
from tests.builders.replicas import a_replica_set, reference
from tests.builders.workloadspread import (
    Document,
    allowed_kinds,
    clone_set_json,
    pod_of,
    spread_json,
    target_json,
)
from tests.extender.controllers.webhooks.stages import (
    KRUISE,
    WebhookStage,
    injection,
    process_stage,
    webhook_stage,
)
from tests.stage import SPREADS

TWO = ({"name": "a", "maxReplicas": 1}, {"name": "b"})


def owned(kind: str, name: str, version: str = "apps/v1", **fields: Any) -> Document:
    owner = reference(kind, name, name, apiVersion=version, **fields)
    return {"ownerReferences": [owner]}


async def test_the_first_subset_is_filled_first_and_counted_at_once() -> None:
    async with webhook_stage(spread_json(*TWO)) as stage:
        assert [await stage.subset(f"web-{n}") for n in range(3)] == ["a", "b", "b"]
        assert await stage.missing() == {"versionIgnored": {"a": 0, "b": -1}}


@asynccontextmanager
async def full_stage() -> AsyncIterator[WebhookStage]:
    """Open a stage whose first subset is full."""
    subsets = [
        {"name": "a", "replicas": 1, "missingReplicas": 0},
        {"name": "b", "replicas": 0, "missingReplicas": -1},
    ]
    status = {"versionedSubsetStatuses": {"versionIgnored": subsets}}
    async with webhook_stage(spread_json(*TWO), pod_of("web-0", "a")) as stage:
        await stage.patch(SPREADS, "web", {"status": status})
        await stage.passes()
        yield stage


async def test_a_deleted_pod_makes_room() -> None:
    async with full_stage() as stage:
        await stage.delete(PODS, "web-0")
        assert await stage.missing() == {"versionIgnored": {"a": 1, "b": -1}}
        assert await stage.subset("web-1") == "a"


@pytest.mark.parametrize(("options", "missing"), [({}, 1), ({"dryRun": ["All"]}, 0)])
async def test_an_evicted_pod_makes_room_except_in_a_dry_run(
    options: Document, missing: int
) -> None:
    async with full_stage() as stage:
        await stage.evict("web-0", deleteOptions=options)
        assert await stage.missing() == {"versionIgnored": {"a": missing, "b": -1}}


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
async def test_pods_without_a_workload_spread_pass(parts: Document) -> None:
    other = clone_set_json()
    other["metadata"] = {**other["metadata"], "name": "other", "uid": "other"}
    async with webhook_stage(other, spread_json(*TWO)) as stage:
        assert await stage.subset("web-1", **parts) is None
        assert await stage.missing() == {}


async def test_a_dry_run_changes_nothing() -> None:
    async with webhook_stage(spread_json(*TWO)) as stage:
        path, query = PODS.collection("default").path, (("dryRun", "All"),)
        request = Request("POST", path, query, encoded(pod_of("web-1")))
        response = await stage.cluster.local_transport().request(request)
        assert (response.status, injection(orjson.loads(response.body))) == (201, None)
        assert await stage.status_of(SPREADS) == {}


async def test_owners_are_followed_up_to_the_target_and_versions_distinguished() -> None:
    sets = [a_replica_set(f"web-{version}", deployment="web") for version in ("old", "new")]
    deployment = manifest("Deployment", "web", spec=sets[0]["spec"])
    spread = spread_json(*TWO, targetRef=target_json("Deployment"))
    async with webhook_stage(spread, deployment, *sets) as stage:
        found = {}
        for version in ("old", "new"):
            labels = {"app": "web", "pod-template-hash": version}
            metadata = {**owned("ReplicaSet", f"web-{version}"), "labels": labels}
            found[version] = await stage.subset(f"web-{version}-1", metadata=metadata)
        assert found == {"old": "a", "new": "a"}
        assert await stage.missing() == {"old": {"a": 0, "b": -1}, "new": {"a": 0, "b": -1}}


async def test_percentages_are_of_the_target_s_replicas() -> None:
    spread = spread_json({"name": "a", "maxReplicas": "50%"}, {"name": "b"})
    async with webhook_stage(spread, clone_set_json(3)) as stage:
        assert await stage.subset("web-1") == "a"
        assert await stage.missing() == {"versionIgnored": {"a": 1, "b": -1}}


async def test_kinds_are_followed_once_the_configuration_lists_them() -> None:
    kind, version = "GameServerSet", "game.kruise.io/v1alpha1"
    subsets = ({"name": "a", "maxReplicas": "50%"}, {"name": "b"})
    spread = spread_json(*subsets, targetRef=target_json(kind, version))
    game = manifest(kind, "web", version=version, spec={"size": 6})
    listed = [{"Group": "game.kruise.io", "Kind": kind, "replicasPath": "spec.size"}]
    metadata = owned(kind, "web", version)
    async with webhook_stage(definition(version, kind), spread, game) as stage:
        assert await stage.subset("before", metadata=metadata) is None
        stage.load(allowed_kinds(*listed))
        await stage.passes()
        assert await stage.subset("after", metadata=metadata) == "a"
        assert await stage.missing() == {"versionIgnored": {"a": 2, "b": -1}}


async def failed_creates(stage: WebhookStage) -> list[tuple[str, str]]:
    """Return object and message of the Events about pods that cannot be created."""
    return [each[1:] for each in await stage.list_events() if each[0] == "FailedCreate"]


async def test_a_pod_with_a_missing_owner_is_refused_and_its_controller_reports_it() -> None:
    orphan = a_replica_set(replicas=1, deployment="gone")
    spread = spread_json(*TWO, targetRef=target_json("Deployment"))
    async with webhook_stage(spread, orphan, run="replicaset") as stage:
        await stage.passes(5)
        refusal = (
            f'admission webhook "{CREATE_POD}" denied the request: Deployment "gone" not found'
        )
        assert (await failed_creates(stage))[0] == ("web", f"Error creating: {refusal}")


async def test_stopped_webhooks_are_reported_by_the_controller_that_creates_pods() -> None:
    async with webhook_stage(run="replicaset") as stage:
        webhooks = stage.cluster.control_plane[SPREAD_WEBHOOKS]
        await webhooks.stop()
        await stage.create(REPLICA_SETS, a_replica_set(replicas=1))
        await stage.passes(5)
        name, message = (await failed_creates(stage))[0]
        assert name == "web"
        assert f'failed calling webhook "{CREATE_POD}"' in message
        assert 'service "reprieve-webhooks" not found' in message
        webhooks.start()
        await stage.passes(60)
        assert len(await stage.names(PODS)) == 1


async def test_an_invalid_patch_refuses_the_pod_which_stays_counted() -> None:
    wrong = {"spec": {"containers": [{"image": "nameless"}]}}
    spread = spread_json({"name": "a", "maxReplicas": 2, "patch": wrong}, {"name": "b"})
    async with webhook_stage(spread) as stage:
        with pytest.raises(ApiError, match="merge key: name") as error:
            await stage.subset("web-1")
        assert error.value.status == 500
        assert await stage.missing() == {"versionIgnored": {"a": 1, "b": -1}}


async def test_an_invalid_workload_spread_affects_no_other_and_is_logged_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    broken = spread_json({"name": "a", "maxReplicas": 1.5}, name="broken")
    async with webhook_stage(broken, spread_json(*TWO)) as stage:
        assert [await stage.subset(f"web-{n}") for n in range(2)] == ["a", "b"]
    [line] = [each for each in capsys.readouterr().out.splitlines() if "ignored" in each]
    assert "default/broken" in line


async def test_without_the_definition_pods_pass_unchanged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with webhook_stage(definitions=()) as stage:
        for number in range(3):
            assert await stage.subset(f"web-{number}") is None
        stage.load(*KRUISE)
        await stage.passes(5)
        await stage.create(SPREADS, spread_json(*TWO))
        await stage.passes()
        assert await stage.subset("web-4") == "a"
    assert "Traceback" not in capsys.readouterr().out


async def test_pods_of_system_namespaces_pass() -> None:
    elsewhere = pod_of("web-1", metadata={"name": "web-1", "namespace": "kube-system"})
    async with webhook_stage(spread_json(*TWO)) as stage:
        assert injection(await stage.create(PODS, elsewhere)) is None


async def test_pods_are_refused_while_workload_spreads_cannot_be_listed() -> None:
    forbidden = fault(403).on(("list", "watch"), "workloadspreads")
    async with process_stage(spread_json(*TWO), faults=(forbidden,)) as stage:
        response = stage.admit("web-1")
        await stage.passes(5)
        assert (await response)["status"] == {
            "code": 500,
            "message": "WorkloadSpreads have not been listed yet; try again",
        }
        stage.cluster.faults.end()
        await stage.passes(60)
        assert (await stage.admit("web-1"))["patch"]


@pytest.mark.parametrize("document", [None, [], {"metadata": 1}, {"spec": {"nodeName": 1}}])
async def test_an_invalid_pod_is_reported(document: Any) -> None:
    async with process_stage(spread_json(*TWO)) as stage:
        response = await stage.processes[0].admit(document)
        assert (response["allowed"], response["status"]["code"]) == (False, 400)
        assert response["status"]["message"].startswith("Pod")


async def test_a_restored_cluster_is_read_again() -> None:
    async with webhook_stage(spread_json(*TWO)) as stage:
        before = stage.cluster.snapshot()
        assert await stage.subset("web-1") == "a"
        stage.cluster.restore(before)
        await stage.passes(5)
        assert await stage.subset("web-1") == "a"
        assert await stage.subset("web-2") == "b"
