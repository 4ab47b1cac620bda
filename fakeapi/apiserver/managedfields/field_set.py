"""Field sets: sets of field paths, and their operations.

A path element is one step of a field path, serialized as in FieldsV1:

    f:image                                 the field, or the key of a map, ``image``
    k:{"containerPort":80,"protocol":"TCP"} the list item with these keys
    v:"kubernetes"                          the set item with this value
    i:3                                     the list item at this index

A set is a tree of path elements, in the serialized form of ``managedFields``, so that no decoding
is needed:

    {"f:spec": {"f:containers": {'k:{"name":"web"}': {".": {}, "f:image": {}}}}}

The path of a node is a member of the set if the node has the key ``.`` or is empty; its other keys
are the elements below it. The root is not a member; an empty root is the empty set. Sets are
immutable; results share nodes with their operands.

Source: sigs.k8s.io/structured-merge-diff/fieldpath (set.go, serialize.go, element.go,
serialize-pe.go).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from fakeapi.apiserver.kinds.structural_types import ListType

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


FieldSet = dict[str, Any]
"""A node of the tree: elements to nodes."""

SELF: Final = "."
LEAF: Final[FieldSet] = {}
EMPTY: Final[FieldSet] = {}

Path = tuple[str, ...]
FieldPattern = Mapping[str, "FieldPattern"]
"""Elements (or ``ANY``) and the patterns below them; {} matches everything."""

ANY: Final = "*"


def is_member(node: FieldSet) -> bool:
    """Return whether the node's own path belongs to the set."""
    return not node or SELF in node


def as_member(node: FieldSet | None) -> FieldSet:
    """Return the node with its own path in the set."""
    if not node or SELF in node:
        return LEAF if node is None else node
    return {SELF: LEAF, **node}


def set_of(*paths: Path) -> FieldSet:
    """Return the set of some paths, each a tuple of elements."""
    result = EMPTY
    for path in paths:
        node = LEAF
        for element in reversed(path):
            node = {element: node}
        result = union(result, node)
    return result


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return the union of two sets."""
    if not one or one is other:
        return other
    return _union(one, other) if other else one


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return the intersection of two sets."""
    return (_intersection(one, other) or EMPTY) if one and other else EMPTY


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return the members of the first set only; paths below members of the second are kept."""
    return (_difference(one, other) or EMPTY) if one and other else one


def recursive_difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return the members of the first set that are not at or below a path of the second."""
    return (_recursive_difference(one, other) or EMPTY) if one and other else one


def matching(fields: FieldSet, pattern: FieldPattern) -> FieldSet:
    """Return the members of the set on the way to the ends of a pattern, and all below them."""
    return _matching(fields, pattern) or EMPTY


def contains(fields: FieldSet, path: Path) -> bool:
    """Return whether a path belongs to the set."""
    node = fields
    for element in path:
        if element not in node:
            return False
        node = node[element]
    return bool(path) and is_member(node)


def paths(fields: FieldSet) -> Iterator[Path]:
    """Return all paths of the set: at each level first the members, then the paths below them."""
    yield from _paths((), fields)


def ordered(fields: FieldSet) -> FieldSet:
    """Return the same set with its elements in upstream's order of serialization."""
    keys = sorted(fields)
    if keys and keys[-1] >= "g":  # fields alone are sorted already
        keys.sort(key=element_sort_key)
    return {key: ordered(fields[key]) if fields[key] else LEAF for key in keys}


def parse(fields: Any) -> FieldSet:
    """Return the set of a client's FieldsV1; elements of unknown kinds are dropped.

    Raise ValueError if it is not a tree of objects or an element is malformed.
    """
    if not isinstance(fields, Mapping):
        raise ValueError("expected an object")  # noqa: TRY004 (an error of the client)
    parsed: FieldSet = {}
    for key, below in fields.items():
        element = key if key == SELF else canonical_element(key)
        if element == SELF:
            parsed[SELF] = LEAF
        elif element is not None:
            parsed[element] = parse(below)
    return LEAF if parsed.keys() == {SELF} else parsed


def _paths(prefix: Path, node: FieldSet) -> Iterator[Path]:
    keys = sorted((key for key in node if key != SELF), key=element_sort_key)
    yield from ((*prefix, key) for key in keys if is_member(node[key]))
    for key in keys:
        yield from _paths((*prefix, key), node[key])


def _node(children: FieldSet, *, member: bool) -> FieldSet | None:
    """Return a node with these children, none of which is None; None if it has no members."""
    if not member:
        return children or None
    return {SELF: LEAF, **children} if children else LEAF


def _union(one: FieldSet, other: FieldSet) -> FieldSet:
    if one is other:
        return one
    merged = dict(one) if one else {SELF: LEAF}
    for key, below in other.items():
        merged[key] = _union(merged[key], below) if key in merged else below
    if not other:
        merged[SELF] = LEAF
    return merged if merged.keys() != {SELF} else LEAF


def _intersection(one: FieldSet, other: FieldSet) -> FieldSet | None:
    common = {key: _intersection(one[key], other[key]) for key in one.keys() & other.keys()}
    return _node(_kept(common), member=is_member(one) and is_member(other))


def _difference(one: FieldSet, other: FieldSet) -> FieldSet | None:
    left = {
        key: _difference(below, other[key]) if key in other else below
        for key, below in one.items()
        if key != SELF
    }
    return _node(_kept(left), member=is_member(one) and not is_member(other))


def _recursive_difference(one: FieldSet, other: FieldSet) -> FieldSet | None:
    left = {
        key: _without_below(below, other[key]) if key in other else below
        for key, below in one.items()
        if key != SELF
    }
    return _node(_kept(left), member=is_member(one))


def _without_below(below: FieldSet, other: FieldSet) -> FieldSet | None:
    return None if is_member(other) else _recursive_difference(below, other)


def _matching(node: FieldSet, pattern: FieldPattern) -> FieldSet | None:
    if not pattern:
        return node
    kept = {
        key: _matching(below, pattern.get(key) or pattern.get(ANY) or {})
        for key, below in node.items()
        if key in pattern or ANY in pattern
    }
    return _node(_kept(kept), member=is_member(node))


def _kept(children: Mapping[str, FieldSet | None]) -> FieldSet:
    return {key: node for key, node in children.items() if node is not None and key != SELF}
