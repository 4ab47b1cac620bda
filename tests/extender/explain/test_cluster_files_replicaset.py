"""A ReplicaSet and its pods from files: which pods count, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from extender.explain.cluster_files import ReplicaFileError, ReplicaSetPods, load_replica_set_pods
from extender.kube.decoders.manifests import ManifestError
from tests.builders import encoded, node_json
from tests.builders.replicas import member_json, names, replica_set_json

BROKEN_SELECTOR = {"selector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}


def written(tmp_path: Path, name: str, *documents: Any) -> str:
    path = tmp_path / name
    path.write_bytes(b"\n".join(map(encoded, documents)))
    return str(path)


def loaded(
    tmp_path: Path, *documents: Any, key: str = "default/web", count: int = 0
) -> ReplicaSetPods:
    return load_replica_set_pods([written(tmp_path, "cluster.json", *documents)], key, count)


def test_files_are_read_together(tmp_path: Path) -> None:
    sets = written(
        tmp_path,
        "sets",
        replica_set_json("web", owner="d"),
        replica_set_json("old", owner="d", match={"app": "old"}),
    )
    old = member_json("c", owner="rs-old", labels={"app": "old"})
    pods = written(tmp_path, "pods", {"kind": "PodList", "items": [member_json("a"), old]})
    more = written(tmp_path, "more", node_json(), member_json("b", on="node-2"))
    replicas = load_replica_set_pods([sets, pods, more], "default/web", 2)
    assert names(replicas.active) == ["a", "b"]
    assert replicas.crowding == {"node-1": 2, "node-2": 1}


def test_of_two_objects_with_one_name_the_later_counts(tmp_path: Path) -> None:
    replicas = loaded(
        tmp_path, replica_set_json(), member_json("a"), member_json("a", on="node-2", uid="new")
    )
    assert [(each.node, each.uid) for each in replicas.active] == [("node-2", "new")]


def test_one_broken_pod_is_set_aside_with_one_warning(tmp_path: Path) -> None:
    broken = member_json("broken", status={"containerStatuses": 5})
    with capture_logs() as logs:
        replicas = loaded(tmp_path, replica_set_json(), broken, member_json("a"))
    assert names(replicas.active) == ["a"]
    assert [log["key"] for log in logs] == ["default/broken"]


def test_a_sibling_with_a_broken_selector_selects_nothing(tmp_path: Path) -> None:
    sibling = {**replica_set_json("old", owner="d"), "spec": BROKEN_SELECTOR}
    with capture_logs() as logs:
        replicas = loaded(tmp_path, replica_set_json(owner="d"), sibling, member_json("a"))
    assert replicas.crowding == {"node-1": 1}
    assert [log["key"] for log in logs] == ["default/old"]


@pytest.mark.parametrize("key", ["default/web", "web"])
def test_a_broken_replica_set_is_refused(tmp_path: Path, key: str) -> None:
    broken = {**replica_set_json(), "spec": BROKEN_SELECTOR}
    if key == "web":
        del broken["metadata"]["namespace"]
    with pytest.raises(ReplicaFileError) as raised:
        loaded(tmp_path, member_json("a"), broken)
    assert str(raised.value) == (
        f"{tmp_path}/cluster.json[1]: ReplicaSet {key}: spec.selector: "
        "'Like' is not a valid label selector operator"
    )


@pytest.mark.parametrize("key", ["default/nope", "other/web"])
def test_a_replica_set_that_is_not_there_is_named(tmp_path: Path, key: str) -> None:
    with pytest.raises(ReplicaFileError) as raised:
        loaded(tmp_path, replica_set_json(), key=key)
    place = f"--cluster {tmp_path}/cluster.json"
    assert str(raised.value) == f"--replicaset: no ReplicaSet '{key}' in {place}"


def test_more_than_there_are_cannot_go(tmp_path: Path) -> None:
    documents = (replica_set_json(), member_json("a"), member_json("gone", phase="Failed"))
    assert names(loaded(tmp_path, *documents, count=1).active) == ["a"]
    with pytest.raises(ReplicaFileError) as raised:
        loaded(tmp_path, *documents, count=2)
    assert str(raised.value) == (
        "--delete: 2; expected at most 1, as many active pods as ReplicaSet default/web has "
        f"in --cluster {tmp_path}/cluster.json"
    )


def test_a_file_that_cannot_be_read_is_named() -> None:
    with pytest.raises(ManifestError, match=r"none\.json: cannot be read"):
        load_replica_set_pods(["none.json"], "default/web", 0)
