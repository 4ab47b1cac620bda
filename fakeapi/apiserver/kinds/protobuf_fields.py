"""Protobuf encoding of built-in kinds as data: the number, name and type of each field.

Messages are named by Go package and type (``core/v1.Pod``). A field's ``code`` is one of

    s, i, o, d, b    string, integer, bool, double, bytes (in JSON: base64)
    m                a message, named by ``reference``
    time, microtime, duration, quantity, int-or-string, raw, items
                     messages whose JSON is not an object; ``raw`` is JSON, ``items`` strings
    schema-or-bool, schema-or-list, schema-or-names
                     messages whose JSON is a JSONSchemaProps or another value
    [x, {x           a list of x, a map from strings to x

:mod:`fakeapi.kinds.generate_wire` generates the table.
"""

from __future__ import annotations

import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson

FILE_NAME: Final = "wire.json.xz"

SCHEMA: Final = "apiextensions/v1.JSONSchemaProps"
"""The message of the schemas in a CustomResourceDefinition."""

_FOLDERS: Final = {"": "core", "events.k8s.io": "events"}


@dataclass(frozen=True, slots=True)
class ProtobufField:
    """One field; ``name`` is "" if JSON inlines its members into the enclosing message.

    ``omits_zero``: JSON omits the field if it is empty, zero or false.
    """

    name: str
    code: str
    reference: str
    omits_zero: bool


ProtobufMessage = Mapping[int, ProtobufField]


def message_of(api_version: str, kind: str) -> str | None:
    """Return the name of a kind's message, or None for an unknown kind."""
    group, _, version = api_version.rpartition("/")
    folder = _FOLDERS.get(group, group.partition(".")[0])
    table = _table()
    for name in (f"{folder}/{version}.{kind}", f"meta/v1.{kind}"):
        if name in table:
            return name
    return None


@cache
def message(name: str) -> ProtobufMessage:
    """Return the fields of a message by their numbers."""
    return {
        number: ProtobufField(field, code, reference, bool(omits))
        for number, field, code, reference, omits in _table()[name]
    }


@cache
def _table() -> Mapping[str, list[Any]]:
    packed = (Path(__file__).with_name("data") / FILE_NAME).read_bytes()
    table: Mapping[str, list[Any]] = orjson.loads(lzma.decompress(packed))
    return table
