"""Typed documents: a document is reduced to the fields of its kind, in place.

Built-in kinds are decoded by their Go structs (:mod:`fakeapi.apiserver.wire.struct_decoder`),
custom resources by the schema of their definition, and the schemas in a definition by both.
"""

from __future__ import annotations

from fakeapi.api.crds.compiled import compiled_schema
from fakeapi.api.crds.schemabodies import decode_nested_schemas
from fakeapi.api.decoding import decode_struct
from fakeapi.kinds import ResourceInfo
from fakeapi.kinds.builtin import CUSTOM_RESOURCE_DEFINITIONS
from fakeapi.kinds.types import schema_of
from fakeapi.store import Document


def read_document(kind: ResourceInfo, document: Document) -> tuple[str, ...]:
    """Drop the fields that the kind does not have, and return their paths.

    Raise StructDecodeError.
    """
    if kind.custom is not None:
        return tuple(compiled_schema(kind.custom).prune(document))
    unknown = decode_struct(schema_of(kind), document)
    if kind is CUSTOM_RESOURCE_DEFINITIONS:
        return (*unknown, *decode_nested_schemas(document))
    return unknown
