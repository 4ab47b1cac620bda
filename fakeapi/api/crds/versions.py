"""Validation of a definition's versions: columns, subresources, selectable fields, warnings.

Source: pkg/apis/apiextensions/validation/validation.go of k8s.io/apiextensions-apiserver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from fakeapi.api.causes import duplicate, invalid_value, required
from fakeapi.api.cel.fieldpaths import FieldPathError, find_field
from fakeapi.api.crds.schemas import schema_errors
from fakeapi.api.errors import Cause
from fakeapi.api.structural.faults import too_many_at
from fakeapi.api.structural.nodes import Json, node_of

_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = (
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
)
_MOST_SELECTABLE: Final = 8
_LONGEST_WARNING: Final = 256
_SELECTABLE_TYPES: Final = ("string", "boolean", "integer")
_SELECTABLE_RULE: Final = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with "
    "formats are allowed."
)


def version_errors(version: Json, path: str, *, has_status: bool) -> Iterator[Cause]:
    """Return the errors of one version, except those of values that all versions share."""
    yield from _warning_errors(version, path)
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema is not None:
        yield from schema_errors(schema, f"{path}.schema.openAPIV3Schema", has_status=has_status)
    yield from subresource_errors(version.get("subresources") or {}, f"{path}.subresources")
    columns = version.get("additionalPrinterColumns") or ()
    yield from column_errors(columns, f"{path}.additionalPrinterColumns")
    selectable = version.get("selectableFields") or ()
    yield from selectable_field_errors(selectable, schema, f"{path}.selectableFields")


def _warning_errors(version: Json, path: str) -> Iterator[Cause]:
    warning = version.get("deprecationWarning")
    if warning is None:
        return
    where = f"{path}.deprecationWarning"
    if not version.get("deprecated"):
        yield invalid_value(where, warning, "can only be set for deprecated versions")
    if len(warning) > _LONGEST_WARNING:
        yield invalid_value(where, warning, f"must be <= {_LONGEST_WARNING} characters long")
    if not warning:
        yield invalid_value(where, warning, "must not be an empty string")
    for index, character in enumerate(warning):
        if not character.isprintable():
            rule = (
                "must only contain printable UTF-8 characters; non-printable character found at "
                f"index {index}"
            )
            yield invalid_value(where, warning, rule)
            return


def column_errors(columns: Sequence[Json], path: str) -> Iterator[Cause]:
    """Return the errors of printer columns."""
    types, formats = ",".join(_COLUMN_TYPES), ",".join(_COLUMN_FORMATS)
    for index, column in enumerate(columns):
        where = f"{path}[{index}]"
        if not column.get("name"):
            yield required(f"{where}.name")
        kind, form = column.get("type", ""), column.get("format")
        if not kind:
            yield required(f"{where}.type", f"must be one of {types}")
        elif kind not in _COLUMN_TYPES:
            yield invalid_value(f"{where}.type", kind, f"must be one of {types}")
        if form and form not in _COLUMN_FORMATS:
            yield invalid_value(f"{where}.format", form, f"must be one of {formats}")
        if not column.get("jsonPath"):
            yield required(f"{where}.JSONPath")
        else:
            yield from _simple_path_errors(column["jsonPath"], f"{where}.JSONPath")


def _simple_path_errors(text: str, path: str) -> Iterator[Cause]:
    if not text.startswith("."):
        yield invalid_value(path, text, "must be a simple json path starting with .")


def subresource_errors(subresources: Json, path: str) -> Iterator[Cause]:
    """Return the errors of a scale subresource's paths."""
    scale = subresources.get("scale")
    if scale is None:
        return
    for name, root in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        where, text = f"{path}.scale.{name}", scale.get(name)
        if not text:
            yield required(where)
        elif wrong := list(_simple_path_errors(text, where)):
            yield from wrong
        elif not text.startswith(root):
            yield invalid_value(where, text, f"should be a json path under {root.rstrip('.')}")
    where, text = f"{path}.scale.labelSelectorPath", scale.get("labelSelectorPath")
    if not text:
        return
    if wrong := list(_simple_path_errors(text, where)):
        yield from wrong
    elif not text.startswith((".spec.", ".status.")):
        yield invalid_value(where, text, "should be a json path under either .spec or .status")


def selectable_field_errors(
    fields: Sequence[Json], schema: Json | None, path: str
) -> Iterator[Cause]:
    """Return the errors of selectable fields."""
    if not fields:
        return
    if schema is None:
        rule = "may only be set when `version.schema.openAPIV3Schema` is not included"
        yield invalid_value(path, "", rule)
        return
    node = node_of(schema)
    seen: set[str] = set()
    for index, field in enumerate(fields):
        text, where = field.get("jsonPath", ""), f"{path}[{index}].jsonPath"
        if not text:
            yield required(where)
            continue
        try:
            spelled, found = find_field(text, node, brackets=False)
        except FieldPathError as error:
            yield invalid_value(where, text, f"is an invalid path: {error}")
            continue
        if spelled.partition(".")[0] == "metadata":
            yield invalid_value(where, text, "must not point to fields in metadata")
        if found is None or found.type not in _SELECTABLE_TYPES:
            yield invalid_value(where, text, _SELECTABLE_RULE)
        if spelled in seen:
            yield duplicate(where, text)
        seen.add(spelled)
    if len(seen) > _MOST_SELECTABLE:
        yield too_many_at(path, len(seen), _MOST_SELECTABLE)
