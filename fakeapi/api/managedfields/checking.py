"""Validation of an applied configuration against the kind's structural type.

Source: sigs.k8s.io/structured-merge-diff/typed/validate.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fakeapi.api.managedfields.elements import describe, field_element, item_element
from fakeapi.api.managedfields.shapes import field_type
from fakeapi.kinds.types import ListType, Scalar, Struct, Type, Untyped

_NUMERIC: Final = ("integer", "number")


def validation_errors(shape: Type, config: Mapping[str, Any]) -> list[str]:
    """Return the messages of all errors of a configuration, each with its path."""
    return [f"{path}: {why}" if path else why for path, why in _validate(shape, config)]


PathErrors = Iterator[tuple[str, str]]


def _validate(shape: Type, value: Any) -> PathErrors:
    if value is None or isinstance(shape, Untyped):
        return
    if isinstance(shape, Scalar):
        yield from _scalar(shape, value)
    elif isinstance(shape, ListType):
        yield from _list(shape, value)
    elif not isinstance(value, dict):
        yield "", f"expected map, got &{{{_shown(value)}}}"
    else:
        for name, part in value.items():
            element = describe((field_element(name),))
            if isinstance(shape, Struct) and not (shape.open or name in shape.fields):
                yield element, "field not declared in schema"
                return
            yield from _under(element, _validate(field_type(shape, name), part))


def _list(shape: ListType, values: Any) -> PathErrors:
    if not isinstance(values, list):
        yield "", f"expected list, got &{{{_shown(values)}}}"
        return
    seen: set[str] = set()
    for index, value in enumerate(values):
        element = f"i:{index}"
        if shape.kind != "atomic":
            try:
                element = item_element(shape, value)
            except ValueError as error:
                yield "", f"element {index}: {error}"
                return
            if element in seen:
                yield "", f"duplicate entries for key {describe((element,))}"
            seen.add(element)
        yield from _under(describe((element,)), _validate(shape.element, value))


def _under(element: str, found: PathErrors) -> PathErrors:
    for path, why in found:
        yield element + path, why


def _scalar(shape: Scalar, value: Any) -> PathErrors:
    if isinstance(value, dict | list):
        yield "", f"expected {_GO.get(shape.type, shape.type)}, got &{{{_shown(value)}}}"
    elif shape.type == "string" and not isinstance(value, str):
        yield "", f"expected string, got &value.valueUnstructured{{Value:{_shown(value)}}}"
    elif shape.type in _NUMERIC and (isinstance(value, str | bool)):
        yield "", f"expected numeric (int or float), got {_GO_TYPES[type(value)]}"
    elif shape.type == "boolean" and not isinstance(value, bool):
        yield "", f"expected boolean, got &{{{_shown(value)}}}"


_GO: Final = {"integer": "numeric (int or float)", "number": "numeric (int or float)"}
_GO_TYPES: Final[Mapping[type, str]] = {str: "string", bool: "bool"}


def _shown(value: Any) -> str:
    """Return a value as Go's ``%v`` prints it."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{k}:{_shown(v)}' for k, v in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_shown, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
