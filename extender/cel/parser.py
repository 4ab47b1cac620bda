"""The tokens of CEL expressions, and the CEL library that compiles them.

The library is an optional dependency. Its compiler reports syntax errors; it checks types only at
run time. It cannot parse optional field selections, so they are rewritten as function calls. A
selection from an optional value is optional, too.

    self.?a.b.orValue(1)    optional_field(optional_field(self, 'a'), 'b').orValue(1)
    self[?'a']              optional_field(self, 'a')

Sources: https://github.com/google/cel-spec/blob/master/doc/langdef.md (the lexis),
https://github.com/google/cel-spec/wiki/proposal-246.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, Final

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|//[^\n]*)
    |(?P<text>[rRbB]{0,2}(?:'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"))
    |(?P<name>[A-Za-z_]\w*)
    |(?P<quoted>`[^`\n]+`)
    |(?P<number>(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+)[uU]?)
    |(?P<mark>\.\?|\[\?|&&|\|\||[<>=!]=|.)""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
TWO_VARIABLE_MACROS: Final = frozenset(
    (
        "all",
        "exists",
        "exists_one",
        "existsOne",
        "transformList",
        "transformMap",
        "transformMapEntry",
    )
)
MACROS: Final = TWO_VARIABLE_MACROS | {"filter", "map"}
_MAX_CODE_POINTS: Final = 100_000
_MAX_DEPTH: Final = 250
_MAX_OPTIONAL: Final = 50
_MAX_OPERATORS: Final = 5_000
_PUNCTUATION: Final = ("(", ")", "]", "{", "}", ",", ":")
_OPENING: Final = {"(": ")", "[": "]", "{": "}", "[?": "]"}


@dataclass(frozen=True, slots=True)
class Token:
    """A token: ``kind`` is name, quoted, text, number or mark; ``start`` counts from 0."""

    kind: str
    text: str
    start: int


END: Final = Token("mark", "", -1)


def tokenize(expression: str) -> list[Token]:
    """Split an expression into tokens; characters that are not CEL become marks."""
    return [
        Token(match.lastgroup or "mark", match[0], match.start())
        for match in _TOKEN.finditer(expression)
        if match.lastgroup != "space"
    ]


def token_at(tokens: Sequence[Token], index: int) -> Token:
    """Return the token at an index; an empty one if the index is out of range."""
    return tokens[index] if 0 <= index < len(tokens) else END


def closing_index(tokens: Sequence[Token], start: int) -> int:
    """Return the index of the bracket that closes the one at ``start``; else the last index."""
    depth = 0
    for index in range(start, len(tokens)):
        text = tokens[index].text
        if tokens[index].kind == "mark":
            depth += (text in _OPENING) - (text in _OPENING.values())
        if depth == 0:
            return index
    return len(tokens) - 1


def limit_error(expression: str) -> str | None:
    """Return the error of an expression that is too large; None if it is not.

    The first two limits are cel-go's (parser/options.go). The others are needed here only: each
    optional selection is expanded by reading the whole expression, and the library evaluates
    operators in a row by recursion, up to the end of the process.
    """
    if len(expression) > _MAX_CODE_POINTS:
        size = f"size: {len(expression)}, limit {_MAX_CODE_POINTS}"
        return f"expression code point size exceeds limit: {size}"
    depth = deepest = optional = operators = 0
    for token in tokenize(expression):
        if token.kind == "mark":
            depth += (token.text in _OPENING) - (token.text in _OPENING.values())
            optional += token.text in (".?", "[?")
            operators += token.text not in _PUNCTUATION
        deepest = max(deepest, depth)
    if deepest > _MAX_DEPTH:
        return f"expression recursion limit exceeded: {_MAX_DEPTH}"
    if optional > _MAX_OPTIONAL:
        return f"more than {_MAX_OPTIONAL} optional selections are not supported"
    if operators > _MAX_OPERATORS:
        return f"more than {_MAX_OPERATORS} operators are not supported"
    return None


def macro_depth(tokens: Sequence[Token]) -> int:
    """Return the nesting depth of macros over lists and maps."""
    deepest, open_until = 0, list[int]()
    for index, token in enumerate(tokens):
        open_until = [end for end in open_until if end >= index]
        calls = token_at(tokens, index - 1).text == "." and token_at(tokens, index + 1).text == "("
        if token.kind == "name" and token.text in MACROS and calls:
            open_until.append(closing_index(tokens, index + 1))
            deepest = max(deepest, len(open_until))
    return deepest


class _Engine:
    """The CEL library; it is imported when it is first used."""

    def __getattr__(self, name: str) -> Any:
        # The library logs each error of a function that it returns as an error, too.
        logging.getLogger("cel").setLevel(logging.CRITICAL)
        found = getattr(import_module("cel"), name)
        setattr(self, name, found)
        return found


ENGINE: Final[Any] = _Engine() if find_spec("cel") else None

MISSING: Final = (
    "CEL expressions need the library common-expression-language: pip install 'reprieve[cel]'"
)


def is_installed() -> bool:
    """Return whether expressions can be compiled."""
    return ENGINE is not None


OPTIONAL_FIELD: Final = "optional_field"


MATCHES: Final = "MATCHES"
"""The name of ``matches`` with Go's syntax; the library's own has Rust's.

It has the same length, so columns in errors of the compiler are right.
"""


def replace_matches(expression: str) -> str:
    """Return an expression that calls ``MATCHES`` instead of ``matches``."""
    parts, end = [], 0
    tokens = tokenize(expression)
    for token, following in pairwise(tokens):
        if (token.kind, token.text, following.text) == ("name", "matches", "("):
            parts += [expression[end : token.start], MATCHES]
            end = token.start + len(MATCHES)
    return "".join((*parts, expression[end:]))


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
    start = operand_start(tokens, first - 1)
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


def operand_start(tokens: Sequence[Token], last: int) -> int:
    """Return the index of the first token of the operand that ends with the token ``last``."""
    index = last
    while index > 0:
        if tokens[index].text in (")", "]", "}"):
            index = _opening(tokens, index)
            if token_at(tokens, index - 1).kind == "name":
                index -= 1
        if token_at(tokens, index - 1).text in (".", ".?"):
            index -= 2
        elif tokens[index].text in ("[", "[?", "(") and token_at(tokens, index - 1).text in (
            ")",
            "]",
        ):
            index -= 1
        else:
            break
    return max(index, 0)


def _opening(tokens: Sequence[Token], last: int) -> int:
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
