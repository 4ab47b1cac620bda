"""The structural type of a custom resource, which server-side apply and managed fields use.

Source: k8s.io/kube-openapi/pkg/schemaconv, applied to the output of
k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final, Literal

from fakeapi.api.structural.embedded import object_meta
from fakeapi.api.structural.nodes import ABSENT, Json, SchemaNode, node_of
from fakeapi.kinds.types import UNTYPED, Field, ListType, MapType, Scalar, Struct, Type

_TEXT: Final = Scalar("string")


def structural_type(schema: Json) -> Struct:
    """Return the structural type of a whole custom resource."""
    node = node_of(schema)
    return _resource_struct(node, opened=node.preserves or not schema)


def _resource_struct(node: SchemaNode, *, opened: bool) -> Struct:
    fields = {name: Field(_type_of(below)) for name, below in node.properties.items()}
    own = {
        "apiVersion": Field(_TEXT),
        "kind": Field(_TEXT),
        "metadata": Field(object_meta()),
    }
    return Struct(MappingProxyType(fields | own), open=opened, go=False)


def _type_of(node: SchemaNode) -> Type:
    if node.schema.get("x-kubernetes-int-or-string"):
        return Scalar("int-or-string")
    if node.type == "array":
        return _list(node)
    if node.type == "object":
        return _object(node)
    return Scalar(node.type, node.schema.get("format", "")) if node.type else UNTYPED


def _object(node: SchemaNode) -> Type:
    atomic = node.schema.get("x-kubernetes-map-type") == "atomic"
    if node.embedded:
        return _resource_struct(node, opened=node.preserves)
    if node.properties:
        fields = {name: Field(_type_of(below)) for name, below in node.properties.items()}
        return Struct(MappingProxyType(fields), atomic, open=node.preserves, go=False)
    if node.additional is not None:
        return MapType(_type_of(node.additional), atomic)
    return MapType(UNTYPED, atomic) if atomic else UNTYPED


def _list(node: SchemaNode) -> Type:
    element = _type_of(node.items) if node.items is not None else UNTYPED
    defaults: dict[str, Any] = {}
    for key in node.list_keys:
        below = node.items.properties.get(key) if node.items is not None else None
        if below is not None and below.default is not ABSENT:
            defaults[key] = below.default
    kind: Literal["atomic", "set", "map"] = "atomic"
    if node.list_type in ("set", "map"):
        kind = "set" if node.list_type == "set" else "map"
    return ListType(element, kind, node.list_keys, None, MappingProxyType(defaults))
