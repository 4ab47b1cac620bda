"""Errors of a value, as a schema's checks find them, and their causes in a Status.

Sources: k8s.io/kube-openapi/pkg/validation/errors/schema.go; kubeOpenAPIResultToFieldErrors in
k8s.io/apiextensions-apiserver/pkg/apiserver/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import orjson

from fakeapi.api.causes import invalid_value, required, shown, unsupported
from fakeapi.api.decoding import Where, spell
from fakeapi.api.errors import Cause

NOWHERE = "<nil>"


class Fault(NamedTuple):
    """A cause with its field relative to the value; ``without_field``: upstream has no field."""

    cause: Cause
    adrift: bool = False


Faults = list[Fault]


def path_of(where: Where) -> str:
    """Return a path as messages print it."""
    return spell(where)


def causes_of(faults: Iterable[Fault], root: str = "") -> list[Cause]:
    """Return the causes of errors without duplicates; ``root`` is the path of the value."""
    causes: dict[tuple[str, str], Cause] = {}
    for fault in faults:
        path = root if fault.adrift else ".".join(filter(None, (root, fault.cause.field)))
        cause = fault.cause
        causes.setdefault(
            (path, cause.message), Cause(cause.reason, cause.message, path or NOWHERE)
        )
    return list(causes.values())


def broken(where: Where, value: Any, rule: str) -> Fault:
    """Return the error of a value that violates a rule; the rule's text follows the path."""
    path = path_of(where)
    return Fault(invalid_value(path, value, f"{path} in body {rule}"))


def mistyped(where: Where, types: str, found: str) -> Fault:
    """Return the error of a value of another type, or of a string of another format."""
    path = path_of(where)
    detail = f"{path} in body must be of type {types}: {quoted(found)}"
    message = f"Invalid value: {quoted(found)}: {detail}"
    return Fault(Cause("FieldValueTypeInvalid", message, path))


def unwelcome(where: Where, name: str) -> Fault:
    """Return the error of an object's field that the schema forbids."""
    path = path_of(where)
    return Fault(invalid_value(path, name, f"{path}.{name} in body is a forbidden property"))


def missing(where: Where) -> Fault:
    """Return the error of a required field that is missing."""
    return Fault(required(path_of(where)))


def too_long(where: Where, most: int) -> Fault:
    """Return the error of a string that is too long."""
    noun = "byte" if most == 1 else "bytes"
    message = f"Too long: may not be more than {most} {noun}"
    return Fault(Cause("FieldValueTooLong", message, path_of(where)))


def too_many(where: Where, count: int, most: int) -> Fault:
    """Return the error of a list with too many items, or an object with too many fields."""
    return Fault(too_many_at(path_of(where), count, most))


def too_many_at(path: str, count: int, most: int) -> Cause:
    """Return the cause of a list or an object at a path that has too many items."""
    noun = "item" if most == 1 else "items"
    return Cause("FieldValueTooMany", f"Too many: {count}: must have at most {most} {noun}", path)


def not_among(where: Where, value: Any, choices: Sequence[Any]) -> Fault:
    """Return the error of a value that is not among the supported ones."""
    names = [c if isinstance(c, str) else orjson.dumps(c).decode() for c in choices]
    return Fault(unsupported(path_of(where), value, names))


def adrift(message: str) -> Fault:
    """Return an error of a quantifier or number, which upstream reports without its field."""
    return Fault(Cause("FieldValueInvalid", f'Invalid value: "": {message}'), adrift=True)


def quoted(text: str) -> str:
    """Return a text as Go's ``%q`` prints it."""
    return shown(text)
