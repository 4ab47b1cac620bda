"""Syntax that the CEL library does not have, rewritten with what it has.

    list.all(i, v, body)           macro_entries(list).all(e, body for its index and value)
    map.transformMap(k, v, body)   macro_map(macro_entries(map).map(e, [e.key, body ...]))
    list.sortBy(x, key)            sorted_by(list, list.map(x, key))
    a.optMap(x, value)             optional_first(optional_values(a).map(x, value))
    object.`a-b`                   quoted_field(object, 'a-b')
    [?a, b]                        present_elements([a, b], [true, false])
    {?'a': b}                      present_entries([['a', b]], [true])
    Object.spec{a: b}              message_value('Object.spec', {'a': b})

Sources: github.com/google/cel-go/ext (comprehensions.go),
https://github.com/google/cel-spec/blob/master/doc/langdef.md#field-selection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from extender.cel.identifiers import escape
from extender.cel.parser import (
    ENGINE,
    TWO_VARIABLE_MACROS,
    Token,
    closing_index,
    expand_optional_syntax,
    operand_start,
    replace_matches,
    token_at,
    tokenize,
)

TYPE_KEY: Final = "@type"
"""The key of a message's type in its value; no field has this name."""

_ENTRY: Final = "macro_entry"
_NATIVE: Final = {"existsOne": "exists_one"}
_ONE_VARIABLE: Final = {
    "optFlatMap": "first_optional(optional_values({0}).{1})",
    "optMap": "optional_first(optional_values({0}).{1})",
    "sortBy": "sorted_by({0}, {0}.{1})",
}
_TRANSFORMS: Final = {
    "transformList": "",
    "transformMap": "macro_map",
    "transformMapEntry": "macro_merge",
}


def expand_syntax(expression: str) -> str:
    """Return an expression in the syntax of the CEL library."""
    for expand_first in (_expand_quoted, _expand_message, _expand_elements, _expand_macro):
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


def _expand_message(expression: str) -> str | None:
    """Rewrite the first message literal; None if there is none."""
    tokens = tokenize(expression)
    opening = next((i for i in range(1, len(tokens)) if _is_message(tokens, i)), 0)
    if not opening or tokens[closing_index(tokens, opening)].text != "}":
        return None
    start = opening - 1
    while token_at(tokens, start - 1).text == ".":
        start -= 2
    first, brace, last = tokens[start].start, tokens[opening].start, closing_index(tokens, opening)
    fields = ", ".join(filter(None, map(_field, _arguments(expression, tokens, opening, last))))
    name, rest = expression[first:brace].strip(), expression[tokens[last].start + 1 :]
    return f"{expression[:first]}message_value({name!r}, {{{fields}}}){rest}"


def _is_message(tokens: Sequence[Token], opening: int) -> bool:
    """Return whether a brace opens a message literal whose first field has a valid name."""
    before, first = tokens[opening - 1], token_at(tokens, opening + 1)
    if tokens[opening].text != "{" or before.kind != "name" or before.text == "in":
        return False
    if first.text == "?":
        first = token_at(tokens, opening + 2)
    return first.text == "}" or (first.kind in ("name", "quoted") and first.text != "in")


def _field(text: str) -> str:
    """Return a field of a message literal as an entry of a map."""
    name, _, value = text.partition(":")
    mark, name = ("?", name[1:]) if name.startswith("?") else ("", name)
    name = name.strip().strip("`")
    return f"{mark}{name!r}: {value}" if name else ""


def _expand_elements(expression: str) -> str | None:
    """Rewrite the first list or map that has optional elements.

    Return None if there is none, or if an element has no value, which the parser reports.
    """
    tokens = tokenize(expression)
    opening = next((i for i in range(len(tokens)) if _has_optional(tokens, i)), -1)
    if opening < 0:
        return None
    first, last = tokens[opening], closing_index(tokens, opening)
    elements = _arguments(expression, tokens, opening, last)
    if not elements[-1].strip():  # after a trailing comma
        elements.pop()
    if first.text == "[?":
        elements[0] = f"?{elements[0][1:]}"
    flags = ", ".join("true" if each.startswith("?") else "false" for each in elements)
    plain = [each.removeprefix("?") for each in elements]
    function = "present_elements"
    if first.text == "{":
        function, plain = "present_entries", [_entry(each) for each in plain]
    if "" in plain:
        return None
    rewritten = f"{function}([{', '.join(plain)}], [{flags}])"
    return f"{expression[: first.start]}{rewritten}{expression[tokens[last].start + 1 :]}"


