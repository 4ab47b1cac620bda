"""A structural schema as a tree of nodes, with the type, fields and default of each.

Source: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/structural.go, convert.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Json = Mapping[str, Any]


class Absent:
    """The type of :data:`ABSENT`."""


ABSENT: Final = Absent()
"""The marker of a missing value, since ``None`` is the value null."""

META_FIELDS: Final = frozenset(("apiVersion", "kind", "metadata"))


@dataclass(frozen=True, eq=False, slots=True)
class SchemaNode:
    """A node of a structural schema.

    ``additional`` is the schema of fields that are not in ``properties``; ``allows_additional``:
    additionalProperties is set. ``preserves``: unknown fields are preserved. ``embedded``: an
    embedded object. ``has_defaults``: there are defaults here or below. ``rules`` are the CEL rules
    of this node.
    """

    schema: Json
    type: str
    nullable: bool
    default: Any
    properties: Mapping[str, SchemaNode]
    items: SchemaNode | None
    additional: SchemaNode | None
    allows_additional: bool
    preserves: bool
    embedded: bool
    list_type: str
    list_keys: tuple[str, ...]
    rules: Sequence[Json]
    has_defaults: bool
    defaulted: tuple[tuple[str, SchemaNode], ...]
    children_with_defaults: tuple[tuple[str, SchemaNode], ...]

    def below(self, name: str) -> SchemaNode | None:
        """Return the node of a field; None if the schema has none."""
        return self.properties.get(name) or self.additional


def node_of(schema: Json) -> SchemaNode:
    """Return the tree of a structural schema."""
    properties = {name: node_of(below) for name, below in (schema.get("properties") or {}).items()}
    items = schema.get("items")
    additional = schema.get("additionalProperties")
    item_node = node_of(items) if isinstance(items, dict) else None
    additional_node = node_of(additional) if isinstance(additional, dict) else None
    filled = tuple((name, node) for name, node in properties.items() if node.has_defaults)
    default = schema.get("default", ABSENT)
    others = [node for node in (item_node, additional_node) if node is not None]
    return SchemaNode(
        schema=schema,
        type=schema.get("type", ""),
        nullable=bool(schema.get("nullable")),
        default=ABSENT if default is None else default,
        properties=properties,
        items=item_node,
        additional=additional_node,
        allows_additional=additional is not None,
        preserves=bool(schema.get("x-kubernetes-preserve-unknown-fields")),
        embedded=bool(schema.get("x-kubernetes-embedded-resource")),
        list_type=schema.get("x-kubernetes-list-type", ""),
        list_keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
        rules=schema.get("x-kubernetes-validations") or (),
        has_defaults=default not in (ABSENT, None)
        or bool(filled)
        or any(n.has_defaults for n in others),
        defaulted=tuple((n, node) for n, node in properties.items() if node.default is not ABSENT),
        children_with_defaults=filled,
    )
