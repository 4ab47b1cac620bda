"""Tables: objects as rows, which ``kubectl get`` requests.

    {"kind": "Table", "columnDefinitions": [...], "rows": [{"cells": [...], "object": {...}}]}

Rows always have all cells; clients hide the columns of priority 1 unless output is wide. Depending
on ``includeObject`` each row has the object's metadata, the whole object or nothing.

A *printer* is a function from a document and the current time to the cells of its row, in the order
of the kind's columns (:mod:`fakeapi.apiserver.printers.columns`). It reads stored documents: a
field that is missing or has another type counts as absent.

Sources: k8s.io/apiserver/pkg/endpoints/handlers/response.go, pkg/registry/rest/table.go;
kubernetes/pkg/printers/internalversion/printers.go, v1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.printers import (
    networking,
    nodes_and_config,
    pods,
    policy,
    storage,
    workloads,
)
from fakeapi.apiserver.printers.columns import Column, CustomTable, columns_of, has_columns
from fakeapi.apiserver.printers.human_readable import Cell, RowPrinter, name, text
from fakeapi.apiserver.printers.pods import row_conditions
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import bad_request
from fakeapi.apiserver.wire.negotiation import metadata_document
from fakeapi.apiserver.wire.raw_json import RawObject, decode_raw_object

__all__ = ["LIST_PRINTERS", "PRINTERS", "Cell", "RowPrinter"]

PRINTERS: Mapping[str, RowPrinter] = {
    **nodes_and_config.PRINTERS,
    **networking.PRINTERS,
    **pods.PRINTERS,
    **policy.PRINTERS,
    **storage.PRINTERS,
    **workloads.PRINTERS,
}

LIST_PRINTERS: Mapping[str, Callable[[Sequence[Mapping[str, Any]], Sequence[list[Cell]]], None]] = {
    "StorageClass.storage.k8s.io": storage.mark_default
}
"""Functions by kind that change the rows of a list after all of them are printed."""

_META: Final = "meta.k8s.io"
_INCLUDABLE: Final = ("", "Metadata", "Object", "None")


@dataclass(frozen=True, slots=True)
class CustomColumns:
    """The columns of a custom resource; they apply to ``kind``, not to its subresources."""

    kind: ResourceInfo
    table: CustomTable

    def applies_to(self, whole: RawObject) -> bool:
        """Return whether a document is the resource, or a list of it."""
        return whole.kind in (self.kind.kind, self.kind.list_kind)


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Options of a Table: ``include`` of each object, and the ``version`` of the Table itself.

    ``custom_columns`` are the columns of a custom resource.
    """

    include: str = ""
    version: str = "v1"
    custom_columns: CustomColumns | None = None


def parse_table_options(query: Mapping[str, str], version: str) -> TableOptions:
    """Parse the options of a Table; raise StatusError (400)."""
    include = query.get("includeObject", "")
    if include not in _INCLUDABLE:
        raise bad_request(
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{include}": '
            "must be 'Metadata', 'Object', 'None', or empty"
        )
    return TableOptions(include, version)


def build_table(body: bytes, options: TableOptions, now: int) -> Document:
    """Return the Table of a list or of one object; ``now`` is in seconds since 1970.

    Objects inside it are fragments of JSON, which orjson can encode.
    """
    whole = decode_raw_object(body)
    if options.custom_columns is not None and not options.custom_columns.applies_to(whole):
        options = replace(options, custom_columns=None)
    items = [bytes(item) for item in whole.items or ()] if whole.is_list else [body]
    qualified = _qualified_kind(whole)
    rows = [_row(qualified, whole, item, options, now) for item in items]
    if qualified in LIST_PRINTERS:
        LIST_PRINTERS[qualified](
            [orjson.loads(item) for item in items], [row["cells"] for row in rows]
        )
    return {
        "kind": "Table",
        "apiVersion": f"{_META}/{options.version}",
        "metadata": _metadata(whole),
        "columnDefinitions": [column.document() for column in _columns(qualified, options)],
        "rows": rows,
    }


def _columns(qualified: str, options: TableOptions) -> Sequence[Column]:
    return (
        columns_of(qualified)
        if options.custom_columns is None
        else options.custom_columns.table.definitions()
    )


def _qualified_kind(whole: RawObject) -> str:
    group, _, _ = whole.api_version.rpartition("/")
    return f"{whole.item_kind}.{group}" if group else whole.item_kind


def _metadata(whole: RawObject) -> Document:
    """Return the list metadata of a list, or of one object."""
    metadata: Document = orjson.loads(bytes(whole.metadata))
    if whole.is_list:
        return metadata
    return {"resourceVersion": version} if (version := metadata.get("resourceVersion")) else {}


def _row(
    qualified: str, whole: RawObject, item: bytes, options: TableOptions, now: int
) -> dict[str, Any]:
    document = orjson.loads(item)
    own = options.custom_columns
    cells = _cells(qualified, document, now) if own is None else own.table.cells(document, now)
    row: dict[str, Any] = {"cells": cells}
    if qualified == "Pod" and (conditions := row_conditions(document)):
        row["conditions"] = conditions
    if options.include == "None":
        row["object"] = None
    elif options.include == "Object":
        row["object"] = orjson.Fragment(
            _object_document(whole, item) if own is None else item.rstrip()
        )
    else:
        row["object"] = orjson.Fragment(
            metadata_document(decode_raw_object(item).metadata, options.version)
        )
    return row


def _cells(qualified: str, document: Document, now: int) -> list[Cell]:
    row = PRINTERS.get(qualified) if has_columns(qualified) else None
    if row is not None:
        return row(document, now)
    return [name(document), text(document, "metadata", "creationTimestamp")]


def _object_document(whole: RawObject, item: bytes) -> bytes:
    """Return an object's document; items of lists have no kind and apiVersion of their own."""
    if not whole.is_list:
        return item.rstrip()
    head = f'{{"kind":"{whole.item_kind}","apiVersion":"{whole.api_version}",'.encode()
    return head + item[1:]
