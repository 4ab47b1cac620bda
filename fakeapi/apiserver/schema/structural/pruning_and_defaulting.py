"""Pruning and defaulting of custom resources by their structural schema.

Fields that are not in the schema are removed, unless it preserves them
(``x-kubernetes-preserve-unknown-fields``); known fields below a preserving node are pruned again.
Objects in fields of any type (``additionalProperties: true``) lose their fields, as upstream.

A default replaces a field that is missing, and a null that is not allowed; defaults are also
applied to the fields inside a default. A null that is not allowed and has no default is removed.

Sources: pkg/apiserver/schema (pruning/algorithm.go, defaulting/algorithm.go,
defaulting/prunenulls.go) of k8s.io/apiextensions-apiserver.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

from fakeapi.apiserver.schema.structural.schema_tree import ABSENT, META_FIELDS, SchemaNode
from fakeapi.apiserver.wire.struct_decoder import LinkedPath, format_path

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


def apply_schema_defaults(node: SchemaNode, value: Any) -> None:
    """Apply the defaults of a schema to a value, in place."""
    if value.__class__ is dict:
        _default_object(node, value)
    elif value.__class__ is list and node.items is not None:
        _list(node.items, value)


def _default_object(node: SchemaNode, value: dict[str, Any]) -> None:
    for name, below in node.defaulted:
        if name not in value or (value[name] is None and not below.nullable):
            value[name] = _copy(below.default)
    for name, below in node.children_with_defaults:
        item = value.get(name)
        if item is not None:
            apply_schema_defaults(below, item)
    additional = node.additional
    if additional is not None and additional.has_defaults:
        for name, item in value.items():
            if name not in node.properties:
                value[name] = _element(additional, item)


def _list(items: SchemaNode, value: list[Any]) -> None:
    if items.has_defaults:
        value[:] = [_element(items, item) for item in value]


def _element(node: SchemaNode, item: Any) -> Any:
    if item is None and not node.nullable and node.default is not ABSENT:
        item = _copy(node.default)
    apply_schema_defaults(node, item)
    return item


def _copy(default: Any) -> Any:
    return deepcopy(default) if isinstance(default, dict | list) else default
