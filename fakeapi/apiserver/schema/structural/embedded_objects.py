"""Embedded objects (``x-kubernetes-embedded-resource``): their kind and their metadata.

Their metadata is decoded as that of any object, so that its unknown fields are removed. apiVersion
and kind are required.

Source: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from fakeapi.apiserver.kinds.schemas import struct_of
from fakeapi.apiserver.kinds.structural_types import Struct
from fakeapi.apiserver.objects.metadata import check_custom_metadata
from fakeapi.apiserver.schema.structural.schema_tree import SchemaNode
from fakeapi.apiserver.wire.errors import Cause, invalid_value, required
from fakeapi.apiserver.wire.struct_decoder import StructDecodeError, decode_struct
from policies.kubernetes.name_validation import invalid_dns1035_label

_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

EmbeddedObject = tuple[dict[str, Any], str]
EmbeddedObjectFinder = Callable[[Any, str], Iterator[EmbeddedObject]]


def object_meta() -> Struct:
    """Return the type of any object's metadata."""
    return struct_of(_OBJECT_META)


def decode_metadata(document: dict[str, Any], path: str = "") -> list[str]:
    """Decode an object's metadata in place, and return the paths of its unknown fields.

    Raise StructDecodeError.
    """
    metadata = document.get("metadata")
    if metadata is None:
        document.pop("metadata", None)
        return []
    if not isinstance(metadata, dict):
        noun = {str: "string", list: "array", bool: "bool"}.get(type(metadata), "number")
        raise StructDecodeError(
            f"json: cannot unmarshal {noun} into Go value of type v1.ObjectMeta"
        )
    prefix = f"{path}.metadata" if path else "metadata"
    return [f"{prefix}.{name}" for name in decode_struct(object_meta(), metadata)]


def embedded_object_finder(node: SchemaNode) -> EmbeddedObjectFinder | None:
    """Return a function that finds the embedded objects of a value; None if there are none."""
    fields = {name: embedded_object_finder(below) for name, below in node.properties.items()}
    nested = {name: find for name, find in fields.items() if find is not None}
    items = embedded_object_finder(node.items) if node.items is not None else None
    others = embedded_object_finder(node.additional) if node.additional is not None else None
    if not (node.embedded or nested or items or others):
        return None

    def find(value: Any, path: str) -> Iterator[EmbeddedObject]:
        if isinstance(value, dict):
            if node.embedded:
                yield value, path
            for name, item in value.items():
                below = nested.get(name) if name in node.properties else others
                if below is not None:
                    place = f"{path}.{name}" if name in node.properties else f"{path}[{name}]"
                    yield from below(item, place.removeprefix("."))
        elif isinstance(value, list) and items is not None:
            for index, item in enumerate(value):
                yield from items(item, f"{path}[{index}]")

    return find


def decode_embedded(find: EmbeddedObjectFinder, document: dict[str, Any]) -> list[str]:
    """Decode the metadata of embedded objects in place; return the paths of unknown fields.

    Raise StructDecodeError.
    """
    unknown: list[str] = []
    for embedded, path in find(document, ""):
        for name in ("apiVersion", "kind"):
            if name in embedded and not isinstance(embedded[name], str):
                fault = invalid_value(f"{path}.{name}", embedded[name], "must be a string")
                raise StructDecodeError(f"{fault.field}: {fault.message}")
        try:
            unknown += decode_metadata(embedded, path)
        except StructDecodeError as error:
            fault = invalid_value(f"{path}.metadata", embedded["metadata"], str(error))
            raise StructDecodeError(f"{fault.field}: {fault.message}") from None
    return sorted(unknown)


def embedded_errors(find: EmbeddedObjectFinder, document: dict[str, Any]) -> Iterator[Cause]:
    """Return the errors of apiVersion, kind and metadata of embedded objects."""
    for embedded, path in find(document, ""):
        for name in ("apiVersion", "kind"):
            if name not in embedded:
                yield required(f"{path}.{name}")
            elif not embedded[name]:
                yield invalid_value(f"{path}.{name}", "", "must not be empty")
        kind = embedded.get("kind")
        wrong = invalid_dns1035_label(kind.lower()) if kind else ""
        if wrong:
            rule = f"may have mixed case, but should otherwise match: {wrong}"
            yield invalid_value(f"{path}.kind", kind, rule)
        yield from check_custom_metadata(embedded.get("metadata") or {}, f"{path}.metadata")
