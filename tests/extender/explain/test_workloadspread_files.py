"""The objects that WorkloadSpreads refer to, read from files."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from extender.explain.cluster_objects import read_objects
from extender.explain.validate_workloadspread import load_spread
from extender.explain.workloadspread_files import WorkloadSpreadFiles
from extender.kube.decoders.manifests import ManifestError
from policies.workloadspread.model import SpreadPod
from policies.workloadspread.object_references import ObjectKey
from tests.builders import manifest, node_json, owner
from tests.builders.workloadspread import clone_set_json, files, pod_of, spread_json
from tests.commands import written

WEB_DEPLOYMENT = owner("web", "Deployment", "apps/v1", controller=True)
REPLICA_SET = manifest(
    "ReplicaSet", "web-h1", metadata={"uid": "h1", "ownerReferences": [WEB_DEPLOYMENT]}
)
DEPLOYMENT = manifest("Deployment", "web")
WHITELIST = manifest(
    "ConfigMap",
    "kruise-configuration",
    namespace="kruise-system",
    data={
        "WorkloadSpread_Watch_Custom_Workload_WhiteList": (
            '{"workloads": [{"Group": "game.io", "Kind": "Game"}]}'
        )
    },
)


def test_the_workload_of_a_target() -> None:
    found = files(
        spread_json({"name": "a"}),
        clone_set_json(7),
        REPLICA_SET,
        {**REPLICA_SET, "metadata": {"name": "x", "namespace": "other"}},
        pod_of("web-1"),
        pod_of("web-2", metadata={"namespace": "other"}),
        WHITELIST,
    )
    target = found.target(found.spread("default/web").spread)
    assert target.workload is not None
    assert target.workload.replicas == 7
    assert [each.identity.name for each in target.replica_sets] == ["web-h1"]
    assert [each.name for each in target.pods] == ["web-1"]
    assert target.allowed_kinds.targets("game.io", "Game")


def test_a_target_is_identified_by_its_group() -> None:
    other = {**clone_set_json(), "apiVersion": "apps/v1"}
    found = files(spread_json({"name": "a"}), other)
    assert found.workload_of(found.spread("default/web").spread) is None


def test_owners_are_followed_upwards() -> None:
    pod = SpreadPod("default", "x", controller=None)
    assert not files(REPLICA_SET, DEPLOYMENT).owners(pod).found
    hashed = owner("web-h1", "ReplicaSet", "apps/v1", uid="h1", controller=True)
    owned_pod = pod_of("web-1", metadata={"ownerReferences": [hashed]})
    from_hash = files(REPLICA_SET, DEPLOYMENT, owned_pod, spread_json({"name": "a"}))
    (owned,) = from_hash.target(from_hash.spread("default/web").spread).pods
    assert set(from_hash.owners(owned).found) == {
        ObjectKey("apps", "ReplicaSet", "web-h1"),
        ObjectKey("apps", "Deployment", "web"),
    }


def test_files_are_read_together(tmp_path: Path) -> None:
    documents = {"spread.json": spread_json({"name": "a"}), "node.json": node_json("node-1")}
    found = WorkloadSpreadFiles(
        read_objects([written(tmp_path, *each) for each in documents.items()])
    )
    assert set(found.spreads) == {"default/web"}
    assert set(found.grouping_context(found.spread("default/web")).nodes) == {"node-1"}


def test_an_unreadable_object_is_left_out_with_one_warning() -> None:
    broken = spread_json(name="broken", subsets=5)
    with capture_logs() as logs:
        found = files(spread_json({"name": "a"}), broken)
        assert [each.spread.name for each in found.spreads_of("default")] == ["web"]
    assert [log["key"] for log in logs] == ["default/broken"]


@pytest.mark.parametrize("count", [0, 2])
def test_a_file_to_validate_holds_one(tmp_path: Path, count: int) -> None:
    path = written(tmp_path, "ws.json", clone_set_json(), *[spread_json()] * count)
    with pytest.raises(ManifestError, match=f"holds {count} WorkloadSpreads; expected exactly one"):
        load_spread(path)
