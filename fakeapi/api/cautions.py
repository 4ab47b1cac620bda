"""Warnings for objects that were written.

Sources: WarningsOnCreate and WarningsOnUpdate in pkg/registry/customresource/strategy.go and
pkg/registry/customresourcedefinition/strategy.go of k8s.io/apiextensions-apiserver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fakeapi.api.crds.objects import finalizer_warnings
from fakeapi.api.structural.formats import known_format
from fakeapi.kinds import ResourceInfo
from fakeapi.kinds.builtin import CUSTOM_RESOURCE_DEFINITIONS
from fakeapi.store import Document, Entry

Json = Mapping[str, Any]


def warnings_for(
    kind: ResourceInfo, entry: Entry, previous: Entry | None = None
) -> tuple[str, ...]:
    """Return the warnings for an object that was written and replaced ``previous``."""
    if kind.custom is not None:
        if b'"finalizers"' not in entry.raw:
            return ()
        return finalizer_warnings(entry.document(), previous.document() if previous else None)
    if kind is not CUSTOM_RESOURCE_DEFINITIONS:
        return ()
    known = set(_definition_warnings(previous.document())) if previous else set()
    found = dict.fromkeys(_definition_warnings(entry.document()))
    return tuple(words for words in found if words not in known)


def _definition_warnings(definition: Document) -> Iterator[str]:
    sets = []
    for version in definition["spec"].get("versions") or ():
        for schema in _nested_schemas((version.get("schema") or {}).get("openAPIV3Schema")):
            if schema.get("format") and not known_format(schema):
                yield f'unrecognized format "{schema["format"]}"'
            items = schema.get("items")
            kind = items.get("type") if isinstance(items, dict) else None
            if schema.get("x-kubernetes-list-type") == "set" and kind in ("object", "array"):
                sets.append(
                    f'x-kubernetes-list-type: set for items of type "{kind}" is not supported by '
                    "server-side apply or CEL validation rules"
                )
    yield from sorted(set(sets))


def _nested_schemas(schema: Any) -> Iterator[Json]:
    """Yield a schema and all schemas inside it."""
    if not isinstance(schema, dict):
        return
    yield schema
    for name in ("items", "additionalProperties", "not"):
        yield from _nested_schemas(schema.get(name))
    for name in ("allOf", "anyOf", "oneOf"):
        for below in schema.get(name) or ():
            yield from _nested_schemas(below)
    for below in (schema.get("properties") or {}).values():
        yield from _nested_schemas(below)
