"""Optional field selection, rewritten as function calls because the library cannot parse it.

    self.?a.b.orValue(1)    optional_field(optional_field(self, 'a'), 'b').orValue(1)
    self[?'a']              optional_field(self, 'a')

A selection from an optional value is optional, too.

Source: https://github.com/google/cel-spec/wiki/proposal-246.
"""

from __future__ import annotations

from typing import Any, Final

from fakeapi.api.cel.engine import ENGINE
from fakeapi.api.cel.tokens import Token, closing_index, token_at, tokenize

OPTIONAL_FIELD: Final = "optional_field"


def expand_optional_syntax(expression: str) -> str:
    """Return an expression with its optional selections rewritten as function calls."""
    while (rewritten := _expand_first(expression)) is not None:
        expression = rewritten
    return expression


def _expand_first(expression: str) -> str | None:
    """Rewrite the first optional selection and the plain ones after it; None if there is none."""
    tokens = tokenize(expression)
    first = next((i for i, t in enumerate(tokens) if t.text in (".?", "[?")), None)
    if first is None or first == 0:
        return None
    start = _operand(tokens, first - 1)
    head = expression[tokens[start].start : tokens[first].start]
    index = first
    while True:
        token = token_at(tokens, index)
        name = token_at(tokens, index + 1)
        plain = token.text == "." and token_at(tokens, index + 2).text != "("
        if (token.text == ".?" or plain) and name.kind == "name":
            head, index = f"{OPTIONAL_FIELD}({head}, '{name.text}')", index + 2
        elif token.text in ("[?", "["):
            last = closing_index(tokens, index)
            inside = expression[token.start + len(token.text) : tokens[last].start]
            head, index = f"{OPTIONAL_FIELD}({head}, {inside})", last + 1
        else:
            break
    if index == first:
        return None
    rest = expression[tokens[index].start :] if index < len(tokens) else ""
    return f"{expression[: tokens[start].start]}{head}{rest}"


def _operand(tokens: list[Token], last: int) -> int:
    """Return the index of the first token of the operand that ends with the token ``last``."""
    index = last
    while index > 0:
        if tokens[index].text in (")", "]", "}"):
            index = _opening(tokens, index)
            if token_at(tokens, index - 1).kind == "name":
                index -= 1
        if token_at(tokens, index - 1).text == ".":
            index -= 2
        elif tokens[index].text in ("[", "(") and token_at(tokens, index - 1).text in (")", "]"):
            index -= 1
        else:
            break
    return max(index, 0)


def _opening(tokens: list[Token], last: int) -> int:
    return next(i for i in range(last, -1, -1) if i == 0 or closing_index(tokens, i) == last)


def optional_field(holder: Any, name: Any) -> Any:
    """Return a field of an object or an element of a list as an optional value."""
    nothing = ENGINE.OptionalValue.none()
    if isinstance(holder, ENGINE.OptionalValue):
        if not holder.has_value():
            return nothing
        holder = holder.value()
    if isinstance(holder, dict):
        return ENGINE.OptionalValue.of(holder[name]) if name in holder else nothing
    if isinstance(holder, list) and isinstance(name, int) and 0 <= name < len(holder):
        return ENGINE.OptionalValue.of(holder[name])
    return nothing
