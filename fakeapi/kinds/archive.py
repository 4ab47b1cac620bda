"""Kinds, schemas and descriptions of ``builtin.zip``, read on first use.

A definition has its OpenAPI name, ``io.k8s.api.core.v1.Pod``: the package, a dot, the short name. A
package is one member of the archive and is parsed once.

:mod:`fakeapi.kinds.generate` generates the archive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final
from zipfile import ZipFile

import orjson

_ARCHIVE: Final = Path(__file__).with_name("builtin.zip")
SCHEMA_REF_PREFIX: Final = "#/components/schemas/"


def read_kinds() -> Sequence[Mapping[str, Any]]:
    """Return the generated data of every built-in kind, in the order of discovery."""
    kinds: Sequence[Mapping[str, Any]] = _read("kinds.json")
    return kinds


def read_schema(definition: str) -> Mapping[str, Any]:
    """Return a definition's OpenAPI v3 schema, without descriptions; raises KeyError."""
    package, _, name = definition.rpartition(".")
    schema: Mapping[str, Any] = _package("schemas", package)[name]
    return schema


def read_description(definition: str) -> tuple[str, Mapping[str, str]]:
    """Return the description of a definition and of each of its fields; raises KeyError."""
    package, _, name = definition.rpartition(".")
    own, fields = _package("descriptions", package)[name]
    return own, fields


@cache
def fingerprint() -> str:
    """Return a value that changes with the archive's content."""
    return ",".join(f"{member.CRC:08x}" for member in _archive().infolist())


def referenced_definition(schema: Mapping[str, Any]) -> str:
    """Return the name of the definition that a schema references, or ""."""
    if "allOf" in schema:
        schema = schema["allOf"][0]
    reference: str = schema.get("$ref", "")
    return reference.removeprefix(SCHEMA_REF_PREFIX)


@cache
def _package(part: str, package: str) -> Mapping[str, Any]:
    members: Mapping[str, Any] = _read(f"{part}/{package}.json")
    return members


def _read(member: str) -> Any:
    return orjson.loads(_archive().read(member))


@cache
def _archive() -> ZipFile:
    return ZipFile(_ARCHIVE)
