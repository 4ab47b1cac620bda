"""Pruning: unknown fields of an object are removed.

Fields that are not in the schema are removed, unless it preserves them
(``x-kubernetes-preserve-unknown-fields``); known fields below a preserving node are pruned again. A
null is removed if it is not allowed and no default replaces it. Objects in fields of any type
(``additionalProperties: true``) lose their fields, as upstream.

Sources: pkg/apiserver/schema/pruning/algorithm.go, defaulting/prunenulls.go of
k8s.io/apiextensions-apiserver.
"""

from __future__ import annotations

from typing import Any, Final

from fakeapi.api.decoding import LinkedPath, format_path
from fakeapi.api.structural.nodes import ABSENT, META_FIELDS, SchemaNode

Unknown = list[str]


def prune(node: SchemaNode, value: Any) -> Unknown:
    """Prune a value in place, and return the sorted paths of the removed fields."""
    unknown: Unknown = []
    _value(node, value, None, unknown)
    return sorted(unknown)


def prune_resource(node: SchemaNode, document: dict[str, Any]) -> Unknown:
    """Prune an object, except apiVersion, kind and metadata, which schemas need not declare."""
    kept = {name: document.pop(name) for name in META_FIELDS if name in document}
    unknown = prune(node, document)
    document.update(kept)
    return unknown


def _value(node: SchemaNode | None, value: Any, where: LinkedPath, unknown: Unknown) -> None:
    if value.__class__ is dict:
        if node is None:
            _strip(value, where, unknown)
        else:
            _prune_object(node, value, where, unknown)
    elif value.__class__ is list:
        items = node.items if node is not None else None
        if node is not None and node.preserves and items is None:
            return
        for index, item in enumerate(value):
            if item.__class__ in _CONTAINERS:
                _value(items, item, (where, f"[{index}]"), unknown)


_CONTAINERS: Final[frozenset[type]] = frozenset((dict, list))


def _prune_object(
    node: SchemaNode, value: dict[str, Any], where: LinkedPath, unknown: Unknown
) -> None:
    properties = node.properties
    for name, item in list(value.items()):
        below = properties.get(name)
        if below is None:
            if node.embedded and name in META_FIELDS:
                continue
            if not node.allows_additional:
                if not node.preserves:
                    unknown.append(format_path((where, name)))
                    del value[name]
                continue
            below = node.additional
        if item is None:
            if below is not None and not below.nullable and below.default is ABSENT:
                del value[name]
        elif item.__class__ in _CONTAINERS and not (node.embedded and name in META_FIELDS):
            _value(below, item, (where, name), unknown)


def _strip(value: dict[str, Any], where: LinkedPath, unknown: Unknown) -> None:
    for name in list(value):
        unknown.append(format_path((where, name)))
        del value[name]
