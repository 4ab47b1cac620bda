"""Strict decoding errors of a JSON text: unknown and duplicate fields, in the order of the text.

An error is reported where a decoder meets the key. The value of an unknown field is skipped, and so
is a value that decodes itself: a quantity, a time, an arbitrary JSON value. A custom resource is
decoded without its schema, so every duplicate key is reported.

    {"spec": {"a": 1, "replicas": 1, "replicas": 2}, "b": {"c": 1, "c": 2}}

has the errors ``unknown field "spec.a"``, ``duplicate field "spec.replicas"`` and
``unknown field "b"`` as a Deployment.

Source: sigs.k8s.io/json/internal/golang/encoding/json/kubernetes_patch.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from fakeapi.apiserver.kinds.structural_types import UNTYPED, ListType, MapType, Struct, Type
from fakeapi.apiserver.wire.go_format import quote
from fakeapi.apiserver.wire.struct_decoder import LinkedPath, format_path

MAX_ERRORS: Final = 100


class Members(list[tuple[str, Any]]):
    """The members of a JSON object in their order, duplicate keys included."""


def unknown_field(path: str) -> str:
    """Return the error of a field that the type does not have."""
    return f"unknown field {quote(path)}"


def struct_errors(shape: Type, text: bytes) -> tuple[str, ...]:
    """Return the errors of a text that is decoded into a Go struct; none if it is no JSON."""
    return _first(_struct_errors(shape, _parse(text), None))


def duplicate_fields(text: bytes) -> tuple[str, ...]:
    """Return the errors of all duplicate keys of a text; none if it is no JSON."""
    return _first(_duplicates(_parse(text), None))


def operation_errors(text: bytes) -> tuple[str, ...]:
    """Return the errors of a JSON patch: duplicate keys, and unknown fields of its operations."""
    patch = _parse(text)
    errors = [*_duplicates(patch, None)]
    for index, operation in enumerate(patch if isinstance(patch, list) else ()):
        known = isinstance(operation, Members)
        names = dict.fromkeys(name for name, _ in operation) if known else ()
        errors += [unknown_field(f"[{index}].{name}") for name in names if name not in _OPERATION]
    return tuple(f"json patch {error}" for error in errors)


_OPERATION: Final = ("op", "path", "from", "value")


def _parse(text: bytes) -> Any:
    try:
        return json.loads(text, object_pairs_hook=Members)
    except ValueError:
        return None


def _first(errors: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(errors))[:MAX_ERRORS]


def _struct_errors(shape: Type, value: Any, where: LinkedPath) -> Iterator[str]:
    if isinstance(value, Members) and isinstance(shape, Struct | MapType):
        seen: set[str] = set()
        for key, item in value:
            path = (where, key)
            member = _member(shape, key)
            if member is None:
                yield unknown_field(format_path(path))
                continue
            if key in seen:
                yield _duplicate_field(path)
            seen.add(key)
            yield from _struct_errors(member, item, path)
    elif isinstance(value, list) and isinstance(shape, ListType):
        for index, item in enumerate(value):
            yield from _struct_errors(shape.element, item, (where, f"[{index}]"))


def _member(shape: Struct | MapType, key: str) -> Type | None:
    if isinstance(shape, MapType):
        return shape.value
    field = shape.fields.get(key)
    if field is None:
        return UNTYPED if shape.open else None
    return field.type


def _duplicates(value: Any, where: LinkedPath) -> Iterator[str]:
    if isinstance(value, Members):
        seen: set[str] = set()
        for key, item in value:
            path = (where, key)
            if key in seen:
                yield _duplicate_field(path)
            seen.add(key)
            yield from _duplicates(item, path)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _duplicates(item, (where, f"[{index}]"))


def _duplicate_field(path: LinkedPath) -> str:
    return f"duplicate field {quote(format_path(path))}"
