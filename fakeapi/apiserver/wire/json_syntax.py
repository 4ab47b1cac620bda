"""The first syntax error of a JSON text, in the words of Go's encoding/json.

Source: encoding/json/scanner.go.
"""

from __future__ import annotations

import re
from typing import Final

from fakeapi.apiserver.wire.go_format import quote

_END: Final = "unexpected end of JSON input"
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_CHARACTERS: Final = re.compile(r'(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*')
_HEX: Final = re.compile(r"[0-9a-fA-F]*")
_NUMBER: Final = re.compile(r"(-?)(0|[1-9][0-9]*)?(\.[0-9]*)?([eE][-+]?[0-9]*)?")
_LITERALS: Final = {"t": "true", "f": "false", "n": "null"}
_AFTER: Final = {"}": "after object key:value pair", "]": "after array element"}


class _SyntaxError(Exception):
    """The text is not JSON; the message is that of Go."""


def json_syntax_error(text: bytes) -> str:
    """Return the first syntax error of a text, or "" if there is none.

    Each byte is a character, as in Go: bytes of UTF-8 may occur in strings only.
    """
    try:
        _Scanner(text.decode("latin-1")).scan()
    except _SyntaxError as error:
        return str(error)
    return ""


class _Scanner:
    """Reads one text; ``closings`` are the ends of the objects and lists that are open."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._closings: list[str] = []

    def scan(self) -> None:
        """Read the whole text; raise _SyntaxError."""
        self._value()
        while self._closings:
            self._next_member()
        if self._peek():
            raise self._invalid("after top-level value")

    def _peek(self) -> str:
        """Return the next character that is not a space; "" at the end."""
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._text[self._at : self._at + 1]

    def _invalid(self, context: str, character: str | None = None) -> _SyntaxError:
        found = self._peek() if character is None else character
        if not found:
            return _SyntaxError(_END)
        quoted = {"'": "\\'", '"': '"'}.get(found) or quote(found)[1:-1]
        return _SyntaxError(f"invalid character '{quoted}' {context}")

    def _value(self) -> None:
        """Read a value, or the beginning of an object or list up to its first value."""
        first = self._peek()
        if first in ("{", "["):
            self._at += 1
            closing = "}" if first == "{" else "]"
            if self._peek() == closing:
                self._at += 1
                return
            self._closings.append(closing)
            self._member()
        elif first == '"':
            self._string()
        elif first in _LITERALS:
            self._literal(_LITERALS[first])
        elif first and first in "-0123456789":
            self._number()
        else:
            raise self._invalid("looking for beginning of value")

    def _member(self) -> None:
        """Read the key of an object's member; the next step reads the value."""
        if self._closings[-1] == "}":
            if self._peek() != '"':
                raise self._invalid("looking for beginning of object key string")
            self._string()
            if self._peek() != ":":
                raise self._invalid("after object key")
            self._at += 1
        self._closings.append("")  # a value follows

    def _next_member(self) -> None:
        """Read the value that follows, or what stands between two members."""
        if not self._closings[-1]:
            self._closings.pop()
            self._value()
            return
        closing, found = self._closings[-1], self._peek()
        if found == closing:
            self._closings.pop()
        elif found != ",":
            raise self._invalid(_AFTER[closing])
        self._at += 1
        if found == ",":
            self._member()

    def _string(self) -> None:
        found = _CHARACTERS.match(self._text, self._at + 1)
        self._at = found.end() if found else self._at
        if self._text.startswith('"', self._at):
            self._at += 1
            return
        rest = self._text[self._at :]
        if rest.startswith("\\u"):
            digits = _HEX.match(rest, 2)
            wrong = rest[digits.end() : digits.end() + 1] if digits else ""
            raise self._invalid("in \\u hexadecimal character escape", wrong)
        if rest.startswith("\\"):
            raise self._invalid("in string escape code", rest[1:2])
        raise self._invalid("in string literal", rest[:1])

    def _literal(self, word: str) -> None:
        for expected in word:
            found = self._text[self._at : self._at + 1] or " "
            if found != expected:
                raise self._invalid(f"in literal {word} (expecting '{expected}')", found)
            self._at += 1

    def _number(self) -> None:
        found = _NUMBER.match(self._text, self._at)
        _, digits, fraction, exponent = found.groups() if found else ("", "", "", "")
        self._at = found.end() if found else self._at
        following = self._text[self._at : self._at + 1] or " "
        if not digits:
            raise self._invalid("in numeric literal", following)
        if exponent and not exponent[-1].isdigit():
            raise self._invalid("in exponent of numeric literal", following)
        if fraction == ".":
            raise self._invalid("after decimal point in numeric literal", following)
