"""The fields of a document as rows: the path of a field, and its value as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from extender.config.source_document import FieldPath, format_path

_NONE: Final = "none"


def field_rows(document: object) -> Iterator[tuple[str, str]]:
    """Yield the fields of a document that have no fields of their own."""
    yield from ((format_path(path), value) for path, value in _leaves((), document))


def _leaves(path: FieldPath, value: object) -> Iterator[tuple[FieldPath, str]]:
    match value:
        case Mapping():
            for key, each in value.items():
                yield from _leaves((*path, key), each)
        case [Mapping(), *_] as objects:
            for index, each in enumerate(objects):
                yield from _leaves((*path, index), each)
        case [*names]:
            yield path, ", ".join(map(str, names)) or _NONE
        case float():
            yield path, f"{value:g}"
        case _:
            yield path, str(value) or _NONE
