"""The types of variables: those of a schema, with the sizes of their values.

Fields without a type, and lists and maps of them, are hidden from expressions. The greatest size of
a value without a limit of its own follows from the size of a request.

Sources: k8s.io/apiserver/pkg/cel (common/schemas.go, types.go, limits.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from extender.cel.cel_types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    CelType,
    list_of,
    map_of,
)
from extender.cel.identifiers import escape, is_reserved
from fakeapi.apiserver.schema.cel.values import with_metadata
from fakeapi.apiserver.schema.structural.schema_tree import ABSENT, SchemaNode

MAX_REQUEST: Final = 3 * 1024 * 1024
_EMPTY: Final = 2
_LONGEST_TEXT: Final = MAX_REQUEST - _EMPTY
_ENTRY: Final = 6
_BYTES_OF_RUNE: Final = 4


@dataclass(frozen=True, slots=True)
class DeclaredType:
    """A type with the greatest size of its values, and the least size of them as JSON in bytes.

    ``element`` is the type of the elements of a list, or of the values of a map.
    """

    type: CelType
    max_size: int
    min_bytes: int
    element: DeclaredType | None = None
    fields: Mapping[str, DeclaredType] = field(default_factory=dict)


_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_SIMPLE: Final = {
    "boolean": DeclaredType(BOOL, 0, 4),
    "number": DeclaredType(DOUBLE, 0, 1),
    "integer": DeclaredType(INT, 0, 1),
}
_FORMATS: Final = {
    "duration": DeclaredType(DURATION, 32, 3),
    "date": DeclaredType(TIMESTAMP, 12, 12),
    "date-time": DeclaredType(TIMESTAMP, 32, 21),
}


def declared_type(node: SchemaNode, name: str, *, is_resource: bool = False) -> DeclaredType | None:
    """Return the type of a schema's values; None if it is hidden. ``name`` is that of messages."""
    if node.schema.get(_INT_OR_STRING):
        return DeclaredType(DYN, _text_size(node), 1)
    if is_resource:
        node = with_metadata(node)
    if node.type == "array":
        return _list_type(node, name)
    if node.type == "object":
        return _map_type(node, name) if node.additional else _object_type(node, name)
    return _text_type(node) if node.type == "string" else _SIMPLE.get(node.type)


def _below(node: SchemaNode | None, name: str) -> DeclaredType | None:
    return None if node is None else declared_type(node, name, is_resource=node.embedded)


def _list_type(node: SchemaNode, name: str) -> DeclaredType | None:
    element = _below(node.items, f"{name}.@idx")
    if element is None:
        return None
    size = _limit(node, "maxItems", _LONGEST_TEXT // (element.min_bytes + 1))
    return DeclaredType(list_of(element.type), size, _EMPTY, element)


def _map_type(node: SchemaNode, name: str) -> DeclaredType | None:
    element = _below(node.additional, f"{name}.@elem")
    if element is None:
        return None
    size = _limit(node, "maxProperties", _LONGEST_TEXT // (element.min_bytes + _ENTRY))
    return DeclaredType(map_of(STRING, element.type), size, _EMPTY, element)


def _object_type(node: SchemaNode, name: str) -> DeclaredType:
    fields, least = dict[str, DeclaredType](), _EMPTY
    required = node.schema.get("required") or ()
    for property_name, property_node in node.properties.items():
        spelled = escape(property_name)
        found = _below(property_node, f"{name}.{spelled}")
        if found is None:
            continue
        if spelled is not None:
            fields[spelled] = found
        if is_reserved(property_name):
            fields[property_name] = found
        if property_name in required and property_node.default is ABSENT:
            least += len(property_name.encode()) + found.min_bytes + 4
    return message(name, fields, least)


def message(name: str, fields: Mapping[str, DeclaredType], least: int = _EMPTY) -> DeclaredType:
    """Return the type of a message with these fields."""
    types = {field: found.type for field, found in fields.items()}
    return DeclaredType(CelType("message", name, (), types), 0, least, None, fields)


def _text_type(node: SchemaNode) -> DeclaredType:
    form = node.schema.get("format", "")
    if form in _FORMATS:
        return _FORMATS[form]
    if form == "byte":
        return DeclaredType(BYTES, _limit(node, "maxLength", _LONGEST_TEXT), _EMPTY)
    return DeclaredType(STRING, _text_size(node), _EMPTY)


def _text_size(node: SchemaNode) -> int:
    if node.schema.get("maxLength") is not None:
        return _limit(node, "maxLength", 0) * _BYTES_OF_RUNE
    values = node.schema.get("enum") or ()
    if values and node.type == "string":
        return max((len(v.encode()) for v in values if isinstance(v, str)), default=0)
    return _LONGEST_TEXT


def _limit(node: SchemaNode, name: str, otherwise: int) -> int:
    found = node.schema.get(name)
    return otherwise if found is None else max(int(found), 0)
