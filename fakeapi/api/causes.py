"""Field errors of a 422 in upstream's words, one function for each type.

Source: k8s.io/apimachinery/pkg/util/validation/field/errors.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from fakeapi.api.errors import Cause


class GoFormattedValue(str):
    """A value that is already formatted for messages (Go prints structs in its own order)."""

    __slots__ = ()


def go_formatted(value: Any) -> GoFormattedValue:
    """Return a struct as Go encodes it in JSON: fields in their order, markup escaped."""
    return GoFormattedValue(orjson.dumps(value).decode().translate(_MARKUP))


_MARKUP = str.maketrans({mark: f"\\u{ord(mark):04x}" for mark in "<>&"})


def required(path: str, detail: str = "") -> Cause:
    """Return the error of a field that must be set."""
    return Cause("FieldValueRequired", _with_detail("Required value", detail), path, detail)


def invalid_value(path: str, value: Any, detail: str) -> Cause:
    """Return the error of a value that breaks a rule."""
    return Cause(
        "FieldValueInvalid", f"Invalid value: {format_value(value)}: {detail}", path, detail
    )


def unsupported_value(path: str, value: Any, supported: Sequence[str]) -> Cause:
    """Return the error of a value that is none of the supported ones."""
    listed = ", ".join(f'"{name}"' for name in supported)
    detail = f"supported values: {listed}"
    message = f"Unsupported value: {format_value(value)}: {detail}"
    return Cause("FieldValueNotSupported", message, path, detail)


def forbidden_field(path: str, detail: str) -> Cause:
    """Return the error of a field that may not be set or changed."""
    return Cause("FieldValueForbidden", _with_detail("Forbidden", detail), path, detail)


def duplicate(path: str, value: Any) -> Cause:
    """Return the error of a value that must be unique and occurs twice."""
    return Cause("FieldValueDuplicate", f"Duplicate value: {format_value(value)}", path)


def value_not_found(path: str, value: Any) -> Cause:
    """Return the error of a value that refers to something that does not exist."""
    return Cause("FieldValueNotFound", f"Not found: {format_value(value)}", path)


def _with_detail(message: str, detail: str) -> str:
    return f"{message}: {detail}" if detail else message


def format_value(value: Any) -> str:
    """Return a value as messages show it."""
    if isinstance(value, GoFormattedValue):
        return str(value)
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
