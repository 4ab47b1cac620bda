"""Documents for ``explain evict``: summaries as in files."""

from __future__ import annotations

from typing import Any

from tests.builders import Document

MI = 2**20


def measured(name: str, memory: int | None = None, **fields: Any) -> Document:
    """Build a pod's stats; memory in Mi, all of it in one container."""
    reference = {"name": name, "namespace": "default", "uid": name}
    usage = {} if memory is None else {"memory": {"workingSetBytes": memory * MI}}
    return {"podRef": reference, "containers": [{"name": "main", **usage}], **usage, **fields}


def summary(memory: int, *pods: Document, at: str | None = None, **node: Any) -> Document:
    """Build a summary of a node of 4 Gi with so many Mi left."""
    left = {
        "availableBytes": memory * MI,
        "workingSetBytes": (4096 - memory) * MI,
        "time": None if at is None else f"2026-01-01T00:{at}Z",
    }
    return {"node": {"memory": left, **node}, "pods": list(pods)}
