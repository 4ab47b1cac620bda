"""Device selectors: a subset of CEL, evaluated with three values: true, false and unknown.

Supported are literals, lists, ``device.driver``, ``device.allowMultipleAllocations``,
``device.attributes["domain"].name``, the same with ``capacity``, comparisons, ``in``, ``!``,
``&&``, ``||``, ``has``, ``quantity``, ``semver`` and a few methods. An expression with anything
else is unknown. So is one that fails, such as for an absent attribute, because that ends the
scheduling attempt upstream. As in CEL, ``false && e`` is false and ``true || e`` is true even if e
fails.

    device.driver == "gpu.example.com" && device.capacity["gpu.example.com"].memory
        .compareTo(quantity("40Gi")) >= 0

Source: k8s.io/dynamic-resource-allocation/cel/compile.go and the CEL language definition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from policies.devices.cel_functions import (
    COMPARISONS,
    FUNCTIONS,
    METHODS,
    UNKNOWN,
    CelQuantity,
    Value,
    contains,
    negate,
    parse_version,
)
from policies.kubernetes.devices import AttributeType, Device
from policies.kubernetes.integers import parse_integer

Evaluate: TypeAlias = "Callable[[str, Device], Value]"


class _UnsupportedError(ValueError):
    """The expression uses more than the subset."""


@dataclass(frozen=True, slots=True)
class Selector:
    """A compiled expression; ``attributes`` are those that it reads, as ``domain/name``."""

    evaluate: Evaluate
    attributes: frozenset[str] = frozenset()

    def matches(self, driver: str, device: Device) -> bool | None:
        """Return whether the expression selects a device of ``driver``; None if unknown."""
        found = self.evaluate(driver, device)
        return found if isinstance(found, bool) else None


@lru_cache(maxsize=4096)
def compile_selector(expression: str) -> Selector:
    """Compile an expression; an expression outside the subset is unknown for every device."""
    try:
        return _Parser(expression).parse()
    except (_UnsupportedError, RecursionError):
        return Selector(lambda _driver, _device: UNKNOWN)


_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<string>"[^"\\\n]*"|'[^'\\\n]*'|r"[^"\n]*"|r'[^'\n]*')|(?P<int>[0-9]+)(?![.\w])
    |(?P<name>[A-Za-z_][A-Za-z_0-9]*)|(?P<op>&&|\|\||[=!<>]=|[<>!.,()\[\]-]))""",
    re.VERBOSE | re.ASCII,
)
_RESERVED: Final = frozenset(("true", "false", "null", "in"))


