"""The field set of an applied configuration: the fields that its manager owns afterwards.

A manager that applies ``spec.containers[name="web"].image`` owns the image and the container, not
the list and not the spec. Empty objects, nulls and the keys of maps are in the set themselves.

Source: sigs.k8s.io/structured-merge-diff/typed/tofieldset.go, fieldpath/set.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from fakeapi.api.managedfields.elements import field_element, item_element
from fakeapi.api.managedfields.fieldsets import EMPTY, LEAF, FieldSet, as_member
from fakeapi.api.managedfields.shapes import (
    GranularObject,
    field_type,
    granular_list_type,
    granular_object_type,
)
from fakeapi.kinds.types import UNTYPED, ListType, MapType, Scalar, Struct, Type


def to_field_set(shape: Type, document: Mapping[str, Any]) -> FieldSet:
    """Return the field set of a document."""
    return _node(shape, document) or EMPTY


def ensure_named_fields_are_members(shape: Type, fields: FieldSet) -> FieldSet:
    """Return the set with every struct field that has members below it as a member, too."""
    named: FieldSet = {}
    for element, node in fields.items():
        found = ensure_named_fields_are_members(_below(shape, element), node) if node else LEAF
        known = isinstance(shape, Struct) and element[2:] in shape.fields and element[0] == "f"
        named[element] = as_member(found) if known else found
    return named


def _below(shape: Type, element: str) -> Type:
    if isinstance(shape, ListType):
        return shape.element if element[0] == "k" else UNTYPED
    return UNTYPED if isinstance(shape, Scalar) else field_type(shape, element[2:])


def _node(shape: Type, value: Any) -> FieldSet | None:
    """Return the node of a value; None if the set has no field in it."""
    branch = granular_object_type(shape, value)
    if branch is not None:
        return _object(branch, value) or None
    items = granular_list_type(shape, value)
    if items is not None:
        return _list(items, value) or None
    return None if _is_null_object(shape, value) else LEAF


def _is_null_object(shape: Type, value: Any) -> bool:
    granular = isinstance(shape, Struct | MapType) and not shape.atomic
    return value is None and (granular or (isinstance(shape, ListType) and shape.kind != "atomic"))


def _object(branch: GranularObject, value: Mapping[str, Any]) -> FieldSet:
    node: FieldSet = {}
    for name, part in value.items():
        found = _node(field_type(branch, name), part)
        known = isinstance(branch, Struct) and name in branch.fields
        if part is None or part == {} or not known:
            found = as_member(found)
        if found is not None:
            node[field_element(name)] = found
    return node


def _list(items: ListType, values: list[Any]) -> FieldSet:
    elements = [item_element(items, value) for value in values]
    counts = Counter(elements)
    return {
        element: as_member(_node(items.element, value)) if counts[element] == 1 else LEAF
        for element, value in zip(elements, values, strict=True)
    }
