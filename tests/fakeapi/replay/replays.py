"""Replays of recordings into virtual clusters, and the objects and lines of recordings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from extender.recording.files import Recording
from fakeapi import VirtualCluster
from fakeapi.replay.report import Report
from tests.builders.replicas import controlled_by
from tests.extender.recording.recording_lines import Document, an_object, line

DEFAULT: Final = an_object("default", "Namespace")
GONE_AT: Final[Document] = {
    "deletionTimestamp": "2026-01-01T00:00:09Z",
    "deletionGracePeriodSeconds": 30,
}


async def replay(
    recording: Recording, run: str, seed: int = 4, **options: Any
) -> tuple[Report, list[Document]]:
    """Replay a recording into a new cluster; return the report, and the objects afterwards."""
    start = recording.header.start_ns
    async with VirtualCluster(run=run, seed=seed, start_ns=start, **options) as cluster:
        report = await cluster.replay(recording)
        return report, list(cluster.export())


async def replayed(recording: Recording, run: str, seed: int = 4, **options: Any) -> Report:
    """Replay a recording into a new cluster, and return the report."""
    report, _ = await replay(recording, run, seed, **options)
    return report


def listed(*objects: Document) -> list[bytes]:
    """Record that these objects exist in the beginning."""
    return [line(0, "LISTED", each) for each in objects]


def web_pod(name: str, *, node: str = "", **metadata: Any) -> Document:
    """Build a pod of the ReplicaSet ``web``."""
    metadata = {
        "labels": {"app": "web"},
        "ownerReferences": [controlled_by("web", "web")],
        **metadata,
    }
    spec = {"containers": [{"name": "c", "image": "i"}], **({"nodeName": node} if node else {})}
    return an_object(name, metadata=metadata, spec=spec, status={"phase": "Pending"})


def of_kind(kind: str, objects: Sequence[Document]) -> list[Document]:
    """Return the objects of a kind."""
    return [each for each in objects if each["kind"] == kind]
