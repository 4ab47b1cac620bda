"""Types of CEL, and whether a value of one type can be used as another.

Free types (``A`` of a declared function, ``_var1`` of an empty list) are bound while an expression
is checked. Bindings are a plain dictionary, copied for every attempt that may fail.

Source: github.com/google/cel-go/checker/types.go, format.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal[
    "simple", "free", "dyn", "error", "opaque", "list", "map", "type", "message"
]


@dataclass(frozen=True, slots=True)
class CelType:
    """A type; ``fields`` are those of a message type that is declared by a schema."""

    kind: Kind
    name: str
    parameters: tuple[CelType, ...] = ()
    fields: Mapping[str, CelType] | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        """Return the type as errors of the type checker print it."""
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"


Bindings: TypeAlias = dict[str, CelType]

DYN: Final = CelType("dyn", "dyn")
ERROR: Final = CelType("error", "!error!")
BOOL: Final = CelType("simple", "bool")
BYTES: Final = CelType("simple", "bytes")
DOUBLE: Final = CelType("simple", "double")
DURATION: Final = CelType("simple", "duration")
INT: Final = CelType("simple", "int")
NULL: Final = CelType("simple", "null")
STRING: Final = CelType("simple", "string")
TIMESTAMP: Final = CelType("simple", "timestamp")
UINT: Final = CelType("simple", "uint")

SIMPLE: Final = {
    t.name: t for t in (BOOL, BYTES, DOUBLE, DURATION, INT, NULL, STRING, TIMESTAMP, UINT)
}
_NULLABLE: Final = (NULL, DURATION, TIMESTAMP)
_RUNTIME_NAMES: Final = {
    "duration": "google.protobuf.Duration",
    "null": "null_type",
    "timestamp": "google.protobuf.Timestamp",
}


def list_of(element: CelType) -> CelType:
    """Return the type of lists of an element type."""
    return CelType("list", "list", (element,))


def map_of(key: CelType, value: CelType) -> CelType:
    """Return the type of maps."""
    return CelType("map", "map", (key, value))


def optional_of(value: CelType) -> CelType:
    """Return the type of optional values."""
    return CelType("opaque", "optional_type", (value,))


def type_of(value: CelType) -> CelType:
    """Return the type of a type."""
    return CelType("type", "type", (value,))


def free(name: str) -> CelType:
    """Return a type that is not known yet."""
    return CelType("free", name)


def runtime_name(found: CelType) -> str:
    """Return a type as values of it print it."""
    name = _RUNTIME_NAMES.get(found.name, found.name)
    if not found.parameters:
        return name
    return f"{name}({', '.join(map(runtime_name, found.parameters))})"


def unwrap_optional(found: CelType) -> tuple[CelType, bool]:
    """Return the type of the value of an optional type, and whether it is one."""
    is_optional = found.name == "optional_type" and bool(found.parameters)
    return (found.parameters[0], True) if is_optional else (found, False)


def substitute(found: CelType, bindings: Bindings, *, unbound: CelType | None = None) -> CelType:
    """Return a type with its free types replaced; those without a binding become ``unbound``."""
    if found.kind == "free" and found.name in bindings:
        return substitute(bindings[found.name], bindings, unbound=unbound)
    if found.kind == "free":
        return found if unbound is None else unbound
    if not found.parameters:
        return found
    parameters = tuple(substitute(p, bindings, unbound=unbound) for p in found.parameters)
    return CelType(found.kind, found.name, parameters, found.fields)


def assign(
    target: tuple[CelType, ...], given: tuple[CelType, ...], bindings: Bindings
) -> Bindings | None:
    """Return the bindings under which the given types can be used as the targets; else None."""
    if len(target) != len(given):
        return None
    tried = dict(bindings)
    pairs = zip(target, given, strict=True)
    return tried if all(_is_assignable(one, two, tried) for one, two in pairs) else None


def most_general(one: CelType, two: CelType) -> CelType:
    """Return the less specific one of two types that agree."""
    return one if _is_less_specific(one, two) else two


def _is_assignable(one: CelType, two: CelType, bindings: Bindings) -> bool:
    if two.kind == "free":
        is_valid, is_bound = _bind(one, two, bindings)
        if is_valid or is_bound:
            return is_valid
    if one.kind == "free":
        return _bind(two, one, bindings)[0]
    if one.kind in ("dyn", "error") or two.kind in ("dyn", "error"):
        return True
    if NULL in (one, two):
        other = two if one == NULL else one
        return other in _NULLABLE or other.kind in ("opaque", "message")
    if one.kind == "type":
        return two.kind == "type"
    if one.kind in ("list", "map", "opaque"):
        same = one.kind == two.kind and one.name == two.name
        return same and _are_assignable(one.parameters, two.parameters, bindings)
    return one == two


def _are_assignable(one: tuple[CelType, ...], two: tuple[CelType, ...], bindings: Bindings) -> bool:
    same = len(one) == len(two)
    return same and all(_is_assignable(a, b, bindings) for a, b in zip(one, two, strict=True))


def _bind(value: CelType, variable: CelType, bindings: Bindings) -> tuple[bool, bool]:
    """Bind a free type to a value; return whether that is valid, and whether it was bound."""
    if value == variable:
        return True, True
    bound = bindings.get(variable.name)
    if bound is not None:
        if value == bound:
            return True, True
        if not _is_assignable(value, bound, bindings):
            return False, True
        general = most_general(value, bound)
        if not _refers(general, variable, bindings):
            bindings[variable.name] = general
        return True, True
    if _refers(value, variable, bindings):
        return False, False
    bindings[variable.name] = value
    return True, False


def _refers(found: CelType, variable: CelType, bindings: Bindings) -> bool:
    if found == variable:
        return True
    if found.kind == "free":
        bound = bindings.get(found.name)
        return bound is not None and _refers(bound, variable, bindings)
    return any(_refers(each, variable, bindings) for each in found.parameters)


def _is_less_specific(one: CelType, two: CelType) -> bool:
    if one.kind in ("dyn", "free"):
        return True
    if two.kind in ("dyn", "free") or one.kind != two.kind:
        return False
    if one.kind == "type":
        return True
    if one.name != two.name or len(one.parameters) != len(two.parameters):
        return False
    pairs = zip(one.parameters, two.parameters, strict=True)
    return all(_is_less_specific(a, b) for a, b in pairs)
