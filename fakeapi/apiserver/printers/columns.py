"""The columns of Tables: those of built-in kinds, and those that custom resources define.

Built-in kinds have upstream's definitions and descriptions, as recorded in ``columns.json``. A
column of priority 0 is always shown, one of priority 1 in wide output. Other kinds have the default
columns: name and creation time.

A custom resource defines a column by a JSONPath:

    .spec.size   .metadata.labels['a.b/c']   .items[0].name   .items[-1]   .items[1:3]
    .items[*].name   ..image   .conditions[?(@.type=="Ready")].status

Sources: the Tables of kube-apiserver 1.37 (pkg/printers/internalversion/printers.go);
pkg/registry/customresource/tableconvertor/tableconvertor.go and pkg/apiserver/helpers.go of
k8s.io/apiextensions-apiserver; k8s.io/client-go/util/jsonpath.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

import orjson

from fakeapi.apiserver.kinds.resource_info import CustomResourceInfo, PrinterColumn
from fakeapi.apiserver.printers.human_readable import UNKNOWN, Cell, name, since

PathStep = Callable[[Any], Iterable[Any]]
JsonPath = Callable[[Any], list[Any]]

_NAME: Final = re.compile(r"(?:\\.|[^\[\].\\])+")
_TEXT: Final = re.compile(r"'((?:\\.|[^'\\])*)'|\"((?:\\.|[^\"\\])*)\"", re.DOTALL)
_SLICE: Final = re.compile(r"(-?\d+)?:(-?\d+)?(?::(-?\d+)?)?", re.ASCII)
_FILTER: Final = re.compile(r"(.+?)\s*(==|!=|<=|>=|<|>)\s*(.+)", re.DOTALL)
_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}


class JsonPathError(ValueError):
    """A text is not a valid JSONPath."""


@lru_cache(maxsize=4096)
def compile_path(text: str) -> JsonPath:
    """Compile a path; raise JsonPathError."""
    steps = list(_steps(text))

    def find(value: Any) -> list[Any]:
        found = [value]
        for step in steps:
            found = [below for each in found for below in step(each)]
        return found

    return find


def _steps(text: str) -> Iterator[PathStep]:
    position = 0
    while position < len(text):
        if text.startswith("..", position):
            yield _descendants
            position += 1 if text.startswith("..[", position) is False else 2
        if text.startswith("[", position):
            end = _closing(text, position)
            yield _bracket(text[position + 1 : end].strip())
            position = end + 1
        elif text.startswith(".", position):
            match = _NAME.match(text, position + 1)
            position += 1
            if match is not None:
                yield _field(re.sub(r"\\(.)", r"\1", match[0]))
                position = match.end()
        else:
            raise JsonPathError(f"unrecognized path {text!r} at {position}")


def _closing(text: str, start: int) -> int:
    depth, index = 0, start
    while index < len(text):
        quoted = _TEXT.match(text, index)
        if quoted is not None:
            index = quoted.end()
            continue
        depth += (text[index] == "[") - (text[index] == "]")
        if depth == 0:
            return index
        index += 1
    raise JsonPathError(f"unterminated array in {text!r}")


def _bracket(inside: str) -> PathStep:
    if inside == "*":
        return _children
    if inside.startswith("?(") and inside.endswith(")"):
        return _filter(inside[2:-1].strip())
    if match := _TEXT.fullmatch(inside):
        return _field(re.sub(r"\\(.)", r"\1", match[1] if match[1] is not None else match[2]))
    if match := _SLICE.fullmatch(inside):
        start, end, step = (int(part) if part else None for part in match.groups())
        return lambda value: value[start:end:step] if isinstance(value, list) else ()
    if re.fullmatch(r"-?\d+", inside, re.ASCII):
        return _element(int(inside))
    if "," in inside:
        parts = [_bracket(part.strip()) for part in inside.split(",")]
        return lambda value: [below for part in parts for below in part(value)]
    raise JsonPathError(f"invalid array index {inside!r}")


def _field(name: str) -> PathStep:
    if name == "*":
        return _children
    return lambda value: (value[name],) if isinstance(value, dict) and name in value else ()


def _element(index: int) -> PathStep:
    def step(value: Any) -> Iterable[Any]:
        inside = isinstance(value, list) and -len(value) <= index < len(value)
        return (value[index],) if inside else ()

    return step


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _descendants(value: Any) -> Iterator[Any]:
    yield value
    for below in _children(value):
        yield from _descendants(below)


def _filter(condition: str) -> PathStep:
    match = _FILTER.fullmatch(condition)
    if match is None:
        exists = _operand(condition)
        return lambda value: [item for item in _children(value) if exists(item)]
    left, compare, right = _operand(match[1]), _COMPARE[match[2]], _operand(match[3])

    def passes(item: Any) -> bool:
        one, two = left(item), right(item)
        try:
            return bool(one and two and compare(one[0], two[0]))
        except TypeError:
            return False

    return lambda value: [item for item in _children(value) if passes(item)]


def _operand(text: str) -> JsonPath:
    text = text.strip()
    if text.startswith("@"):
        return compile_path(text[1:])
    if match := _TEXT.fullmatch(text):
        literal: Any = match[1] if match[1] is not None else match[2]
    elif text in ("true", "false"):
        literal = text == "true"
    else:
        try:
            literal = float(text) if "." in text else int(text)
        except ValueError:
            raise JsonPathError(f"unrecognized operand {text!r}") from None
    return lambda _item: [literal]


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