class _Parser:
    """A recursive descent parser that returns closures."""

    def __init__(self, source: str) -> None:
        self._tokens = _tokenize(source)
        self._at = 0
        self._attributes: set[str] = set()

    def parse(self) -> Selector:
        """Return the selector of the whole expression. Raise _UnsupportedError."""
        found = self._or()
        if self._at != len(self._tokens):
            raise _UnsupportedError
        return Selector(found, frozenset(self._attributes))

    def _or(self) -> Evaluate:
        left = self._and()
        while self._accept("||"):
            left = _absorbing(left, self._and(), absorbing=True)
        return left

    def _and(self) -> Evaluate:
        left = self._relation()
        while self._accept("&&"):
            left = _absorbing(left, self._relation(), absorbing=False)
        return left

    def _relation(self) -> Evaluate:
        left = self._unary()
        for operator in ("==", "!=", "<=", ">=", "<", ">"):
            if self._accept(operator):
                return _apply(COMPARISONS[operator], (left, self._unary()))
        if not self._accept("in"):
            return left
        if self._peek("device"):
            return self._has_key()
        return _apply(contains, (left, self._unary()))

    def _unary(self) -> Evaluate:
        if self._accept("!"):
            return _apply(negate, (self._unary(),))
        if self._accept("-"):
            literal = self._take()
            number = parse_integer(f"-{literal}")
            if number is None:
                raise _UnsupportedError
            return _constant(number)
        return self._member()

    def _member(self) -> Evaluate:
        value = self._primary()
        while self._accept("."):
            method = METHODS.get(self._take())
            if method is None:
                raise _UnsupportedError
            value = _apply(method, (value, *self._arguments("(", ")")))
        return value

    def _primary(self) -> Evaluate:
        word = self._take()
        if word == "(":
            found = self._or()
            self._expect(")")
            return found
        if word == "[":
            self._at -= 1
            return _apply(lambda *items: items, self._arguments("[", "]"))
        if word == "device":
            return self._field()[1]
        if word == "has":
            self._expect("(", "device")
            exists, _ = self._field()
            self._expect(")")
            return exists
        if word in FUNCTIONS:
            return _apply(FUNCTIONS[word], self._arguments("(", ")"))
        return _constant(_literal(word))

    def _arguments(self, opening: str, closing: str) -> Sequence[Evaluate]:
        self._expect(opening)
        found: list[Evaluate] = []
        while not self._accept(closing):
            if found:
                self._expect(",")
            found.append(self._or())
        return found

    def _field(self) -> tuple[Evaluate, Evaluate]:
        """Parse what follows ``device``; return whether the field exists, and its value."""
        self._expect(".")
        name = self._take()
        if name == "driver":
            return _exists, lambda driver, _: driver
        if name == "allowMultipleAllocations":
            return _exists, lambda _, device: device.shared
        domain, key = self._key(), self._key()
        return self._reader(name, domain, key)

    def _reader(self, source: str, domain: str, key: str) -> tuple[Evaluate, Evaluate]:
        find = _READERS.get(source)
        if find is None:
            raise _UnsupportedError
        name = f"{domain}/{key}"
        if source == "attributes":
            self._attributes.add(name)

        def value(driver: str, device: Device) -> Value:
            found = find(driver, device, name)
            return UNKNOWN if found is None else found

        return lambda driver, device: find(driver, device, name) is not None, value

    def _key(self) -> str:
        """Parse ``.name`` or ``["name"]``."""
        if self._accept("."):
            name = self._take()
            if not name.isidentifier() or name in _RESERVED:
                raise _UnsupportedError
            return name
        self._expect("[")
        key = _literal(self._take())
        self._expect("]")
        if not isinstance(key, str):
            raise _UnsupportedError
        return key

    def _has_key(self) -> Evaluate:
        """Parse ``"name" in device.attributes["domain"]`` after ``in``; the name is a literal."""
        name = _literal(self._tokens[self._at - 2])
        self._expect("device", ".")
        source, domain = self._take(), self._key()
        if not isinstance(name, str):
            raise _UnsupportedError
        return self._reader(source, domain, name)[0]

    def _peek(self, token: str) -> bool:
        return self._at < len(self._tokens) and self._tokens[self._at] == token

    def _accept(self, token: str) -> bool:
        found = self._peek(token)
        self._at += found
        return found

    def _take(self) -> str:
        if self._at == len(self._tokens):
            raise _UnsupportedError
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, *tokens: str) -> None:
        for token in tokens:
            if self._take() != token:
                raise _UnsupportedError


def _tokenize(source: str) -> list[str]:
    tokens: list[str] = []
    source = source.rstrip()
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise _UnsupportedError
        tokens.append(match[0].strip())
        at = match.end()
    return tokens


def _literal(word: str) -> str | int | bool:
    if word in ("true", "false"):
        return word == "true"
    number = parse_integer(word)
    if number is not None:
        return number
    text = word.removeprefix("r")
    if text[:1] not in ("'", '"'):
        raise _UnsupportedError
    return text[1:-1]


def _exists(_driver: str, _device: Device) -> Value:
    return True


def _constant(value: Value) -> Evaluate:
    return lambda _driver, _device: value


def _apply(function: Callable[..., Value], operands: Sequence[Evaluate]) -> Evaluate:
    """Apply a function to values of which none is unknown; a failure is unknown."""

    def evaluate(driver: str, device: Device) -> Value:
        values = [each(driver, device) for each in operands]
        if UNKNOWN in values:
            return UNKNOWN
        try:
            return function(*values)
        except (TypeError, ValueError):
            return UNKNOWN

    return evaluate


def _absorbing(left: Evaluate, right: Evaluate, *, absorbing: bool) -> Evaluate:
    """Combine two operands; ``absorbing`` in either of them is the result."""

    def evaluate(driver: str, device: Device) -> Value:
        first = left(driver, device)
        if first is absorbing:
            return absorbing
        second = right(driver, device)
        if second is absorbing:
            return absorbing
        return (not absorbing) if first is second is (not absorbing) else UNKNOWN

    return evaluate


def stored_names(name: str, driver: str) -> tuple[str, ...]:
    """Return the names under which a driver may publish ``domain/name``.

    A name without a domain belongs to the driver's own.
    """
    domain, _, short = name.partition("/")
    return (name, short) if domain == driver else (name,)


def _attribute(driver: str, device: Device, name: str) -> Value | None:
    for stored in stored_names(name, driver):
        found = device.attributes.get(stored)
        if found is not None:
            match found.type:
                case AttributeType.UNSUPPORTED:
                    return UNKNOWN
                case AttributeType.VERSION:
                    return parse_version(found.value)
            return found.value
    return None


def _capacity(driver: str, device: Device, name: str) -> Value | None:
    for stored in stored_names(name, driver):
        found = device.capacity.get(stored)
        if found is not None:
            return CelQuantity(found.value)
    return None


_READERS: Final = {"attributes": _attribute, "capacity": _capacity}
