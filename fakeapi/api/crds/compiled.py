"""The schema of one version, compiled once: pruning, defaulting, validation and CEL rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from fakeapi.api.causes import invalid_value
from fakeapi.api.cel.checking import RuleCheck, rule_check
from fakeapi.api.errors import Cause
from fakeapi.api.structural.checking import compile_validator
from fakeapi.api.structural.embedded import (
    decode_embedded,
    decode_metadata,
    embedded_errors,
    embedded_object_finder,
)
from fakeapi.api.structural.faults import NIL_PATH, SchemaErrors, causes_of
from fakeapi.api.structural.filling import apply_schema_defaults
from fakeapi.api.structural.listtypes import duplicate_items_check
from fakeapi.api.structural.nodes import ABSENT, node_of
from fakeapi.api.structural.pruning import prune_resource
from fakeapi.kinds.custom import CustomResourceInfo, ScalePaths
from fakeapi.store import Document

OptionalOldObject = Mapping[str, Any] | None
_LARGEST: Final = 2**31 - 1
_BLOCKING: Final = frozenset(
    (
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    )
)
_UNCHECKED: Final = (
    "some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation"
)


class CompiledSchema:
    """The compiled schema of one version."""

    def __init__(self, custom: CustomResourceInfo) -> None:
        self._node = node_of(custom.schema)
        self._scale = custom.scale
        self._check = compile_validator(custom.schema)
        status = (custom.schema.get("properties") or {}).get("status")
        self._check_status = compile_validator(status) if status is not None else None
        self._duplicate_items = duplicate_items_check(self._node)
        self._embedded = embedded_object_finder(self._node)
        self._rules: RuleCheck | None = rule_check(self._node)

    def prune(self, document: Document) -> list[str]:
        """Prune a document in place, and return the paths of its unknown fields.

        Raise StructDecodeError if its metadata, or that of an embedded object, does not decode.
        """
        unknown = decode_metadata(document)
        unknown += prune_resource(self._node, document)
        if self._embedded is not None:
            unknown += decode_embedded(self._embedded, document)
        return unknown

    def apply_defaults(self, document: Document) -> None:
        """Apply the schema's defaults, in place."""
        apply_schema_defaults(self._node, document)

    def causes(self, document: Document, old: OptionalOldObject = None) -> list[Cause]:
        """Return the errors of an object before it is stored; ``old`` is the object it replaces."""
        faults: SchemaErrors = []
        self._check(document, ABSENT if old is None else old, None, faults)
        causes = causes_of(faults)
        if self._scale is not None:
            causes += _spec_errors(self._scale, document)
            causes += _status_errors(self._scale, document)
        if self._embedded is not None:
            causes += embedded_errors(self._embedded, document)
        return self._add_list_and_rule_errors(causes, document, old)

    def status_causes(self, document: Document, old: Mapping[str, Any]) -> list[Cause]:
        """Return the errors of an object before its status is stored."""
        faults: SchemaErrors = []
        if self._check_status is not None and "status" in document:
            self._check_status(document["status"], old.get("status", ABSENT), None, faults)
        causes = causes_of(faults, "status")
        if self._scale is not None:
            causes += _status_errors(self._scale, document)
        return self._add_list_and_rule_errors(causes, document, old)

    def _add_list_and_rule_errors(
        self, causes: list[Cause], document: Document, old: OptionalOldObject
    ) -> list[Cause]:
        """Add the errors of list types, and of CEL rules unless earlier errors block them.

        Duplicates in a list that the old object has, too, are ignored.
        """
        if self._duplicate_items is not None and (
            old is None or not any(self._duplicate_items(old, ""))
        ):
            causes += self._duplicate_items(document, "")
        if self._rules is None:
            return causes
        if any(cause.reason in _BLOCKING for cause in causes):
            return [*causes, invalid_value(NIL_PATH, None, _UNCHECKED)]
        return [*causes, *self._rules(document, old)]


@lru_cache(maxsize=1024)
def compiled_schema(custom: CustomResourceInfo) -> CompiledSchema:
    """Return the compiled schema of a version, from a cache. Raise ValueError if it is invalid."""
    return CompiledSchema(custom)


def _spec_errors(paths: ScalePaths, document: Document) -> Iterator[Cause]:
    yield from _number_errors(paths.spec, document)


def _status_errors(paths: ScalePaths, document: Document) -> Iterator[Cause]:
    yield from _number_errors(paths.status, document)
    selector = value_at(document, paths.selector) if paths.selector else None
    if selector is not None and not isinstance(selector, str):
        yield invalid_value(paths.selector, "", _accessor(paths.selector, selector, "string"))


def _number_errors(path: str, document: Document) -> Iterator[Cause]:
    number = value_at(document, path)
    if number is None:
        return
    if not isinstance(number, int) or isinstance(number, bool):
        yield invalid_value(path, 0, _accessor(path, number, "int64"))
    elif number < 0:
        yield invalid_value(path, number, "should be a non-negative integer")
    elif number > _LARGEST:
        yield invalid_value(path, number, f"should be less than or equal to {_LARGEST}")


def _accessor(path: str, value: Any, wanted: str) -> str:
    names = {str: "string", bool: "bool", float: "float64", int: "int64"}
    found = names.get(type(value), "map[string]interface {}")
    return f"{path} accessor error: {value} is of the type {found}, expected {wanted}"


def value_at(document: Any, path: str) -> Any:
    """Return the value at a simple path (``.spec.size``); None if it is missing."""
    for step in path.removeprefix(".").split("."):
        document = document.get(step) if isinstance(document, dict) else None
    return document
