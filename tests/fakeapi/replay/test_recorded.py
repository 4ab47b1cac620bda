"""The shipped recording, replayed alone and with its controllers attached."""

from __future__ import annotations

from pathlib import Path

import pytest

from extender.recording.files import read_recording
from tests.fakeapi.replay.replays import replayed
from tests.recorded.rollout import make

ROLLOUT = read_recording(str(Path(__file__).parents[2] / "recorded" / "rollout.jsonl.gz"))
CAUSES = {"replicaset": 2, "somebody": 1, "namespaces": 2, "gc": 4}


@pytest.mark.parametrize(
    ("run", "left"),
    [
        ("none", {}),
        ("gc", {"gc": 4}),
        ("replicaset", {"replicaset": 11}),
        ("gc,namespaces,replicaset", {"gc": 4, "namespaces": 4, "replicaset": 11}),
    ],
)
async def test_the_same_components_delete_the_same_pods(run: str, left: dict[str, int]) -> None:
    report = await replayed(ROLLOUT, run, seed=0)
    assert report.same
    assert report.left == left
    assert report.deletions.recorded == report.deletions.replayed == CAUSES


async def test_with_kubelets_other_pods_may_be_deleted_but_as_many_remain() -> None:
    report = await replayed(ROLLOUT, "gc,namespaces,replicaset,kubelet", seed=0)
    assert {name: (each.recorded, each.replayed) for name, each in report.resources.items()} == {
        "namespaces": (4, 4),
        "nodes": (3, 3),
        "priorityclasses.scheduling.k8s.io": (2, 2),
    }


async def test_the_recording_can_be_made_again(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    await make(path)
    recording = read_recording(str(path))
    assert not recording.truncated_at
    assert (await replayed(recording, "gc,namespaces,replicaset", seed=0)).same
