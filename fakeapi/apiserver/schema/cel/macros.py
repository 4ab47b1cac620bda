"""Syntax that the CEL library does not have, rewritten with what it has.

    cel.bind(x, value, body)       [value].map(x, body)[0]
    list.all(i, v, body)           macro_entries(list).all(e, body for its index and value)
    map.transformMap(k, v, body)   macro_map(macro_entries(map).map(e, [e.key, body ...]))
    object.`a-b`                   quoted_field(object, 'a-b')

Sources: github.com/google/cel-go/ext (bindings.go, comprehensions.go),
https://github.com/google/cel-spec/blob/master/doc/langdef.md#field-selection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fakeapi.apiserver.schema.cel.parser import (
    TWO_VARIABLE_MACROS,
    Token,
    closing_index,
    expand_optional_syntax,
    operand_start,
    replace_matches,
    token_at,
    tokenize,
)
from fakeapi.apiserver.schema.cel.values import escape

_ENTRY: Final = "macro_entry"
_NATIVE: Final = {"existsOne": "exists_one"}
_TRANSFORMS: Final = {
    "transformList": "",
    "transformMap": "macro_map",
    "transformMapEntry": "macro_merge",
}


def expand_syntax(expression: str) -> str:
    """Return an expression in the syntax of the CEL library."""
    for expand_first in (_expand_quoted, _expand_macro):
        while (rewritten := expand_first(expression)) is not None:
            expression = rewritten
    return replace_matches(expand_optional_syntax(expression))


def _expand_quoted(expression: str) -> str | None:
    """Rewrite the first field in backticks; None if there is none."""
    tokens = tokenize(expression)
    index = next((i for i, token in enumerate(tokens) if token.kind == "quoted"), 0)
    if index < 2 or tokens[index - 1].text not in (".", ".?"):
        return None
    start, mark = operand_start(tokens, index - 2), tokens[index - 1]
    holder = expression[tokens[start].start : mark.start]
    name = repr(tokens[index].text.strip("`"))
    end = tokens[index].start + len(tokens[index].text)
    if mark.text == ".?":
        return f"{expression[: mark.start]}[?{name}]{expression[end:]}"
    is_whole = token_at(tokens, start - 1).text == "(" and token_at(tokens, index + 1).text == ")"
    if is_whole and token_at(tokens, start - 2).text == "has":
        first, last = tokens[start - 2].start, tokens[index + 1].start + 1
        return f"{expression[:first]}has_quoted_field({holder}, {name}){expression[last:]}"
    first = tokens[start].start
    return f"{expression[:first]}quoted_field({holder}, {name}){expression[end:]}"


def _expand_macro(expression: str) -> str | None:
    """Rewrite the last macro of two variables, or the last cel.bind; None if there is none."""
    tokens = tokenize(expression)
    for index in range(len(tokens) - 1, 1, -1):
        token, after = tokens[index], token_at(tokens, index + 1).text
        if token.kind != "name" or after != "(" or tokens[index - 1].text != ".":
            continue
        last = closing_index(tokens, index + 1)
        arguments = _arguments(expression, tokens, index + 1, last)
        end = tokens[last].start + 1
        if token.text == "bind" and tokens[index - 2].text == "cel" and len(arguments) == 3:
            name, value, body = arguments
            start, rewritten = index - 2, f"[{value}].map({name}, {body})[0]"
        elif token.text in TWO_VARIABLE_MACROS and has_two_variables(tokens, index):
            start = operand_start(tokens, index - 2)
            holder = expression[tokens[start].start : tokens[index - 1].start]
            rewritten = _two_variables(token.text, holder, arguments)
        else:
            continue
        return f"{expression[: tokens[start].start]}{rewritten}{expression[end:]}"
    return None


def has_two_variables(tokens: Sequence[Token], index: int) -> bool:
    """Return whether a macro begins with two names, and has more arguments."""
    first, comma, second, more = (token_at(tokens, index + 2 + i) for i in range(4))
    names = first.kind == "name" and second.kind == "name"
    return names and comma.text == "," and more.text == ","


def _arguments(expression: str, tokens: Sequence[Token], opening: int, last: int) -> list[str]:
    found, start, index = list[str](), tokens[opening].start + 1, opening + 1
    while index < last:
        token = tokens[index]
        if token.text in ("(", "[", "{", "[?"):
            index = closing_index(tokens, index)
        elif token.text == ",":
            found.append(expression[start : token.start].strip())
            start = token.start + 1
        index += 1
    return [*found, expression[start : tokens[last].start].strip()]


def _two_variables(macro: str, holder: str, arguments: Sequence[str]) -> str:
    key, value, *bodies = arguments

    def bound(body: str) -> str:
        return f"[{_ENTRY}.key].map({key}, [{_ENTRY}.value].map({value}, {body})[0])[0]"

    entries = f"macro_entries({holder})"
    if macro not in _TRANSFORMS:
        return f"{entries}.{_NATIVE.get(macro, macro)}({_ENTRY}, {bound(bodies[0])})"
    if len(bodies) > 1:
        entries = f"{entries}.filter({_ENTRY}, {bound(bodies[0])})"
    result = bound(bodies[-1])
    if macro == "transformMap":
        result = f"[{_ENTRY}.key, {result}]"
    return f"{_TRANSFORMS[macro]}({entries}.map({_ENTRY}, {result}))"


def _entries(values: Any) -> list[dict[str, Any]]:
    if not isinstance(values, list | dict):
        raise TypeError("no such overload")
    pairs = values.items() if isinstance(values, dict) else enumerate(values)
    return [{"key": key, "value": value} for key, value in pairs]


def _merge(maps: Sequence[Mapping[Any, Any]]) -> dict[Any, Any]:
    merged: dict[Any, Any] = {}
    for each in maps:
        for key, value in each.items():
            if key in merged:
                raise ValueError(f"insert failed: key {key} already exists")
            merged[key] = value
    return merged


def _quoted_field(holder: Any, name: str) -> Any:
    if not isinstance(holder, dict):
        raise TypeError("no such overload")
    key = name if name in holder else escape(name)
    if key not in holder:
        raise ValueError(f"no such key: {name}")
    return holder[key]


MACRO_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "has_quoted_field": lambda holder, name: name in holder or escape(name) in holder,
    "macro_entries": _entries,
    "macro_map": dict,
    "macro_merge": _merge,
    "quoted_field": _quoted_field,
}
"""The functions that rewritten expressions call."""
