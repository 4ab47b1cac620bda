"""Cells: what a Table says of one object, kind by kind.

Each kind has one function from a document and the present moment to the cells of its row, in the
order of the kind's columns (:mod:`fakeapi.kinds.columns`). Documents are read as they were stored:
a part that is missing, or is not of the type it should be, counts as absent.

Source: pkg/printers/internalversion/printers.go of kubernetes, at v1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fakeapi.api.cells import cluster, networking, pods, policies, storage, workloads
from fakeapi.api.cells.reading import Cell, Row

ROWS: Mapping[str, Row] = {
    **cluster.ROWS,
    **networking.ROWS,
    **pods.ROWS,
    **policies.ROWS,
    **storage.ROWS,
    **workloads.ROWS,
}

FINISHERS: Mapping[str, Callable[[Sequence[Mapping[str, Any]], Sequence[list[Cell]]], None]] = {
    "StorageClass.storage.k8s.io": storage.mark_default
}
"""What a row says because of the list that it stands in."""

__all__ = ["FINISHERS", "ROWS", "Cell", "Row"]
