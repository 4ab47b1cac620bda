"""Values of CEL in device selectors, and the functions, methods and operators on them.

A function returns ``UNKNOWN`` where CEL reports an error, or where it is not supported.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from policies.kubernetes.integers import parse_integer
from policies.kubernetes.quantity import parse_quantity
from policies.kubernetes.regular_expressions import compile_pattern


class CelQuantity(NamedTuple):
    """A quantity."""

    nanos: int


class CelVersion(NamedTuple):
    """A semantic version without a pre-release."""

    major: int
    minor: int
    patch: int


class Unknown:
    """The value of an expression that is not supported, or that fails."""


UNKNOWN: Final = Unknown()

Value: TypeAlias = "str | int | bool | CelQuantity | CelVersion | Unknown | tuple[Value, ...]"

_VERSION_PARTS: Final = 3
_VERSION: Final = re.compile(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)", re.ASCII)


def negate(value: Value) -> Value:
    """Return ``!value``."""
    return not value if isinstance(value, bool) else UNKNOWN


def _equal(left: Value, right: Value) -> bool:
    # In Python True equals 1; in CEL values of different types are different.
    return type(left) is type(right) and left == right


def contains(item: Value, items: Value) -> Value:
    """Return ``item in items`` for a list."""
    if not isinstance(items, tuple) or isinstance(items, CelQuantity | CelVersion):
        return UNKNOWN
    return any(_equal(item, each) for each in items)


def _compare(left: Value, right: Value) -> int | None:
    """Return the sign of the difference of two values of one ordered type, None for others."""
    if type(left) is not type(right) or not isinstance(left, str | int | CelQuantity | CelVersion):
        return None
    # mypy does not see that both have the same type.
    return (left > right) - (left < right)  # type: ignore[operator]


def _ordered(holds: Callable[[int], bool]) -> Callable[[Value, Value], Value]:
    def compare(left: Value, right: Value) -> Value:
        found = _compare(left, right)
        primitive = isinstance(left, str | int)
        return UNKNOWN if found is None or not primitive else holds(found)

    return compare


def _method(holds: Callable[[int], Value]) -> Callable[[Value, Value], Value]:
    def compare(left: Value, right: Value) -> Value:
        found = _compare(left, right)
        return UNKNOWN if found is None or isinstance(left, str | int) else holds(found)

    return compare


def _of_texts(function: Callable[[str, str], bool]) -> Callable[[Value, Value], Value]:
    def call(left: Value, right: Value) -> Value:
        if isinstance(left, str) and isinstance(right, str):
            return function(left, right)
        return UNKNOWN

    return call


def _quantity(text: Value) -> Value:
    return CelQuantity(parse_quantity(text)) if isinstance(text, str) else UNKNOWN


def parse_version(text: Value) -> Value:
    """Return ``semver(text)``."""
    match = _VERSION.fullmatch(text) if isinstance(text, str) else None
    numbers = [] if match is None else [parse_integer(part) for part in match.groups()]
    known = [number for number in numbers if number is not None]
    return CelVersion(*known) if len(known) == _VERSION_PARTS else UNKNOWN


def _lower(text: Value) -> Value:
    return text.lower() if isinstance(text, str) and text.isascii() else UNKNOWN


FUNCTIONS: Final[dict[str, Callable[..., Value]]] = {"quantity": _quantity, "semver": parse_version}
COMPARISONS: Final[dict[str, Callable[..., Value]]] = {
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<": _ordered(lambda sign: sign < 0),
    "<=": _ordered(lambda sign: sign <= 0),
    ">": _ordered(lambda sign: sign > 0),
    ">=": _ordered(lambda sign: sign >= 0),
}
METHODS: Final[dict[str, Callable[..., Value]]] = {
    "compareTo": _method(lambda sign: sign),
    "isGreaterThan": _method(lambda sign: sign > 0),
    "isLessThan": _method(lambda sign: sign < 0),
    "startsWith": _of_texts(str.startswith),
    "endsWith": _of_texts(str.endswith),
    "contains": _of_texts(str.__contains__),
    "matches": _of_texts(lambda text, pattern: compile_pattern(pattern).matches(text)),
    "lowerAscii": _lower,
}
"""Methods by name; those that compare are of quantities and versions."""
