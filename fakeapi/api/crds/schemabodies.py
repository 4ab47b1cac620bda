"""Schemas inside of schemas, read as Go reads them.

``items`` and ``additionalProperties`` are a schema or something else (a list, a boolean), so the
structural type of a definition calls them anything at all. Here they are read as the schemas they
are, so that of them, too, stays what there is to know.

Source: pkg/apis/apiextensions/v1/marshal.go of k8s.io/apiextensions-apiserver.
"""

from __future__ import annotations

from typing import Any, Final

from fakeapi.api.decoding import MismatchError, decode
from fakeapi.kinds.schemas import struct_of

_SCHEMA: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
_MAPS: Final = ("properties", "patternProperties", "definitions")
_LISTS: Final = ("allOf", "anyOf", "oneOf")


def read_schemas(definition: dict[str, Any]) -> list[str]:
    """Read all schemas of a definition, whose other parts have been read, in place.

    Gives the paths of what they do not have. Raises MismatchError.
    """
    unknown: list[str] = []
    versions = (definition.get("spec") or {}).get("versions") or ()
    for index, version in enumerate(versions):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if isinstance(schema, dict):
            _visit(schema, f"spec.versions[{index}].schema.openAPIV3Schema", unknown)
    return unknown


def _visit(schema: dict[str, Any], path: str, unknown: list[str]) -> None:
    for name in ("items", "additionalProperties", "additionalItems"):
        found = schema.get(name)
        if isinstance(found, dict):
            where = f"{path}.{name}"
            unknown += [f"{where}.{field}" for field in decode(struct_of(_SCHEMA), found)]
            _visit(found, where, unknown)
        elif not _fits(name, found):
            kind = "JSONSchemaPropsOrArray" if name == "items" else "JSONSchemaPropsOrBool"
            raise MismatchError(
                f"json: cannot unmarshal {path}.{name} into Go value of type v1.{kind}"
            )
    for name in _MAPS:
        for key, below in (schema.get(name) or {}).items():
            _visit(below, f"{path}.{name}.{key}", unknown)
    for name in _LISTS:
        for index, below in enumerate(schema.get(name) or ()):
            _visit(below, f"{path}.{name}[{index}]", unknown)
    if isinstance(schema.get("not"), dict):
        _visit(schema["not"], f"{path}.not", unknown)


def _fits(name: str, value: Any) -> bool:
    """Return whether what is no schema may stand in place of one."""
    if name == "items":
        return value is None or isinstance(value, list)
    return value is None or isinstance(value, bool)
