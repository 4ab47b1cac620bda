"""Errors of a value, as a schema's checks find them, and their causes in a Status.

Sources: k8s.io/kube-openapi/pkg/validation/errors/schema.go; kubeOpenAPIResultToFieldErrors in
k8s.io/apiextensions-apiserver/pkg/apiserver/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import orjson

from fakeapi.apiserver.wire.errors import (
    Cause,
    format_value,
    invalid_value,
    required,
    unsupported_value,
)
from fakeapi.apiserver.wire.errors import too_long as too_long_value
from fakeapi.apiserver.wire.struct_decoder import LinkedPath, format_path

NIL_PATH = "<nil>"


class SchemaError(NamedTuple):
    """A cause with its field relative to the value; ``without_field``: upstream has no field."""

    cause: Cause
    without_field: bool = False


SchemaErrors = list[SchemaError]


def path_of(where: LinkedPath) -> str:
    """Return a path as messages print it."""
    return format_path(where)


def causes_of(errors: Iterable[SchemaError], root: str = "") -> list[Cause]:
    """Return the causes of errors without duplicates; ``root`` is the path of the value."""
    causes: dict[tuple[str, str], Cause] = {}
    for fault in errors:
        path = root if fault.without_field else ".".join(filter(None, (root, fault.cause.field)))
        cause = fault.cause
        causes.setdefault(
            (path, cause.message), Cause(cause.reason, cause.message, path or NIL_PATH)
        )
    return list(causes.values())


def rule_error(where: LinkedPath, value: Any, rule: str) -> SchemaError:
    """Return the error of a value that violates a rule; the rule's text follows the path."""
    path = path_of(where)
    return SchemaError(invalid_value(path, value, f"{path} in body {rule}"))


def type_error(where: LinkedPath, types: str, found: str) -> SchemaError:
    """Return the error of a value of another type, or of a string of another format."""
    path = path_of(where)
    detail = f"{path} in body must be of type {types}: {quoted(found)}"
    message = f"Invalid value: {quoted(found)}: {detail}"
    return SchemaError(Cause("FieldValueTypeInvalid", message, path))


def forbidden_property(where: LinkedPath, name: str) -> SchemaError:
    """Return the error of an object's field that the schema forbids."""
    path = path_of(where)
    return SchemaError(invalid_value(path, name, f"{path}.{name} in body is a forbidden property"))


def missing_field(where: LinkedPath) -> SchemaError:
    """Return the error of a required field that is missing."""
    return SchemaError(required(path_of(where)))


def too_long(where: LinkedPath, most: int) -> SchemaError:
    """Return the error of a string that is too long."""
    return SchemaError(too_long_value(path_of(where), most))


def too_many(where: LinkedPath, count: int, most: int) -> SchemaError:
    """Return the error of a list with too many items, or an object with too many fields."""
    return SchemaError(too_many_at(path_of(where), count, most))


def too_many_at(path: str, count: int, most: int) -> Cause:
    """Return the cause of a list or an object at a path that has too many items."""
    noun = "item" if most == 1 else "items"
    return Cause("FieldValueTooMany", f"Too many: {count}: must have at most {most} {noun}", path)


def not_in_enum(where: LinkedPath, value: Any, choices: Sequence[Any]) -> SchemaError:
    """Return the error of a value that is not among the supported ones."""
    names = [c if isinstance(c, str) else orjson.dumps(c).decode() for c in choices]
    return SchemaError(unsupported_value(path_of(where), value, names))


def invalid_in_quantifier(message: str) -> SchemaError:
    """Return an error of a quantifier or number, which upstream reports without its field."""
    return SchemaError(
        Cause("FieldValueInvalid", f'Invalid value: "": {message}'), without_field=True
    )


def quoted(text: str) -> str:
    """Return a text as Go's ``%q`` prints it."""
    return format_value(text)
