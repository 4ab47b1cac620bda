"""The Table columns of built-in kinds, with upstream's definitions and descriptions.

A column of priority 0 is always shown, one of priority 1 in wide output. Other kinds have the
default columns: name and creation time.

Source: the Tables of kube-apiserver 1.37 (pkg/printers/internalversion/printers.go), recorded in
``columns.json``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson

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
    recorded = orjson.loads(Path(__file__).with_name("columns.json").read_bytes())
    descriptions = recorded["descriptions"]
    return {
        kind: tuple(
            Column(name, column_type, column_format, descriptions[description], priority)
            for name, column_type, column_format, priority, description in columns
        )
        for kind, columns in recorded["tables"].items()
    }
