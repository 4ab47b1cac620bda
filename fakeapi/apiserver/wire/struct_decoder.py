"""Typed decoding: a JSON document is reduced to the values that its Go struct would hold.

A real server decodes every body into a struct of the kind and drops what does not fit:

- a field that the kind does not have is *unknown* and dropped (with a warning or an error);
- a value of another type is an error, in the words of Go's decoder;
- ``null`` is the same as a missing field, and so is an empty list or map;
- quantities are written in their canonical form.

Kinds without a schema keep everything. The document is changed in place.

Sources: sigs.k8s.io/json, encoding/json (UnmarshalTypeError), apimachinery's Quantity, Time and
IntOrString.
"""

from __future__ import annotations

import re
from base64 import b64decode
from calendar import monthrange
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from fakeapi.apiserver.kinds.structural_types import (
    ListType,
    MapType,
    Scalar,
    Struct,
    Type,
    Untyped,
)
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.go_format import json_type, quote
from policies.kubernetes.quantity import MALFORMED, canonical

LinkedPath = tuple[Any, str] | None
"""A field path as a linked list: the parent path and the last step; indices are in brackets."""


class StructDecodeError(ValueError):
    """A value has the wrong type for its field; the message is that of Go."""


class FieldTypeError(StructDecodeError):
    """A value has another JSON type than its field.

    ``conversion`` is the message of the converter that strategic merge patches go through.
    """

    def __init__(self, message: str, shape: Type, value: Any) -> None:
        super().__init__(message)
        self.conversion = _conversion_error(shape, value)


def _conversion_error(shape: Type, value: Any) -> str:
    """Return an error in the words of pkg/runtime/converter.go of k8s.io/apimachinery."""
    found = next(name for python_type, name in _GO_KINDS if isinstance(value, python_type))
    if isinstance(shape, Struct):
        return f"cannot restore struct from: {found}"
    if isinstance(shape, ListType | MapType):
        return f"cannot restore {'slice' if isinstance(shape, ListType) else 'map'} from {found}"
    expected = _go_type_name(shape)
    is_number = found in ("int64", "float64")
    if is_number and expected != "bool" and (expected != "string" or found == "int64"):
        return f"cannot convert {found} to {expected}"
    return f"unrecognized type: {expected}"


_GO_KINDS: Final[tuple[tuple[type, str], ...]] = (
    (bool, "bool"),
    (int, "int64"),
    (float, "float64"),
    (str, "string"),
    (list, "slice"),
    (dict, "map"),
)


def decode_struct(shape: Struct | Untyped, document: Document) -> tuple[str, ...]:
    """Drop the fields of ``document`` that do not fit, and return the paths of unknown fields.

    Raise StructDecodeError.
    """
    if isinstance(shape, Untyped):
        return ()
    unknown: list[str] = []
    _struct(shape, document, None, unknown)
    return tuple(unknown)


def _struct(shape: Struct, value: dict[str, Any], where: LinkedPath, unknown: list[str]) -> None:
    fields = shape.fields
    for key, item in list(value.items()):
        field = fields.get(key)
        if field is None:
            unknown.append(format_path((where, key)))
            del value[key]
        elif item is None:
            del value[key]
        else:
            decoded = _value(field.type, item, shape, (where, key), unknown)
            if decoded is not item:
                value[key] = decoded
            elif not item and isinstance(field.type, ListType | MapType):
                _drop_empty(value, key, required=field.required)


def _drop_empty(value: dict[str, Any], key: str, *, required: bool) -> None:
    """Drop an empty list or map, as ``omitempty`` does; a required list becomes null."""
    if required and isinstance(value[key], list):
        value[key] = None
    elif not required and key != "managedFields":  # an empty one resets all owners
        del value[key]


