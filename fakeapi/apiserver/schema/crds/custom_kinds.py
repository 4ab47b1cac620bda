"""The kinds of a definition: one for each version, and the one in which objects are stored.

Kinds are cached by the content of a definition, so that they can be compared by identity: a
definition that changes gets new kinds. Server-side apply and managed fields use the structural type
of a version.

Sources: pkg/apiserver/customresource_handler.go, customresource_discovery_controller.go, helpers.go
of k8s.io/apiextensions-apiserver; k8s.io/kube-openapi/pkg/schemaconv, applied to the output of
pkg/controller/openapi/builder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, Final, Literal

import orjson

from fakeapi.apiserver.discovery.api_groups import version_rank
from fakeapi.apiserver.kinds import ResourceInfo, ResourceRegistry, SelectableField
from fakeapi.apiserver.kinds.resource_info import (
    CustomResourceInfo,
    PrinterColumn,
    ScalePaths,
    Subresource,
)
from fakeapi.apiserver.kinds.structural_types import (
    UNTYPED,
    Field,
    ListType,
    MapType,
    Scalar,
    Struct,
    Type,
)
from fakeapi.apiserver.schema.crds.definition_status import (
    ESTABLISHED,
    NAMES_ACCEPTED,
    TERMINATING,
    holds,
)
from fakeapi.apiserver.schema.structural.embedded_objects import object_meta
from fakeapi.apiserver.schema.structural.schema_tree import ABSENT, Json, SchemaNode, node_of

_TEXT: Final = Scalar("string")


def structural_type(schema: Json) -> Struct:
    """Return the structural type of a whole custom resource."""
    node = node_of(schema)
    return _resource_struct(node, opened=node.preserves or not schema)


def _resource_struct(node: SchemaNode, *, opened: bool) -> Struct:
    fields = {name: Field(_type_of(below)) for name, below in node.properties.items()}
    own = {"apiVersion": Field(_TEXT), "kind": Field(_TEXT), "metadata": Field(object_meta())}
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


_NO_CONVERSION: Final[Json] = MappingProxyType({"strategy": "None"})


@dataclass(frozen=True, eq=False)
class CustomResourceKinds:
    """The kinds of a definition by version, the ``served`` ones, and the ``stored`` one."""

    name: str
    kinds: Mapping[str, ResourceInfo]
    served: tuple[ResourceInfo, ...]
    stored: ResourceInfo


def kinds_of_definition(definition: Json) -> CustomResourceKinds | None:
    """Return the kinds of a definition; None if the definition is not served."""
    if not (holds(definition, ESTABLISHED) or holds(definition, NAMES_ACCEPTED)):
        return None
    is_terminating = "deletionTimestamp" in definition["metadata"] or holds(definition, TERMINATING)
    fields = [
        definition["metadata"]["name"],
        definition["spec"],
        definition["status"]["acceptedNames"],
        is_terminating,
    ]
    return _cached_kinds(orjson.dumps(fields))


def with_custom_kinds(
    kinds: ResourceRegistry, resources: Iterable[CustomResourceKinds]
) -> ResourceRegistry:
    """Return kinds with the served ones of custom resources added; existing kinds are kept."""
    served = [kind for resource in resources for kind in resource.served]
    own = [k for k in served if kinds.at(k.group, k.version, k.plural) is None]
    if not own:
        return kinds
    return ResourceRegistry((*kinds.all, *sorted(own, key=lambda kind: (kind.group, kind.plural))))


@lru_cache(maxsize=1024)
def _cached_kinds(fields: bytes) -> CustomResourceKinds:
    name, spec, names, is_terminating = orjson.loads(fields)
    maker = _KindBuilder(name, spec, names, is_terminating)
    kinds = {version["name"]: maker.kind(version) for version in spec["versions"]}
    served = tuple(kinds[v["name"]] for v in spec["versions"] if v.get("served"))
    return CustomResourceKinds(name, kinds, served, kinds[maker.storage])


class _KindBuilder:
    """Builds the kinds of one definition."""

    def __init__(self, name: str, spec: Json, names: Json, is_terminating: bool) -> None:  # noqa: FBT001
        self._name, self._spec, self._names = name, spec, names
        self._is_terminating = is_terminating
        self.storage = next(v["name"] for v in spec["versions"] if v.get("storage"))

    def kind(self, version: Json) -> ResourceInfo:
        """Return the kind of a version."""
        spec, names, group = self._spec, self._names, self._spec["group"]
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        return ResourceInfo(
            group=group,
            version=version["name"],
            kind=names["kind"],
            plural=names["plural"],
            singular=names.get("singular", ""),
            namespaced=spec["scope"] == "Namespaced",
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=self._subresources(version),
            definition=f"{'.'.join(reversed(group.split('.')))}.{version['name']}.{names['kind']}",
            structure=partial(structural_type, schema),
            generations=True,
            unconditional_update=False,
            deprecation=self._deprecation(version),
            selectable=_selectable(version),
            custom=self._custom(version, schema),
        )

    def _custom(self, version: Json, schema: Json) -> CustomResourceInfo:
        columns = version.get("additionalPrinterColumns") or ()
        scale = (version.get("subresources") or {}).get("scale")
        return CustomResourceInfo(
            definition=self._name,
            schema=schema,
            versions=tuple(each["name"] for each in self._spec["versions"]),
            storage_version=self.storage,
            list_kind=self._names.get("listKind") or f"{self._names['kind']}List",
            columns=tuple(map(_column, columns)),
            scale=_scale_paths(scale) if scale is not None else None,
            conversion=self._spec.get("conversion") or _NO_CONVERSION,
            terminating=self._is_terminating,
        )

    def _subresources(self, version: Json) -> Mapping[str, Subresource]:
        found = version.get("subresources") or {}
        own = (self._spec["group"], version["name"], self._names["kind"])
        made = {}
        if "status" in found:
            made["status"] = Subresource("status", *own)
        if found.get("scale") is not None:
            made["scale"] = Subresource("scale", "autoscaling", "v1", "Scale")
        return MappingProxyType(made)

    def _deprecation(self, version: Json) -> str:
        if not version.get("deprecated"):
            return ""
        group, kind = self._spec["group"], self._names["kind"]
        message = f"{group}/{version['name']} {kind} is deprecated"
        newer = [
            other["name"]
            for other in self._spec["versions"]
            if other.get("served")
            and not other.get("deprecated")
            and version_rank(other["name"]) > version_rank(version["name"])
        ]
        default = (
            f"{message}; use {group}/{max(newer, key=version_rank)} {kind}" if newer else message
        )
        return version.get("deprecationWarning") or default


def _selectable(version: Json) -> tuple[SelectableField, ...]:
    paths = [f["jsonPath"].removeprefix(".") for f in version.get("selectableFields") or ()]
    return tuple(SelectableField(path, (tuple(path.split(".")),)) for path in paths)


def _column(column: Json) -> PrinterColumn:
    return PrinterColumn(
        column["name"],
        column["type"],
        column["jsonPath"],
        column.get("format", ""),
        column.get("description", ""),
        column.get("priority", 0),
    )


def _scale_paths(scale: Json) -> ScalePaths:
    paths = (scale["specReplicasPath"], scale["statusReplicasPath"])
    return ScalePaths(*paths, scale.get("labelSelectorPath") or "")
