"""The strategy of custom resources: validation, preparation for updates, and warnings.

The schema of each version is compiled once: pruning, defaulting, validation and CEL rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.resource_info import CustomResourceInfo, ScalePaths
from fakeapi.apiserver.objects.metadata import check_custom_metadata
from fakeapi.apiserver.objects.object_names import object_name_errors
from fakeapi.apiserver.schema.cel.evaluation import RuleCheck, rule_check
from fakeapi.apiserver.schema.structural.embedded_objects import (
    decode_embedded,
    decode_metadata,
    embedded_errors,
    embedded_object_finder,
)
from fakeapi.apiserver.schema.structural.pruning_and_defaulting import (
    apply_schema_defaults,
    prune_resource,
)
from fakeapi.apiserver.schema.structural.schema_errors import NIL_PATH, SchemaErrors, causes_of
from fakeapi.apiserver.schema.structural.schema_tree import ABSENT, node_of
from fakeapi.apiserver.schema.structural.schema_validator import (
    compile_validator,
    duplicate_items_check,
)
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import Cause, invalid, invalid_value
from fakeapi.apiserver.wire.raw_json import json_equal
from policies.kubernetes.name_validation import invalid_label_key

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


def _accessor(path: str, value: Any, expected: str) -> str:
    names = {str: "string", bool: "bool", float: "float64", int: "int64"}
    found = names.get(type(value), "map[string]interface {}")
    return f"{path} accessor error: {value} is of the type {found}, expected {expected}"


def value_at(document: Any, path: str) -> Any:
    """Return the value at a simple path (``.spec.size``); None if it is missing."""
    for step in path.removeprefix(".").split("."):
        document = document.get(step) if isinstance(document, dict) else None
    return document


OldObject = Mapping[str, Any]
_STANDARD = frozenset(("orphan", "foregroundDeletion", "kubernetes"))


def validate_custom_resource(
    kind: ResourceInfo,
    custom: CustomResourceInfo,
    document: Document,
    old: OldObject | None = None,
    subresource: str = "",
) -> None:
    """Raise StatusError (422) with all errors of an object that is about to be stored."""
    schema = compiled_schema(custom)
    typed = {"apiVersion": kind.api_version, "kind": kind.kind, **document}
    causes: list[Cause] = list(object_name_errors(kind, document))
    causes += check_custom_metadata(document["metadata"], "metadata")
    if subresource == "status" and old is not None:
        causes += schema.status_causes(typed, old)
    else:
        causes += schema.causes(typed, old)
    if causes:
        raise invalid(kind.qualified_kind, document["metadata"].get("name", ""), causes)


def prepare_custom_update(kind: ResourceInfo, document: Document, old: OldObject) -> None:
    """Keep the old status if it is a subresource; increment the generation on other changes.

    Changes of metadata do not increment the generation.
    """
    if "status" in kind.subresources:
        document.pop("status", None)
        if "status" in old:
            document["status"] = old["status"]
    before, now = _content(old), _content(document)
    if not json_equal(now, before):
        metadata = document["metadata"]
        metadata["generation"] = metadata.get("generation", 0) + 1


def _content(document: OldObject) -> dict[str, Any]:
    others = ("metadata", "kind", "apiVersion")
    return {name: value for name, value in document.items() if name not in others}


def prepare_custom_status(document: Document, old: OldObject) -> None:
    """Copy everything except the status and the managed fields from ``old``."""
    status, managed = document.get("status"), document["metadata"].get("managedFields")
    version = document["metadata"].get("resourceVersion")
    document.clear()
    document.update(old)
    document["metadata"] = dict(old["metadata"])
    document.pop("status", None)
    if managed is not None:
        document["metadata"]["managedFields"] = managed
    if version is not None:
        document["metadata"]["resourceVersion"] = version
    if status is not None:
        document["status"] = status


def finalizer_warnings(document: OldObject, old: OldObject | None) -> tuple[str, ...]:
    """Return warnings of new finalizers whose names are not domain-qualified."""
    before = (old or {}).get("metadata", {}).get("finalizers") or ()
    added = set(document["metadata"].get("finalizers") or ()) - set(before)
    return tuple(
        warning for name in sorted(added) if (warning := _finalizer_warning(name)) is not None
    )


def _finalizer_warning(name: str) -> str | None:
    if "/" in name or name in _STANDARD or invalid_label_key(name):
        return None
    path = " including a path (/)" if "." in name else ""
    detail = "to avoid accidental conflicts with other finalizer writers"
    return f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name{path} {detail}'