def _value(shape: Type, item: Any, owner: Struct, where: LinkedPath, unknown: list[str]) -> Any:
    """Decode one value; ``owner`` is the struct that contains the field."""
    if isinstance(shape, Scalar):
        return _SCALARS[shape.type](shape, item, owner, where)
    if isinstance(shape, Struct):
        if not isinstance(item, dict):
            raise _type_error(shape, item, owner, where)
        _struct(shape, item, where, unknown)
    elif isinstance(shape, ListType):
        if not isinstance(item, list):
            raise _type_error(shape, item, owner, where)
        _elements(shape.element, item, owner, where, unknown)
    elif isinstance(shape, MapType):
        if not isinstance(item, dict):
            raise _type_error(shape, item, owner, where)
        _entries(shape.value, item, owner, where, unknown)
    return item


def _elements(
    shape: Type, items: list[Any], owner: Struct, where: LinkedPath, unknown: list[str]
) -> None:
    for index, item in enumerate(items):
        if item is None:
            items[index] = _zero(shape)
        else:
            items[index] = _value(shape, item, owner, (where, f"[{index}]"), unknown)


def _entries(
    shape: Type, entries: dict[str, Any], owner: Struct, where: LinkedPath, unknown: list[str]
) -> None:
    for key, item in entries.items():
        entries[key] = (
            _zero(shape) if item is None else _value(shape, item, owner, (where, key), unknown)
        )


def _zero(shape: Type) -> Any:
    """Return Go's value for a null inside a list or map."""
    if isinstance(shape, Scalar):
        return {"string": "", "boolean": False, "quantity": "0"}.get(shape.type, 0)
    return [] if isinstance(shape, ListType) else {}


def _text(shape: Scalar, item: Any, owner: Struct, where: LinkedPath) -> Any:
    if not isinstance(item, str):
        raise _type_error(shape, item, owner, where)
    check = _FORMATS.get(shape.format)
    if check is not None:
        check(item)
    return item


def _integer(shape: Scalar, item: Any, owner: Struct, where: LinkedPath) -> Any:
    limit = 2**31 if shape.format == "int32" else 2**63
    if not isinstance(item, int) or isinstance(item, bool) or not -limit <= item < limit:
        raise _type_error(shape, item, owner, where)
    return item


def _number(shape: Scalar, item: Any, owner: Struct, where: LinkedPath) -> Any:
    if not isinstance(item, int | float) or isinstance(item, bool):
        raise _type_error(shape, item, owner, where)
    return item


def _boolean(shape: Scalar, item: Any, owner: Struct, where: LinkedPath) -> Any:
    if not isinstance(item, bool):
        raise _type_error(shape, item, owner, where)
    return item


def _quantity(_shape: Scalar, item: Any, _owner: Struct, _where: LinkedPath) -> Any:
    if isinstance(item, bool) or not isinstance(item, str | int | float):
        raise StructDecodeError(MALFORMED)
    try:
        return canonical(item if isinstance(item, str) else repr(item))
    except ValueError as error:
        raise StructDecodeError(str(error)) from None


_INT32: Final = Scalar("integer", "int32")


def _int_or_string(_shape: Scalar, item: Any, owner: Struct, where: LinkedPath) -> Any:
    return item if isinstance(item, str) else _integer(_INT32, item, owner, where)


_SCALARS: Final[Mapping[str, Callable[[Scalar, Any, Struct, LinkedPath], Any]]] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "quantity": _quantity,
    "int-or-string": _int_or_string,
}

_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*")


def _check_time(item: str) -> None:
    _check_time_as(item, "2006-01-02T15:04:05Z07:00")


def _check_micro_time(item: str) -> None:
    _check_time_as(item, "2006-01-02T15:04:05.000000Z07:00")


@lru_cache(maxsize=1024)
def _check_time_as(item: str, layout: str) -> None:
    """Check a time as time.Parse does; raise StructDecodeError.

    An object has the same few times in many places, and is decoded with each write.
    """
    numbers, at = [], 0
    for pattern, element, most in _TIME_ELEMENTS:
        found = re.compile(pattern, re.ASCII).match(item, at)
        if found is None:
            rest = f"cannot parse {quote(item[at:])} as {quote(element)}"
            raise StructDecodeError(f'parsing time {quote(item)} as "{layout}": {rest}')
        at = found.end()
        if most:
            numbers.append(int(found[0]))
            if numbers[-1] > most or (most == _MONTHS and not numbers[-1]):
                name = _TIME_NAMES[len(numbers) - 1]
                raise StructDecodeError(f"parsing time {quote(item)}: {name} out of range")
    if item[at:]:
        rest = f"extra text: {quote(item[at:])}"
        raise StructDecodeError(f"parsing time {quote(item)}: {rest}")
    year, month, day = numbers[:3]
    if not 1 <= day <= monthrange(year or 4, month)[1]:
        raise StructDecodeError(f"parsing time {quote(item)}: day out of range")


