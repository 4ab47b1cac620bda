"""The commands about WorkloadSpreads, in real processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders.workloadspread import clone_set_json, pod_of, spread_json
from tests.commands import reprieve, reprieve_json, written

SPREAD = spread_json({"name": "a", "maxReplicas": 1}, {"name": "b"})


async def test_explain_prints_one_json_document(tmp_path: Path) -> None:
    cluster = written(tmp_path, "cluster.json", SPREAD, clone_set_json(), pod_of("web-1", "a"))
    pod = written(tmp_path, "pod.json", pod_of("web-1", "a"))
    options = ("--workloadspread", "default/web", "--now", "2026-01-01T12:00:00Z")
    review = ("--pod", pod, "--operation", "evict")
    document = await reprieve_json("explain", "spread", "--cluster", cluster, *options, *review)
    assert document["subsets"] == {"web-1": "a"}
    assert document["deletionCosts"] == {"web-1": 200}
    assert document["admitted"]["subset"] == "a"
    (own, _) = document["admitted"]["status"]["versionedSubsetStatuses"]["versionIgnored"]
    assert own["deletingPods"] == {"web-1": "2026-01-01T12:00:00Z"}


@pytest.mark.slow
async def test_versions_and_quirks_are_options(tmp_path: Path) -> None:
    hashed = pod_of("web-1", "a", metadata={"labels": {"controller-revision-hash": "web-v1"}})
    odd = spread_json({"name": "a", "maxReplicas": "1"}, {"name": "b"})
    cluster = written(tmp_path, "cluster.json", odd, clone_set_json(), hashed)
    command = ("explain", "spread", "--cluster", cluster, "--workloadspread", "default/web")

    async def status(*options: str) -> Any:
        document = await reprieve_json(*command, *options)
        return document["status"]

    plain, upstream = await status(), await status("--quirks", "upstream")
    apart = await status("--versioned-kinds", "CloneSet")
    assert list(plain["versionedSubsetStatuses"]) == ["versionIgnored"]
    assert list(apart["versionedSubsetStatuses"]) == ["v1"]
    assert "subsetStatuses" in plain
    assert "subsetStatuses" not in upstream


@pytest.mark.slow
async def test_validate_reports_errors(tmp_path: Path) -> None:
    template = {"spec": {"containers": [{"name": "main", "image": "web:1"}]}}
    patched = {"name": "a", "patch": {"spec": {"containers": [{"name": "side"}]}}}
    path = written(tmp_path, "spread.json", spread_json(patched))
    cluster = written(tmp_path, "cluster.json", clone_set_json(template=template))
    found = await reprieve_json("validate", "workloadspread", path, "--cluster", cluster, code=1)
    error = {"field": "spec.subsets[0].patch.containers[0].image", "message": ""}
    assert found == {"valid": False, "errors": [error]}
    done = await reprieve("validate", "workloadspread", path)
    assert (done.code, done.out) == (0, "default/web is valid\n")
