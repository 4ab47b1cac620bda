"""The Table columns of custom resources, from their definitions.

Source: pkg/registry/customresource/tableconvertor/tableconvertor.go and pkg/apiserver/helpers.go of
k8s.io/apiextensions-apiserver.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import orjson

from fakeapi.api.cells.reading import UNKNOWN, Cell, name, since
from fakeapi.api.jsonpaths import JsonPathError, compile_path
from fakeapi.kinds.columns import Column, columns_of
from fakeapi.kinds.custom import CustomResourceInfo, PrinterColumn

_AGE: Final = PrinterColumn("Age", "date", ".metadata.creationTimestamp")


class CustomTable:
    """The columns of one version of a custom resource, and the cells of its objects."""

    def __init__(self, custom: CustomResourceInfo) -> None:
        self._columns = [c for c in custom.columns or (_AGE,) if _is_path(c.path)]
        self._paths = [compile_path(column.path) for column in self._columns]

    def definitions(self) -> list[Column]:
        """Return the definitions of the columns."""
        first = columns_of("")[0]
        return [
            Column("Name", "string", "name", first.description, 0),
            *map(_column, self._columns),
        ]

    def cells(self, document: Mapping[str, Any], now: int) -> list[Cell]:
        """Return the cells of an object; ``now`` is in seconds since 1970."""
        cells: list[Cell] = [name(document)]
        for column, find in zip(self._columns, self._paths, strict=True):
            found = find(document)
            cells.append(_cell(column.type, found[0], now) if found else None)
        return cells


@lru_cache(maxsize=1024)
def custom_table(custom: CustomResourceInfo) -> CustomTable:
    """Return the columns of a custom resource, from a cache."""
    return CustomTable(custom)


def _is_path(text: str) -> bool:
    try:
        compile_path(text)
    except JsonPathError:
        return False
    return True


def _column(column: PrinterColumn) -> Column:
    told = column.description or (
        columns_of("")[1].description
        if column is _AGE
        else f"Custom resource definition column (in JSONPath format): {column.path}"
    )
    return Column(column.name, column.type, column.format, told, column.priority)


def _cell(kind: str, value: Any, now: int) -> Cell:
    if kind == "string":
        return _text(value)
    if value is None:
        return None
    if kind == "date":
        return _age(value, now)
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if kind == "integer" else value  # type: ignore[return-value]


def _text(value: Any) -> str:
    if isinstance(value, dict | list):
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _age(value: Any, now: int) -> Cell:
    if not isinstance(value, str):
        return None
    shown = since(value, now)
    return "<invalid>" if shown == UNKNOWN else shown
