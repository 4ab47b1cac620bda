"""The shipped recording: played alone, and with the controllers attached that made it."""

from __future__ import annotations

from pathlib import Path

import pytest

from extender.recording.files import read_recording
from fakeapi import VirtualCluster
from fakeapi.replay.report import Report
from tests.recorded.rollout import make

ROLLOUT = Path(__file__).parents[2] / "recorded" / "rollout.jsonl.gz"
BY = {"replicaset": 2, "somebody": 1, "namespaces": 2, "gc": 4}


async def played(path: Path, run: str) -> Report:
    recording = read_recording(str(path))
    async with VirtualCluster(run=run, start_ns=recording.header.start_ns) as cluster:
        return await cluster.replay(recording)


@pytest.mark.parametrize(
    ("run", "left"),
    [
        ("none", {}),
        ("gc", {"gc": 4}),
        ("replicaset", {"replicaset": 11}),
        ("gc,namespaces,replicaset", {"gc": 4, "namespaces": 4, "replicaset": 11}),
    ],
)
async def test_the_same_pods_go_by_the_same_hands(run: str, left: dict[str, int]) -> None:
    report = await played(ROLLOUT, run)
    assert report.same
    assert report.left == left
    assert report.deletions.recorded == report.deletions.replayed == BY


async def test_with_kubelets_other_pods_may_be_deleted_but_as_many_remain() -> None:
    report = await played(ROLLOUT, "gc,namespaces,replicaset,kubelet")
    assert {name: (each.recorded, each.replayed) for name, each in report.resources.items()} == {
        "namespaces": (4, 4),
        "nodes": (3, 3),
        "priorityclasses.scheduling.k8s.io": (2, 2),
    }


async def test_it_can_be_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    await make(path)
    recording = read_recording(str(path))
    assert not recording.truncated_at
    assert (await played(path, "gc,namespaces,replicaset")).same
