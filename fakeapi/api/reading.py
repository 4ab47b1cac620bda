"""Reading: a document becomes what its kind holds of it, in place.

Built-in kinds are read by their Go structs (:mod:`fakeapi.api.decoding`), custom resources by the
schema of their definition, the schemas in a definition by both.
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
    """Keep of a document what its kind has, and give the paths of the rest.

    Raises MismatchError.
    """
    if kind.custom is not None:
        return tuple(compiled(kind.custom).read(document))
    unknown = decode(schema_of(kind), document)
    if kind is CUSTOM_RESOURCE_DEFINITIONS:
        return (*unknown, *read_schemas(document))
    return unknown
