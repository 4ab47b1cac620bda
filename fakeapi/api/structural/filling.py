"""Defaulting: the schema's defaults for fields that an object does not set.

A default replaces a field that is missing, and a null that is not allowed; defaults are also
applied to the fields inside a default.

Source: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting/algorithm.go.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from fakeapi.api.structural.nodes import ABSENT, SchemaNode


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
