"""Values as Go's fmt package prints them in messages: quoted strings, maps and slices.

Sources: strconv.Quote; the verb ``%v`` of fmt.
"""

from __future__ import annotations

import re
from typing import Any, Final

_ESCAPED: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}
_SIMPLE: Final = re.compile(r"[ !#-\[\]-~]*")


_JSON_TYPES: Final[tuple[tuple[type, str], ...]] = (
    (bool, "bool"),
    (int, "number"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
)


def json_type(value: Any) -> str:
    """Return the name of a value's JSON type, as in the errors of encoding/json."""
    return next(name for python_type, name in _JSON_TYPES if isinstance(value, python_type))


def quote(text: str) -> str:
    """Return a string as a Go literal in double quotes."""
    if _SIMPLE.fullmatch(text):
        return f'"{text}"'
    return f'"{"".join(map(_quoted, text))}"'


def _quoted(character: str) -> str:
    if character in _ESCAPED:
        return _ESCAPED[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def format_as_go(value: Any) -> str:
    """Return JSON as Go prints maps and slices: ``map[a:1 b:[x y]]``."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{k}:{format_as_go(value[k])}' for k in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(format_as_go(item) for item in value)}]"
    if value is None or isinstance(value, bool):
        return {None: "<nil>", True: "true", False: "false"}[value]
    return str(value)


def go_literal(value: Any) -> str:
    """Return a value of YAML as the verb ``%#v`` prints it."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, dict):
        members = ", ".join(f"{quote(key)}:{go_literal(value[key])}" for key in sorted(value))
        return f"map[interface {{}}]interface {{}}{{{members}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(go_literal, value))}}}"
    return "interface {}(nil)" if value is None else format_as_go(value)
