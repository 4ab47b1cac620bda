"""Identifiers of CEL: reserved words, and names of fields that are escaped.

    namespace    __namespace__
    a-b          a__dash__b

Source: k8s.io/apiserver/pkg/cel/escaping.go.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_RESERVED: Final = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPED: Final = re.compile(r"__|[-./]")
_SPELLABLE: Final = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*", re.ASCII)


def is_reserved(name: str) -> bool:
    """Return whether a name is a reserved word of CEL."""
    return name in _RESERVED


@lru_cache(maxsize=4096)
def escape(name: str) -> str | None:
    """Return a field's name, escaped as an identifier of CEL; None if it cannot be escaped."""
    if is_reserved(name):
        return f"__{name}__"
    if not _SPELLABLE.fullmatch(name):
        return None
    return _ESCAPED.sub(lambda match: _ESCAPES[match[0]], name)
