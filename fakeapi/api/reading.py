"""Typed documents: a document is reduced to the fields of its kind, in place.

Built-in kinds are decoded by their Go structs (:mod:`fakeapi.apiserver.wire.struct_decoder`),
custom resources by the schema of their definition, and the schemas in a definition by both.
"""

from __future__ import annotations

from fakeapi.api.crds.compiled import compiled
from fakeapi.api.crds.schemabodies import read_schemas
from fakeapi.api.decoding import decode
from fakeapi.kinds import Kind
from fakeapi.kinds.builtin import CUSTOM_RESOURCE_DEFINITIONS
from fakeapi.kinds.types import schema_of
from fakeapi.store import Document


def read_document(kind: Kind, document: Document) -> tuple[str, ...]:
    """Drop the fields that the kind does not have, and return their paths.

    Raise StructDecodeError.
    """
    if kind.custom is not None:
        return tuple(compiled(kind.custom).read(document))
    unknown = decode(schema_of(kind), document)
    if kind is CUSTOM_RESOURCE_DEFINITIONS:
        return (*unknown, *read_schemas(document))
    return unknown