def _has_optional(tokens: Sequence[Token], opening: int) -> bool:
    """Return whether a token opens a list or a map that has optional elements."""
    token, before = tokens[opening], token_at(tokens, opening - 1)
    is_operand = before.kind != "mark" or before.text in (")", "]", "}")
    if token.text not in ("[", "[?", "{") or (is_operand and before.text != "in"):
        return False
    index, last = opening + 1, closing_index(tokens, opening)
    found = token.text == "[?"
    while index < last:
        if tokens[index].text in ("(", "[", "{", "[?"):
            index = closing_index(tokens, index)
        is_first = tokens[index - 1].text in (",", token.text)
        found |= tokens[index].text == "?" and is_first
        index += 1
    return found


def _entry(text: str) -> str:
    """Return an entry of a map as a list; "" if it has no value."""
    tokens = tokenize(text)
    index = conditions = 0
    while index < len(tokens) and (tokens[index].text != ":" or conditions):
        if tokens[index].text in ("(", "[", "{", "[?"):
            index = closing_index(tokens, index)
        conditions += (tokens[index].text == "?") - (tokens[index].text == ":")
        index += 1
    if index == len(tokens):
        return ""
    colon = tokens[index].start
    return f"[{text[:colon]}, {text[colon + 1 :]}]"


def _expand_macro(expression: str) -> str | None:
    """Rewrite the last macro that the library does not have; None if there is none."""
    tokens = tokenize(expression)
    for index in range(len(tokens) - 1, 1, -1):
        token, after = tokens[index], token_at(tokens, index + 1).text
        if token.kind != "name" or after != "(" or tokens[index - 1].text != ".":
            continue
        last = closing_index(tokens, index + 1)
        arguments = _arguments(expression, tokens, index + 1, last)
        end = tokens[last].start + 1
        start = operand_start(tokens, index - 2)
        holder = expression[tokens[start].start : tokens[index - 1].start]
        if token.text in _ONE_VARIABLE and len(arguments) == 2:
            name, body = arguments
            rewritten = _ONE_VARIABLE[token.text].format(holder, f"map({name}, {body})")
        elif token.text in TWO_VARIABLE_MACROS and _has_two_variables(tokens, index):
            rewritten = _two_variables(token.text, holder, arguments)
        else:
            continue
        return f"{expression[: tokens[start].start]}{rewritten}{expression[end:]}"
    return None


def _has_two_variables(tokens: Sequence[Token], index: int) -> bool:
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


def _present(values: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    pairs = [p for p in zip(values, flags, strict=True) if not p[1] or p[0].has_value()]
    return [value.value() if flag else value for value, flag in pairs]


def _present_entries(entries: Sequence[Any], flags: Sequence[bool]) -> dict[Any, Any]:
    pairs = zip(entries, flags, strict=True)
    found = [entry for entry, flag in pairs if not flag or entry[1].has_value()]
    return {k: v.value() if isinstance(v, ENGINE.OptionalValue) else v for k, v in found}


def _values(optional: Any) -> list[Any]:
    """Return the value of an optional value, if it has one; the library's ``map`` unwraps it."""
    if not isinstance(optional, ENGINE.OptionalValue):
        return [optional]
    return [optional.value()] if optional.has_value() else []


def _first(values: Sequence[Any]) -> Any:
    return ENGINE.OptionalValue.of(values[0]) if values else ENGINE.OptionalValue.none()


def _sorted_by(values: Sequence[Any], keys: Sequence[Any]) -> list[Any]:
    order = sorted(range(len(values)), key=keys.__getitem__)
    return [values[index] for index in order]


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
    "first_optional": lambda values: _first([v for each in values for v in _values(each)]),
    "has_quoted_field": lambda holder, name: name in holder or escape(name) in holder,
    "macro_entries": _entries,
    "macro_map": dict,
    "macro_merge": _merge,
    "message_value": lambda name, fields: {TYPE_KEY: name, **fields},
    "optional_first": _first,
    "optional_values": _values,
    "present_elements": _present,
    "present_entries": _present_entries,
    "quoted_field": _quoted_field,
    "sorted_by": _sorted_by,
}
"""The functions that rewritten expressions call."""
