"""Strategic merge patches of any kind, by its structural type.

:mod:`extender.kube.decoders.strategic_merge_patch` implements the merge, and
:mod:`fakeapi.apiserver.kinds.structural_types` has the types. Fields that a type does not know
merge as in a JSON merge patch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from extender.kube import strategic
from extender.kube.strategic import PatchError
from fakeapi.api.errors import bad_request
from fakeapi.kinds import ResourceInfo
from fakeapi.kinds.types import UNTYPED, ListType, Struct, Type, child, schema_of


def strategic_merge(
    kind: ResourceInfo, document: Mapping[str, Any], patch: Mapping[str, Any]
) -> dict[str, Any]:
    """Return ``document`` with ``patch`` merged in; raise StatusError (400) if it is malformed."""
    try:
        return strategic.strategic_merge(MERGE_RULES, schema_of(kind), document, patch)
    except PatchError as error:
        raise bad_request(str(error)) from None


class StructuralMergeRules:
    """Merge rules of structural types."""

    def child(self, shape: Type, key: str) -> Type:
        return child(shape, key)

    def element(self, shape: Type) -> Type:
        return shape.element if isinstance(shape, ListType) else UNTYPED

    def merge_key(self, shape: Type) -> str | None:
        merge = shape.merge if isinstance(shape, ListType) else None
        return None if merge is None else merge.key

    def replaces(self, shape: Type, key: str) -> bool:
        field = shape.fields.get(key) if isinstance(shape, Struct) else None
        return field is not None and field.replaces


MERGE_RULES: Final = StructuralMergeRules()
