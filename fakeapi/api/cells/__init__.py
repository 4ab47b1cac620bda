"""The printers of built-in kinds: the cells of a Table's row, one printer for each kind.

A printer is a function from a document and the current time to the cells of its row, in the order
of the kind's columns (:mod:`fakeapi.apiserver.printers.columns`). A printer reads stored documents:
a field that is missing or has another type counts as absent.

Source: pkg/printers/internalversion/printers.go of kubernetes, at v1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fakeapi.api.cells import cluster, networking, pods, policies, storage, workloads
from fakeapi.api.cells.reading import Cell, RowPrinter

PRINTERS: Mapping[str, RowPrinter] = {
    **cluster.PRINTERS,
    **networking.PRINTERS,
    **pods.PRINTERS,
    **policies.PRINTERS,
    **storage.PRINTERS,
    **workloads.PRINTERS,
}

LIST_PRINTERS: Mapping[str, Callable[[Sequence[Mapping[str, Any]], Sequence[list[Cell]]], None]] = {
    "StorageClass.storage.k8s.io": storage.mark_default
}
"""Functions by kind that change the rows of a list after all of them are printed."""

__all__ = ["LIST_PRINTERS", "PRINTERS", "Cell", "RowPrinter"]
