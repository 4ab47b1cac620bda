"""A configuration file or a policy file: decoded strictly, with the lines of its errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from extender.config.source_document import (
    ConfigFileError,
    FieldPath,
    FieldProblem,
    SourceDocument,
    parse_document,
    read_text,
)
from extender.config.strict_decoding import ConfigError, StrictResult, decode_strictly

S = TypeVar("S", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class DecodedFile(Generic[S]):
    """The value of a file, and its errors."""

    path: Path
    source: SourceDocument
    result: StrictResult[S]

    def locate(self, field: FieldPath) -> str:
        """Return ``FILE:LINE`` of a field."""
        return f"{self.path}:{self.source.line_of(field)}"

    def errors(self, found: Iterable[FieldProblem] = ()) -> tuple[str, ...]:
        """Return one line for each error, and for those that were ``found`` in the value."""
        every = (*self.source.duplicates, *self.result.errors, *found)
        ordered = sorted(every, key=lambda each: self.source.line_of(each.path))
        return tuple(f"{self.locate(each.path)}: {each.text}" for each in ordered)


def read_source(path: Path, kind: type[S]) -> SourceDocument:
    """Return the document of a file, which is to be decoded as ``kind``. Raise ConfigError."""
    return parse_source(path, read_source_text(path), kind)


def read_source_text(path: Path) -> str:
    """Return the text of a file. Raise ConfigError."""
    try:
        return read_text(path)
    except ConfigFileError as error:
        raise ConfigError(f"{path}: {error}") from None


def parse_source(path: Path, text: str, kind: type[S]) -> SourceDocument:
    """Return the document of a file with this text. Raise ConfigError."""
    text_fields = [each.encode_name for each in msgspec.structs.fields(kind) if each.type is str]
    try:
        return parse_document(text, text_fields)
    except ConfigFileError as error:
        raise ConfigError(f"{path}: {error}") from None


def decode_source(path: Path, source: SourceDocument, kind: type[S]) -> DecodedFile[S]:
    """Decode the document of a file; an empty one has no fields."""
    content = {} if source.content is None else source.content
    return DecodedFile(path, source, decode_strictly(content, kind))
