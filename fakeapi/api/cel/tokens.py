"""The tokens of a CEL expression: names, literals and operators, each with its position.

Source: the lexis in https://github.com/google/cel-spec/blob/master/doc/langdef.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|//[^\n]*)
    |(?P<text>[rRbB]{0,2}(?:'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"))
    |(?P<name>[A-Za-z_]\w*)
    |(?P<number>(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+)[uU]?)
    |(?P<mark>\.\?|\[\?|&&|\|\||[<>=!]=|.)""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
MACROS: Final = frozenset(("all", "exists", "exists_one", "filter", "map"))
_OPENING: Final = {"(": ")", "[": "]", "{": "}", "[?": "]"}


@dataclass(frozen=True, slots=True)
class Token:
    """A token: ``kind`` is name, text, number or mark; ``start`` counts characters from 0."""

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
