"""Field paths of rules, resolved in a schema.

    .spec.size    .spec['size']    .labels['app.io/name']

Source: ValidFieldPath in k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go.
"""

from __future__ import annotations

import re
from typing import Final

from fakeapi.apiserver.schema.structural.schema_tree import SchemaNode

_STEP: Final = re.compile(r"\.([^.\[\]']+)|\['((?:\\.|[^'\\])*)'\]")
_ESCAPE: Final = re.compile(r"\\(.)")


class FieldPathError(ValueError):
    """A path is malformed, or the schema has no such field."""


def find_field(
    path: str, node: SchemaNode, *, brackets: bool = True
) -> tuple[str, SchemaNode | None]:
    """Return a path as messages print it, and the node at its end. Raise FieldPathError."""
    found: SchemaNode | None = node
    spelled, position = "", 0
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            raise FieldPathError(f"expected [ or . but got: {path[position:]}")
        if match[1] is None and not brackets:
            raise FieldPathError("array notation is not allowed")
        name = match[1] if match[1] is not None else _ESCAPE.sub(r"\1", match[2])
        named = found is not None and bool(found.properties)
        if found is None or not (named or found.allows_additional):
            raise FieldPathError("does not refer to a valid field")
        if named and name not in found.properties:
            raise FieldPathError("does not refer to a valid field")
        found = found.properties[name] if named else found.additional
        spelled += f".{name}" if named else f"[{name}]"
        position = match.end()
    return spelled.removeprefix("."), found
