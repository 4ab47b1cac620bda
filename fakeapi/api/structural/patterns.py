r"""Regular expressions of Go's RE2, translated for Python's ``re``.

In Python, ``$`` also matches before a final line break, and classes like ``\d`` match all of
Unicode. ``\z`` becomes ``\Z``, and POSIX classes are expanded. Syntax that Python cannot express
(``\pL`` and similar) is rejected as an invalid regular expression.

Source: https://github.com/google/re2/wiki/Syntax.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_POSIX: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": r"0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_PIECE: Final = re.compile(r"\\.|\[:(\w+):\]|\[\^?\]?|\]|\$|.", re.DOTALL)


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return a compiled pattern, from a cache. Raise ValueError if it is invalid."""
    try:
        return re.compile(_translated(pattern), re.ASCII)
    except re.error as error:
        raise ValueError(f"error parsing regexp: {error}") from None


def _translated(pattern: str) -> str:
    parts = []
    inside = False
    multiline = "(?m" in pattern
    for match in _PIECE.finditer(pattern):
        piece = match[0]
        if match[1] is not None and inside:
            piece = _POSIX.get(match[1], piece)
        elif piece.startswith("[") and not inside:
            inside = True
        elif piece == "]":
            inside = False
        elif piece == "\\z" or (piece == "$" and not inside and not multiline):
            piece = r"\Z"
        parts.append(piece)
    return "".join(parts)
