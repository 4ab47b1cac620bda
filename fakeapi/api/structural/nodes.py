"""A structural schema as a tree: of each place, what there may be and what stands in for nothing.

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
"""What stands for a value that is not there, since ``None`` is one that is."""

META_FIELDS: Final = frozenset(("apiVersion", "kind", "metadata"))


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """One place of a schema.

    ``additional`` is the schema of fields beside ``properties``; ``allows_additional``: there may
    be any. ``preserves``: what is not known stays. ``embedded``: an object with metadata of its
    own. ``fills``: there are defaults here or below. ``rules`` are the CEL rules of this place.
    """

    schema: Json
    type: str
    nullable: bool
    default: Any
    properties: Mapping[str, Node]
    items: Node | None
    additional: Node | None
    allows_additional: bool
    preserves: bool
    embedded: bool
    list_type: str
    list_keys: tuple[str, ...]
    rules: Sequence[Json]
    fills: bool
    defaulted: tuple[tuple[str, Node], ...]
    filled: tuple[tuple[str, Node], ...]

    def below(self, name: str) -> Node | None:
        """Return the node of a field, None if nothing is known about it."""
        return self.properties.get(name) or self.additional


def node_of(schema: Json) -> Node:
    """Make the tree of a schema that is structural."""
    properties = {name: node_of(below) for name, below in (schema.get("properties") or {}).items()}
    items = schema.get("items")
    additional = schema.get("additionalProperties")
    item_node = node_of(items) if isinstance(items, dict) else None
    additional_node = node_of(additional) if isinstance(additional, dict) else None
    filled = tuple((name, node) for name, node in properties.items() if node.fills)
    default = schema.get("default", ABSENT)
    others = [node for node in (item_node, additional_node) if node is not None]
    return Node(
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
        fills=default not in (ABSENT, None) or bool(filled) or any(n.fills for n in others),
        defaulted=tuple((n, node) for n, node in properties.items() if node.default is not ABSENT),
        filled=filled,
    )
