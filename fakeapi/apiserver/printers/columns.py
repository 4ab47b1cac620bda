"""The columns of Tables: those of built-in kinds, and those that custom resources define.

Built-in kinds have upstream's definitions and descriptions, as recorded in ``columns.json``. A
column of priority 0 is always shown, one of priority 1 in wide output. Other kinds have the default
columns: name and creation time.

A custom resource defines a column by a JSONPath.

Sources: the Tables of kube-apiserver 1.37 (pkg/printers/internalversion/printers.go);
pkg/registry/customresource/tableconvertor/tableconvertor.go and pkg/apiserver/helpers.go of
k8s.io/apiextensions-apiserver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

import orjson

from fakeapi.apiserver.kinds.resource_info import CustomResourceInfo, PrinterColumn
from fakeapi.apiserver.printers.human_readable import UNKNOWN, Cell, name, since
from fakeapi.apiserver.printers.json_path import JsonPathError, compile_path

_DEFAULT = ""


@dataclass(frozen=True, slots=True)
class Column:
    """One column; ``format`` is "name" for the column with the object's name."""

    name: str
    type: str
    format: str
    description: str
    priority: int

    def document(self) -> dict[str, Any]:
        """Return the TableColumnDefinition as JSON."""
        return asdict(self)


def columns_of(qualified_kind: str) -> Sequence[Column]:
    """Return the columns of a kind; ``qualified_kind`` is written as ``Deployment.apps``."""
    tables = _tables()
    return tables.get(qualified_kind, tables[_DEFAULT])


def has_columns(qualified_kind: str) -> bool:
    """Return whether a kind has other than the default columns."""
    return qualified_kind in _tables()


@cache
def _tables() -> Mapping[str, Sequence[Column]]:
    recorded = orjson.loads((Path(__file__).with_name("data") / "columns.json").read_bytes())
    descriptions = recorded["descriptions"]
    return {
        kind: tuple(
            Column(name, column_type, column_format, descriptions[description], priority)
            for name, column_type, column_format, priority, description in columns
        )
        for kind, columns in recorded["tables"].items()
    }


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
    description = column.description or (
        columns_of("")[1].description
        if column is _AGE
        else f"Custom resource definition column (in JSONPath format): {column.path}"
    )
    return Column(column.name, column.type, column.format, description, column.priority)


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
    text = since(value, now)
    return "<invalid>" if text == UNKNOWN else text
