"""Macros of CEL, expanded to comprehensions, conditions and tests of presence.

    list.all(x, test)       fold list with @result = true: @result && test
    list.map(x, value)      fold list with @result = []: @result + [value]
    a.optMap(x, value)      a.hasValue() ? optional.of(value, with x = a.value()) : optional.none()

Sources: github.com/google/cel-go/parser/macro.go, cel/library.go, ext/{comprehensions,lists}.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from extender.cel.syntax_tree import (
    Call,
    Comprehension,
    ListLiteral,
    Literal,
    MapLiteral,
    MessageLiteral,
    Name,
    Node,
    Selection,
)

ACCUMULATOR: Final = "@result"
_VISIBLE_ACCUMULATOR: Final = "__result__"
_SORTED: Final = "@__sortBy_input__"
_UNUSED: Final = "#unused"


class MacroError(ValueError):
    """A macro is malformed at an offset."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at


def expand_macro(call: Call) -> Node:
    """Return the expansion of a call, or the call itself. Raise MacroError."""
    macro = _MACROS.get((call.function, len(call.arguments), call.target is not None))
    return call if macro is None else macro(call, call.target or call)


_Macro = Callable[[Call, Node], Node]


def _presence(call: Call, _target: Node) -> Node:
    selected = call.arguments[0]
    if not isinstance(selected, Selection):
        raise MacroError(selected.at, "invalid argument to has() macro")
    return Selection(call.at, selected.operand, selected.field, tests=True)


def _quantifier(call: Call, target: Node) -> Node:
    at, test = call.at, call.arguments[-1]
    result = Name(at, ACCUMULATOR)
    if call.function == "all":
        initial, condition, function = _bool(at, value=True), _continues(at, result), "_&&_"
        return _fold(call, target, initial, condition, _op(at, function, result, test), result)
    if call.function == "exists":
        initial = _bool(at, value=False)
        condition = _continues(at, _op(at, "!_", result))
        return _fold(call, target, initial, condition, _op(at, "_||_", result, test), result)
    one = Literal(at, "int", 1)
    step = _op(at, "_?_:_", test, _op(at, "_+_", result, one), result)
    always = _bool(at, value=True)
    found = _op(at, "_==_", result, one)
    return _fold(call, target, Literal(at, "int", 0), always, step, found)


def _continues(at: int, condition: Node) -> Node:
    return _op(at, "@not_strictly_false", condition)


def _bool(at: int, *, value: bool) -> Node:
    return Literal(at, "bool", value)


def _op(at: int, function: str, *arguments: Node) -> Node:
    return Call(at, function, None, arguments)


def _fold(
    call: Call, target: Node, initial: Node, condition: Node, step: Node, result: Node
) -> Node:
    """Return a fold over a target with the variables of a macro. Raise MacroError."""
    is_second = (call.function, len(call.arguments)) in _TWO_VARIABLES
    names = [_variable(call, argument) for argument in call.arguments[: 1 + is_second]]
    if is_second and names[0] == names[1]:
        raise MacroError(call.arguments[1].at, f"duplicate variable name: {names[0]}")
    second = names[1] if is_second else ""
    return Comprehension(
        call.at, target, names[0], second, ACCUMULATOR, initial, condition, step, result
    )


def _variable(call: Call, argument: Node) -> str:
    if not isinstance(argument, Name):
        of_list = call.function in ("map", "filter", "sortBy")
        wrong = "argument is not an identifier" if of_list else "argument must be a simple name"
        raise MacroError(argument.at, wrong)
    if argument.name == _VISIBLE_ACCUMULATOR:
        raise MacroError(argument.at, "iteration variable overwrites accumulator variable")
    return argument.name


def _transform(call: Call, target: Node) -> Node:
    at = call.at
    result, always = Name(at, ACCUMULATOR), _bool(at, value=True)
    tests, value = _tests(call), call.arguments[-1]
    initial: Node
    if call.function.startswith("transformMap"):
        initial = MapLiteral(at, ())
        key = (call.arguments[0],) if call.function == "transformMap" else ()
        step = _op(at, "cel.@mapInsert", result, *key, value)
    else:
        initial = ListLiteral(at, ())
        step = _op(at, "_+_", result, ListLiteral(at, (value,)))
    for test in tests:
        step = _op(at, "_?_:_", test, step, result)
    return _fold(call, target, initial, always, step, result)


def _tests(call: Call) -> tuple[Node, ...]:
    variables = 1 if call.function in ("map", "sortBy") else 2
    return call.arguments[variables:-1]


def _filter(call: Call, target: Node) -> Node:
    at, (name, test) = call.at, call.arguments
    result = Name(at, ACCUMULATOR)
    step = _op(at, "_+_", result, ListLiteral(at, (name,)))
    step = _op(at, "_?_:_", test, step, result)
    return _fold(call, target, ListLiteral(at, ()), _bool(at, value=True), step, result)


def _optional_map(call: Call, target: Node) -> Node:
    at, (name, body) = call.at, call.arguments
    if not isinstance(name, Name):
        wrong = f"{call.function}() variable name must be a simple identifier"
        raise MacroError(name.at, wrong)
    value = _bind(at, name.name, Call(at, "value", target, ()), body)
    if call.function == "optMap":
        value = _op(at, "optional.of", value)
    none = _op(at, "optional.none")
    return _op(at, "_?_:_", Call(at, "hasValue", target, ()), value, none)


def _bind(at: int, name: str, value: Node, body: Node) -> Node:
    """Return an expression with a variable: a fold over nothing, whose result is the body."""
    never = _bool(at, value=False)
    return Comprehension(
        at, ListLiteral(at, ()), _UNUSED, "", name, value, never, Name(at, name), body
    )


def _sort_by(call: Call, target: Node) -> Node:
    if isinstance(target, Literal | MapLiteral | MessageLiteral):
        detail = "a list, identifier, comprehension, call or select expression"
        raise MacroError(target.at, f"sortBy can only be applied to {detail}")
    values = Name(call.at, _SORTED)
    keys = _transform(call, values)
    return _bind(call.at, _SORTED, target, Call(call.at, "@sortByAssociatedKeys", values, (keys,)))


_TWO_VARIABLES: Final = frozenset(
    [
        *((name, 3) for name in ("all", "exists", "exists_one", "existsOne")),
        *((f"transform{kind}", n) for kind in ("List", "Map", "MapEntry") for n in (3, 4)),
    ]
)
_MACROS: Final[Mapping[tuple[str, int, bool], _Macro]] = {
    ("has", 1, False): _presence,
    **{(name, 2, True): _quantifier for name in ("all", "exists", "exists_one")},
    ("map", 2, True): _transform,
    ("map", 3, True): _transform,
    ("filter", 2, True): _filter,
    ("optMap", 2, True): _optional_map,
    ("optFlatMap", 2, True): _optional_map,
    ("sortBy", 2, True): _sort_by,
    **{
        (name, n, True): _transform if name.startswith("transform") else _quantifier
        for name, n in _TWO_VARIABLES
    },
}
"""Macros by name, count of arguments, and whether they are methods."""
