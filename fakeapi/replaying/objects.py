"""Access to the fields of an object of any kind, as a replay needs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

Document: TypeAlias = dict[str, Any]
"""One API object as parsed JSON."""
ObjectLocation: TypeAlias = tuple[str, str]
"""A resource's name, and ``namespace/name`` or the name alone."""
FieldPath: TypeAlias = tuple[str, ...]
"""Keys; ``key=value`` is the list element with this value, as in ``type=Ready``."""

_FINISHED = ("Succeeded", "Failed")


def key_of(document: Document) -> str:
    """Return ``namespace/name``, or the name alone."""
    metadata = document["metadata"]
    return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))


def uid_of(document: Document) -> str:
    """Return the UID, "" if there is none."""
    return str(document["metadata"].get("uid", ""))


def is_deleting(document: Document) -> bool:
    """Return whether an object has a deletion timestamp."""
    return bool(document["metadata"].get("deletionTimestamp"))


def is_active(document: Document) -> bool:
    """Return whether a pod counts for its controller: neither being deleted nor finished."""
    phase = read_field(document, ("status", "phase"))
    return not is_deleting(document) and phase not in _FINISHED


def owners_of(document: Document) -> Sequence[Document]:
    """Return the references to owners."""
    return document["metadata"].get("ownerReferences") or ()


def controller_of(document: Document) -> Document | None:
    """Return the reference to the controlling owner."""
    return next((owner for owner in owners_of(document) if owner.get("controller")), None)


def read_field(document: Document, path: FieldPath) -> Any:
    """Return the value at a path, or None."""
    value: Any = document
    for step in path:
        if isinstance(value, list):
            value = _element(value, step)
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def copy_field(path: FieldPath, origin: Document, into: Document) -> None:
    """Copy a field from one object to another; an absent field is removed."""
    *way, last = path
    value = read_field(origin, path)
    parent: Any = into
    for step in way:
        if not isinstance(parent.get(step), dict | list):
            if value is None:
                return
            parent[step] = [] if "=" in last and step == way[-1] else {}
        parent = parent[step]
    if isinstance(parent, list):
        _put(parent, last, value)
    elif value is None:
        parent.pop(last, None)
    else:
        parent[last] = value


def drop_empty_metadata_maps(document: Document) -> None:
    """Remove empty labels and annotations from an object."""
    metadata = document["metadata"]
    for name in ("labels", "annotations"):
        if name in metadata and not metadata[name]:
            del metadata[name]


def with_changes(there: Document, before: Document, after: Document) -> Document:
    """Return ``there`` with the changes from ``before`` to ``after``; lists are replaced."""
    changed = dict(there)
    for key in dict.fromkeys((*before, *after)):
        was, now, here = before.get(key), after.get(key), there.get(key)
        if was == now:
            continue
        if isinstance(now, dict) and isinstance(here, dict):
            changed[key] = with_changes(here, was if isinstance(was, dict) else {}, now)
        elif key in after:
            changed[key] = now
        else:
            changed.pop(key, None)
    return changed


def _element(elements: list[Any], step: str) -> Any:
    key, _, wanted = step.partition("=")
    return next((each for each in elements if each.get(key) == wanted), None)


def _put(elements: list[Any], step: str, value: Any) -> None:
    """Replace the element of a step or of the same type, or append it; None removes it."""
    there = _element(elements, step)
    if there is None and value is not None:
        there = _element(elements, f"type={value.get('type')}")
    if there is None:
        elements += [] if value is None else [value]
    elif value is None:
        elements.remove(there)
    else:
        elements[elements.index(there)] = value
