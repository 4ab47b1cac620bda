"""The types that expressions of mutations create: configurations of objects, and JSON patches.

``Object`` is the type of the object of a request, ``Object.spec`` that of its field ``spec``, and
so on. They have no schema: any field is declared, with a value of any type. A literal of one of
these types is evaluated to a map with the name of its type as the value of
:data:`~extender.cel.macros.TYPE_KEY`.

Source: k8s.io/apiserver/pkg/cel/mutation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from extender.cel.cel_types import DYN, ERROR, STRING, CelType, type_of


class _Fields(dict[str, CelType]):
    """The fields of a message that also has fields of any other name, of the type ``other``."""

    def __init__(self, other: CelType, **fields: CelType) -> None:
        super().__init__(fields)
        self._other = other

    def __missing__(self, name: str) -> CelType:
        return self._other


_NO_TYPE: Final = CelType("simple", "")
_TEXTS: Final = dict.fromkeys(("op", "path", "from"), STRING)

OBJECT: Final = CelType("message", "Object", (), _Fields(DYN))
JSON_PATCH: Final = CelType("message", "JSONPatch", (), _Fields(_NO_TYPE, **_TEXTS, value=DYN))
NO_MESSAGE: Final = CelType("error", ERROR.name, (), {})
"""The type of a message literal whose name is not that of a message type."""
PATCH_TYPES: Final[Mapping[str, CelType]] = {
    "Object": type_of(OBJECT),
    "JSONPatch": type_of(JSON_PATCH),
}
"""The names of types that expressions of mutations have in addition to their variables."""
ESCAPE_KEY: Final = "jsonpatch.escapeKey"
"""The function that only expressions of mutations have."""