_MONTHS: Final = 12
_TIME_NAMES: Final = ("year", "month", "day", "hour", "minute", "second")
_TIME_ELEMENTS: Final = (
    (r"\d{4}", "2006", 9999),
    ("-", "-", 0),
    (r"\d\d", "01", _MONTHS),
    ("-", "-", 0),
    (r"\d\d", "02", 31),
    ("T", "T", 0),
    (r"\d\d", "15", 23),
    (":", ":", 0),
    (r"\d\d", "04", 59),
    (":", ":", 0),
    (r"\d\d", "05", 59),
    (r"(?:\.\d+)?(?:Z|[-+]\d\d:\d\d)", "Z07:00", 0),
)
"""What a time consists of: a pattern, its name in a layout, and the most of a number."""


def _check_base64(item: str) -> None:
    compact = item.replace("\r", "").replace("\n", "")
    try:
        b64decode(compact, validate=True)
    except ValueError:
        match = _BASE64.match(compact)
        valid = match.end() if match else 0
        at = valid if valid < len(compact.rstrip("=")) else len(compact) // 4 * 4
        raise StructDecodeError(f"illegal base64 data at input byte {at}") from None


_FORMATS: Final[Mapping[str, Callable[[str], None]]] = {
    "byte": _check_base64,
    "date-time": _check_time,
    "micro-time": _check_micro_time,
}


def _type_error(shape: Type, item: Any, owner: Struct, where: LinkedPath) -> StructDecodeError:
    found = json_type(item)
    if found == "number" and isinstance(shape, Scalar) and shape.type == "integer":
        found = f"number {item!r}"
    name = owner.name.rpartition(".")[2]
    path = ".".join(step for step in _steps(where) if not step.startswith("["))
    if isinstance(shape, Scalar) and isinstance(_container(owner, where), MapType):
        path = path.rpartition(".")[0]
    message = (
        f"json: cannot unmarshal {found} into Go struct field {name}.{path} "
        f"of type {_go_type_name(shape)}"
    )
    return FieldTypeError(message, shape, item)


def _container(owner: Struct, where: LinkedPath) -> Type | None:
    """Return the type of the owner's field, if the path ends one step below that field."""
    steps = _steps(where)
    field = owner.fields.get(steps[-2]) if len(steps) > 1 else None
    return field.type if field is not None and steps[-1] not in owner.fields else None


def _go_type_name(shape: Type) -> str:
    """Return the name of a type as Go prints it."""
    if isinstance(shape, Struct):
        return ".".join(shape.name.split(".")[-2:])
    if isinstance(shape, ListType):
        return f"[]{_go_type_name(shape.element)}"
    if isinstance(shape, MapType):
        return f"map[string]{_go_type_name(shape.value)}"
    if isinstance(shape, Scalar):
        return _GO_NAMES.get((shape.type, shape.format)) or _GO_NAMES[shape.type, ""]
    return "interface {}"


_GO_NAMES: Final[Mapping[tuple[str, str], str]] = {
    ("string", ""): "string",
    ("string", "byte"): "[]uint8",
    ("integer", ""): "int64",
    ("integer", "int32"): "int32",
    ("number", ""): "float64",
    ("boolean", ""): "bool",
    ("quantity", ""): "resource.Quantity",
    ("int-or-string", ""): "intstr.IntOrString",
}


def format_path(where: LinkedPath) -> str:
    """Return a path as messages write it: ``spec.containers[0].ports``."""
    return ".".join(_steps(where)).replace(".[", "[")


def _steps(where: LinkedPath) -> list[str]:
    steps: list[str] = []
    while where is not None:
        where, step = where
        steps.append(step)
    return steps[::-1]
