"""Path elements: one step of a field path, serialized as in FieldsV1.

    f:image                                 the field, or the key of a map, ``image``
    k:{"containerPort":80,"protocol":"TCP"} the list item with these keys
    v:"kubernetes"                          the set item with this value
    i:3                                     the list item at this index

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
    """Return the path element of a field or of a key of a map."""
    return "f:" + name


def item_element(shape: ListType, item: Any) -> str:
    """Return the path element of an item of a list of type set or map.

    A key that the item does not have takes its default; without a default, the element does not
    have it either. Raise ValueError if the item has no key or value that identifies it.
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


def canonical_element(element: str) -> str | None:
    """Return the canonical form of a path element from a client; None if its kind is unknown.

    Raise ValueError if it is malformed.
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


def element_sort_key(element: str) -> tuple[int, Any]:
    """Return the sort key of an element: fields by name, then keys, values and indices."""
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
    """Return a path in human-readable form: ``.spec.containers[name="web"].image``."""
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
    """Return the sort key of a scalar, as upstream: numbers, strings, booleans, other values."""
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, int | float):
        return 0, value
    return (1, value) if isinstance(value, str) else (3, str(value))


def _encoded(value: Any) -> str:
    """Return a value as JSON with the escapes of Go; the keys of objects are sorted."""
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
