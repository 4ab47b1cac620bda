"""Evaluation of common expressions in Python, on values as they are.

The library copies a value into its own form before it reads it, and a list again for each macro.
That takes longer than most expressions, so those of the usual parts are compiled to closures:
selections, comparisons, conditions, sums and products of integers, calls of functions, and macros
over lists and maps.

Only results are computed here. An error, or a value of a type that is not expected, raises one of
``NATIVE_ERRORS``; then the library evaluates the expression again, and reports the error.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from extender.cel.expression_parser import parse
from extender.cel.kubernetes_functions import FUNCTIONS
from extender.cel.native_errors import NotNativeError
from extender.cel.parser import MATCHES
from extender.cel.syntax_tree import (
    Call,
    Comprehension,
    ListLiteral,
    Literal,
    Name,
    Node,
    Selection,
)

Scope = dict[str, Any]
"""The variables, and the functions that only one evaluation has."""
Evaluation = Callable[[Scope], Any]


_ABSENT: Final = object()
"""The optional value that has no value."""


def compile_natively(source: str, functions: frozenset[str]) -> Evaluation | None:
    """Return the evaluation of an expression; None if the library must evaluate it.

    ``functions`` are those that the scope of an evaluation has.
    """
    try:
        root, errors = parse(source)
        return None if errors else _Compiler(functions).compile_value(root, {})
    except (NotNativeError, RecursionError):
        return None


_Names = Mapping[str, str]
"""The keys of macros' variables in a scope."""


class _Compiler:
    def __init__(self, functions: frozenset[str]) -> None:
        self._functions = functions
        self._variables = 0

    def compile_value(self, node: Node, names: _Names) -> Evaluation:
        """Return the evaluation of a node that is not optional."""
        if _is_optional(node):
            raise NotNativeError
        return self.compile(node, names)

    def compile(self, node: Node, names: _Names) -> Evaluation:
        match node:
            case Literal(value=value) if node.type_name != "uint":
                return lambda _scope: value
            case Name(name=name):
                return operator.itemgetter(names.get(name, name))
            case Selection():
                return self._selection(node, names)
            case ListLiteral() if not node.optional:
                elements = [self.compile_value(each, names) for each in node.elements]
                return lambda scope: [each(scope) for each in elements]
            case Call():
                return self._call(node, names)
            case Comprehension():
                return self._comprehension(node, names)
            case _:
                raise NotNativeError

    def _selection(self, node: Selection, names: _Names) -> Evaluation:
        operand, field = self.compile(node.operand, names), node.field
        if _is_optional(node.operand):
            if node.tests:
                raise NotNativeError
            return lambda scope: _optional_field(operand(scope), field)
        if node.tests:
            return lambda scope: field in _as(dict, operand(scope))
        return lambda scope: operand(scope)[field]  # no other type has a text as its key

    def _call(self, node: Call, names: _Names) -> Evaluation:
        operands = node.arguments if node.target is None else (node.target, *node.arguments)
        if any(map(_is_optional, operands)) and node.function not in _OF_OPTIONALS:
            raise NotNativeError
        if node.function in ("hasValue", "orValue") and not _is_optional(operands[0]):
            raise NotNativeError
        compiled = [self.compile(each, names) for each in operands]
        if node.function in _LAZY:
            return _LAZY[node.function](*compiled)
        if node.function in _BINARY and len(compiled) == 2:
            one, two = compiled
            function = _BINARY[node.function]
            return lambda scope: function(one(scope), two(scope))
        if node.function in self._functions:
            name = node.function
            return lambda scope: scope[name](*[each(scope) for each in compiled])
        known = _KNOWN.get(node.function)
        if known is None:
            raise NotNativeError
        return lambda scope: known(*[each(scope) for each in compiled])

    def _comprehension(self, node: Comprehension, names: _Names) -> Evaluation:
        self._variables += 1
        keys = {name: f"{name} {self._variables}" for name in (node.first, node.second) if name}
        inner = {**names, **keys}
        operand, step = self.compile_value(node.operand, names), node.step
        if not isinstance(step, Call) or not isinstance(node.result, Name):
            raise NotNativeError
        if step.function in _QUANTIFIERS:
            holds = self.compile_value(step.arguments[1], inner)
            return _quantifier(operand, [*keys.values()], holds, ends=_QUANTIFIERS[step.function])
        test: Evaluation | None = None
        if step.function == "_?_:_":
            test, step = self.compile_value(step.arguments[0], inner), step.arguments[1]
        added = step.arguments[-1] if isinstance(step, Call) and step.function == "_+_" else None
        if not isinstance(added, ListLiteral) or not isinstance(node.initial, ListLiteral):
            raise NotNativeError
        value = self.compile_value(added.elements[0], inner)
        return _transformation(operand, [*keys.values()], test, value)


def _entries(values: Any, keys: Sequence[str]) -> Any:
    """Return what a macro iterates over: keys or elements, or pairs for two variables."""
    if type(values) is not list and type(values) is not dict:
        raise NotNativeError
    if len(keys) == 1:
        return values
    return values.items() if type(values) is dict else enumerate(values)


def _quantifier(
    operand: Evaluation, keys: Sequence[str], holds: Evaluation, *, ends: bool
) -> Evaluation:
    """Return a quantifier; a test with the result ``ends`` is its result."""
    is_pair, first, last = len(keys) == 2, keys[0], keys[-1]

    def evaluate(scope: Scope) -> bool:
        for entry in _entries(operand(scope), keys):
            if is_pair:
                scope[first], scope[last] = entry
            else:
                scope[first] = entry
            found: bool = _as(bool, holds(scope))
            if found is ends:
                return found
        return not ends

    return evaluate


