"""Faults of a value, as a schema's checks find them, and what clients are told of them.

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
    """A cause, its field relative to the value; ``adrift``: upstream does not say in which."""

    cause: Cause
    adrift: bool = False


Faults = list[Fault]


def path_of(where: Where) -> str:
    """Write a path as messages do."""
    return spell(where)


def causes_of(faults: Iterable[Fault], root: str = "") -> list[Cause]:
    """Return what clients are told, each thing once; ``root`` is where the value stands."""
    causes: dict[tuple[str, str], Cause] = {}
    for fault in faults:
        path = root if fault.adrift else ".".join(filter(None, (root, fault.cause.field)))
        cause = fault.cause
        causes.setdefault(
            (path, cause.message), Cause(cause.reason, cause.message, path or NOWHERE)
        )
    return list(causes.values())


def broken(where: Where, value: Any, rule: str) -> Fault:
    """Say that a value breaks a rule, which is worded to follow the path."""
    path = path_of(where)
    return Fault(invalid_value(path, value, f"{path} in body {rule}"))


def mistyped(where: Where, types: str, found: str) -> Fault:
    """Say that a value is of another type than those allowed, or that a text is not of a format."""
    path = path_of(where)
    detail = f"{path} in body must be of type {types}: {quoted(found)}"
    message = f"Invalid value: {quoted(found)}: {detail}"
    return Fault(Cause("FieldValueTypeInvalid", message, path))


def unwelcome(where: Where, name: str) -> Fault:
    """Say that an object may have no other fields than those it knows."""
    path = path_of(where)
    return Fault(invalid_value(path, name, f"{path}.{name} in body is a forbidden property"))


def missing(where: Where) -> Fault:
    """Say that a field must be there."""
    return Fault(required(path_of(where)))


def too_long(where: Where, most: int) -> Fault:
    """Say that a text is too long."""
    noun = "byte" if most == 1 else "bytes"
    message = f"Too long: may not be more than {most} {noun}"
    return Fault(Cause("FieldValueTooLong", message, path_of(where)))


def too_many(where: Where, count: int, most: int) -> Fault:
    """Say that a list has too many elements, or an object too many fields."""
    return Fault(too_many_at(path_of(where), count, most))


def too_many_at(path: str, count: int, most: int) -> Cause:
    """Say that there are more of something than may be."""
    noun = "item" if most == 1 else "items"
    return Cause("FieldValueTooMany", f"Too many: {count}: must have at most {most} {noun}", path)


def not_among(where: Where, value: Any, choices: Sequence[Any]) -> Fault:
    """Say that a value is none of those that there are."""
    names = [c if isinstance(c, str) else orjson.dumps(c).decode() for c in choices]
    return Fault(unsupported(path_of(where), value, names))


def adrift(message: str) -> Fault:
    """Return a fault that upstream tells without its field."""
    return Fault(Cause("FieldValueInvalid", f'Invalid value: "": {message}'), adrift=True)


def quoted(text: str) -> str:
    """Write a text as Go's ``%q`` does."""
    return shown(text)
