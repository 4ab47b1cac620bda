"""Fields of a manifest that its kind does not have, with the name that was probably meant.

spec.priorityClasName: unknown field; did you mean priorityClassName?
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import orjson

from fakeapi.apiserver.kinds import BUILTIN
from fakeapi.apiserver.kinds.structural_types import (
    ListType,
    MapType,
    Struct,
    Type,
    Untyped,
    schema_of,
)
from fakeapi.apiserver.wire.struct_decoder import StructDecodeError, decode_struct
from policies.kubernetes.input_error import similar_name

_STEP: Final = re.compile(r"[^.\[\]]+")


def unknown_fields(manifest: bytes) -> Iterator[str]:
    """Yield a line for each unknown field of an object of a built-in kind.

    A manifest that cannot be decoded has no lines: its reader reports that.
    """
    try:
        document = orjson.loads(manifest)
    except orjson.JSONDecodeError:  # nested too deeply
        return
    api_version, kind_name = document.get("apiVersion"), document.get("kind")
    kind = BUILTIN.of(str(api_version), str(kind_name))
    if kind is None:
        return
    shape = schema_of(kind)
    try:
        unknown = decode_struct(shape, document)
    except (StructDecodeError, RecursionError):
        return
    for path in unknown:
        parent, name = _parent(shape, path)
        similar = "" if parent is None else similar_name(name, parent.fields)
        yield f"{path}: unknown field" + (f"; did you mean {similar}?" if similar else "")


def _parent(shape: Struct | Untyped, path: str) -> tuple[Struct | None, str]:
    """Return the struct in which a field is unknown, and its name; None below keys with dots."""
    *steps, name = _STEP.findall(path) or [""]
    found: Type | None = shape
    for step in steps:
        if isinstance(found, Struct):
            field = found.fields.get(step)
            found = None if field is None else field.type
        elif isinstance(found, ListType):
            found = found.element
        elif isinstance(found, MapType):
            found = found.value
    return found if isinstance(found, Struct) else None, name
