"""Elements: one step of a path into a document, spelled as FieldsV1 spells it.

    f:image                                 the field, or the map's key, ``image``
    k:{"containerPort":80,"protocol":"TCP"} the list's element with these keys
    v:"kubernetes"                          the set's element with this value
    i:3                                     the list's element at this place

Source: sigs.k8s.io/structured-merge-diff/fieldpath (element.go, serialize-pe.go).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from fakeapi.kinds.types import ListType

_ESCAPED: Final = re.compile("[<>&\u2028\u2029]")
_KINDS: Final = "fkvi"


def field_element(name: str) -> str:
    """Return the element of a field or of a map's key."""
    return "f:" + name


def item_element(shape: ListType, item: Any) -> str:
    """Return the element of one item of a list that is a set or a map.

    A key that the item leaves out has its default, or is left out of the element, too. Raises
    ValueError if the item cannot be told apart from others.
    """
    if not shape.keys:
        if isinstance(item, dict | list) or item is None:
            raise ValueError(_NO_VALUE[type(item)])
        return "v:" + _encoded(item)
    if not isinstance(item, dict):
        what = "a null element" if item is None else "non-map elements"
        raise ValueError(f"associative list with keys may not have {what}")  # noqa: TRY004
    keys = {key: item.get(key, shape.defaults.get(key)) for key in shape.keys}
    found = {key: keys[key] for key in sorted(keys) if keys[key] is not None}
    if not found:
        names = " ".join(f'"{key}"' for key in shape.keys)
        raise ValueError(
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return "k:" + _encoded(found)


_NO_VALUE: Final[Mapping[type, str]] = {
    dict: "associative list without keys has an element that's a map type",
    list: "not supported: associative list with lists as elements",
    type(None): "associative list without keys has an element that's an explicit null",
}


def canonical(element: str) -> str | None:
    """Return an element that a client sent in the one spelling used here; None if of no known kind.

    Raises ValueError if it is malformed.
    """
    kind, colon, content = element[:1], element[1:2], element[2:]
    if not colon:
        raise ValueError("key must be 2 characters long")
    if colon != ":":
        raise ValueError(f"missing colon: {element}")
    if kind not in _KINDS:
        return None
    if kind == "f":
        return element
    value = int(content) if kind == "i" else orjson.loads(content)
    if kind == "k" and not isinstance(value, dict):
        raise ValueError(f"expected an object: {element}")
    return f"{kind}:{_encoded(value)}"


def order(element: str) -> tuple[int, Any]:
    """Return the sort key of an element: fields by name, then keys, values and places."""
    kind, content = element[:1], element[2:]
    match kind:
        case "f":
            return 1, content
        case "k":
            fields: Mapping[str, Any] = orjson.loads(content)
            return 2, [(name, _rank(value)) for name, value in fields.items()]
        case "v":
            return 3, _rank(orjson.loads(content))
        case "i":
            return 4, int(content)
    return 0, element


def describe(path: tuple[str, ...]) -> str:
    """Spell a path for people: ``.spec.containers[name="web"].image``."""
    return "".join(map(_describe, path))


def _describe(element: str) -> str:
    kind, content = element[:1], element[2:]
    match kind:
        case "f":
            return f".{content}"
        case "k":
            fields: Mapping[str, Any] = orjson.loads(content)
            return f"[{','.join(f'{name}={_encoded(value)}' for name, value in fields.items())}]"
        case "v":
            return f"[={content}]"
    return f"[{content}]"


def _rank(value: Any) -> tuple[int, Any]:
    """Order scalars as upstream: numbers, strings, booleans, anything else."""
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, int | float):
        return 0, value
    return (1, value) if isinstance(value, str) else (3, str(value))


def _encoded(value: Any) -> str:
    """Encode as Go does, with its escapes; objects have their keys in order."""
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
