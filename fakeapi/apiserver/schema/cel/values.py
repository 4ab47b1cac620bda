"""Values as rules see them: escaped field names, and numbers and times of the schema's type.

    namespace: a    self.__namespace__, self.namespace
    a-b: 1          self.a__dash__b
    format: date-time, date, duration    a timestamp, a timestamp, a duration
    type: number    a double, even if the document has an integer

Rules see only the name and generateName of an object's own metadata. Source: UnstructuredToVal in
k8s.io/apiserver/pkg/cel/common/values.go.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping
from typing import Any, Final

from extender.cel.identifiers import escape, is_reserved
from extender.cel.parser import ENGINE
from fakeapi.apiserver.schema.structural.schema_tree import SchemaNode, node_of

ValueConverter = Callable[[Any], Any]

_META_NAMES: Final = ("name", "generateName")

ROOT_FIELDS: Final = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {
        "type": "object",
        "properties": {name: {"type": "string"} for name in _META_NAMES},
    },
}
"""The fields of a whole object that rules see in addition to those of its schema."""


def with_metadata(node: SchemaNode) -> SchemaNode:
    """Return the node of a whole object, with apiVersion, kind and metadata."""
    properties = {**(node.schema.get("properties") or {}), **ROOT_FIELDS}
    return node_of({**node.schema, "properties": properties})


def resource_view(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a whole object, its metadata reduced to the fields that rules see."""
    metadata = document.get("metadata") or {}
    visible = {name: metadata[name] for name in _META_NAMES if name in metadata}
    return {**document, "metadata": visible}


def value_converter(node: SchemaNode | None) -> ValueConverter | None:
    """Return the conversion of values into those that rules see; None if nothing changes."""
    if node is None:
        return None
    if node.type == "string":
        return _TEXTS.get(node.schema.get("format", ""))
    if node.type == "number":
        return _double
    if node.type == "array":
        return _list(value_converter(node.items))
    return _object(node)


def _list(element: ValueConverter | None) -> ValueConverter | None:
    if element is None:
        return None
    return lambda value: list(map(element, value)) if isinstance(value, list) else value


def _object(node: SchemaNode) -> ValueConverter | None:
    natives = {name: value_converter(below) for name, below in node.properties.items()}
    names = {name: escape(name) for name in natives}
    other = value_converter(node.additional)
    if all(names[n] == n and natives[n] is None for n in names) and other is None:
        return None

    def native(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        converted = {}
        for name, item in value.items():
            spelled = names.get(name, name)
            convert = natives.get(name, other if name not in natives else None)
            value_seen = item if convert is None else convert(item)
            if spelled is not None:
                converted[spelled] = value_seen
            if is_reserved(name):
                converted[name] = value_seen
        return converted

    return native


def _double(value: Any) -> Any:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _converted(expression: str) -> ValueConverter:
    def convert(value: Any) -> Any:
        try:
            return ENGINE.evaluate(expression, {"text": value})
        except (ValueError, RuntimeError, TypeError):
            return value

    return convert


def _bytes(value: Any) -> Any:
    try:
        return b64decode(value)
    except (ValueError, TypeError):
        return value


_TEXTS: Final[Mapping[str, ValueConverter]] = {
    "byte": _bytes,
    "date": _converted("timestamp(text + 'T00:00:00Z')"),
    "date-time": _converted("timestamp(text)"),
    "datetime": _converted("timestamp(text)"),
    "duration": _converted("duration(text)"),
}