_QUANTIFIERS: Final = {"_&&_": False, "_||_": True}


def _transformation(
    operand: Evaluation, keys: Sequence[str], test: Evaluation | None, value: Evaluation
) -> Evaluation:
    def evaluate(scope: Scope) -> list[Any]:
        found = []
        for entry in _entries(operand(scope), keys):
            scope |= zip(keys, entry if len(keys) == 2 else (entry,), strict=True)
            if test is None or _as(bool, test(scope)):
                found.append(value(scope))
        return found

    return evaluate


def _as(expected: type, value: Any) -> Any:
    """Return a value of a type. Raise NotNativeError for another one."""
    if isinstance(value, expected):
        return value
    raise NotNativeError


def _is_optional(node: Node) -> bool:
    """Return whether a node is an optional field, or a field below one."""
    if isinstance(node, Selection):
        return _is_optional(node.operand)
    return isinstance(node, Call) and node.function == "_?._"


def _optional_field(holder: Any, field: str) -> Any:
    return _ABSENT if holder is _ABSENT else _as(dict, holder).get(field, _ABSENT)


def _or_value(optional: Evaluation, other: Evaluation) -> Evaluation:
    def evaluate(scope: Scope) -> Any:
        value = optional(scope)
        return other(scope) if value is _ABSENT else value

    return evaluate


def _condition(test: Evaluation, one: Evaluation, two: Evaluation) -> Evaluation:
    return lambda scope: one(scope) if _as(bool, test(scope)) else two(scope)


def _conjunction(one: Evaluation, two: Evaluation) -> Evaluation:
    return lambda scope: _as(bool, one(scope)) and _as(bool, two(scope))


def _disjunction(one: Evaluation, two: Evaluation) -> Evaluation:
    return lambda scope: _as(bool, one(scope)) or _as(bool, two(scope))


_LAZY: Final[Mapping[str, Callable[..., Evaluation]]] = {
    "_&&_": _conjunction,
    "_||_": _disjunction,
    "_?_:_": _condition,
    "!_": lambda one: lambda scope: not _as(bool, one(scope)),
    "orValue": _or_value,
    "hasValue": lambda optional: lambda scope: optional(scope) is not _ABSENT,
}
_OF_OPTIONALS: Final = ("_?._", "hasValue", "orValue")
_SCALARS: Final = (str, int, bool)
_ORDERED: Final = (str, int, float)


def _equal(one: Any, two: Any) -> bool:
    if type(one) is type(two) and type(one) in _SCALARS:
        return bool(one == two)
    if one is None or two is None:
        return one is two
    raise NotNativeError


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def evaluate(one: Any, two: Any) -> bool:
        if type(one) is type(two) and type(one) in _ORDERED:
            return compare(one, two)
        raise NotNativeError

    return evaluate


def _is_in(value: Any, values: Any) -> bool:
    if isinstance(value, str) and isinstance(values, list | dict):
        return value in values
    raise NotNativeError


def _element(holder: Any, key: Any) -> Any:
    if isinstance(holder, list) and (type(key) is not int or key < 0):
        raise NotNativeError
    return _as(list, holder)[key] if type(key) is int else _as(dict, holder)[_as(str, key)]


def _add(one: Any, two: Any) -> Any:
    if type(one) is type(two) and type(one) in (str, list):
        return one + two
    return _sum(one, two)


def _of_integers(function: Callable[[int, int], int]) -> Callable[[Any, Any], int]:
    """Return an operator of integers, whose result has to fit 64 bits."""

    def evaluate(one: Any, two: Any) -> int:
        if type(one) is int and type(two) is int:
            found = function(one, two)
            if -(2**63) <= found < 2**63:
                return found
        raise NotNativeError

    return evaluate


def _quotient(one: int, two: int) -> int:
    """Return a quotient that is rounded towards zero, as Go's."""
    found = abs(one) // abs(two)
    return found if (one < 0) is (two < 0) else -found


_sum: Final = _of_integers(operator.add)


def _of_texts(function: Callable[[str, str], bool]) -> Callable[[Any, Any], bool]:
    return lambda one, two: function(_as(str, one), _as(str, two))


def _size(value: Any) -> int:
    if type(value) in (str, list, dict):
        return len(value)
    raise NotNativeError


_BINARY: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "_==_": _equal,
    "_!=_": lambda one, two: not _equal(one, two),
    "_<_": _ordered(operator.lt),
    "_<=_": _ordered(operator.le),
    "_>_": _ordered(operator.gt),
    "_>=_": _ordered(operator.ge),
    "_+_": _add,
    "_-_": _of_integers(operator.sub),
    "_*_": _of_integers(operator.mul),
    "_/_": _of_integers(_quotient),
    "_%_": _of_integers(lambda one, two: one - two * _quotient(one, two)),
    "_[_]": _element,
    "_?._": _optional_field,
    "@in": _is_in,
    "contains": _of_texts(operator.contains),
    "endsWith": _of_texts(str.endswith),
    "matches": _of_texts(FUNCTIONS[MATCHES]),
    "startsWith": _of_texts(str.startswith),
}
_KNOWN: Final[Mapping[str, Callable[..., Any]]] = {"size": _size, **FUNCTIONS}
