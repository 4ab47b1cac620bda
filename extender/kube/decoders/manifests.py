"""Kubernetes objects in files, as ``kubectl get … -o json|yaml`` prints them or by hand.

A file is JSON or YAML, gzipped or not: one object, a List, JSON lines, or a stream of documents;
``-`` is standard input. Every object is returned as JSON bytes with its kind, so that files and
API responses use the same decoders.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec
import yaml

from extender.kube.decoders.typed_decoder import (
    Decode,
    Unreadable,
    tolerant_decoder,
    with_field_path,
)
from extender.kube.decoders.yaml_loader import BoundedLoader
from policies.kubernetes.input_error import InputError

T = TypeVar("T")

_GZIP = b"\x1f\x8b"
_NOT_SPACE = re.compile(r"\S")


class ManifestError(InputError, ValueError):
    """A file does not contain Kubernetes objects; the text names file, place and reason."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object: its kind, its JSON, and its source, such as ``pods.yaml[3]``."""

    kind: str
    raw: bytes
    source: str


@dataclass(frozen=True, slots=True)
class Document:
    """Any document as JSON, and its source, such as ``summary.json[0]``."""

    raw: bytes
    source: str


class _Header(msgspec.Struct, rename="camel"):
    kind: str | None = None
    api_version: str | None = None
    items: list[msgspec.Raw] | None = None


_headers = msgspec.json.Decoder(_Header)
_lines = msgspec.json.Decoder(msgspec.Raw)


class _Loader(BoundedLoader):
    """YAML as Kubernetes reads it: timestamps stay strings."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def read_manifests(path: str) -> list[Manifest]:
    """List the objects of a file, including the items of Lists. Raise ManifestError."""
    return _manifests(read_documents(path))


def parse_manifests(text: bytes, name: str) -> list[Manifest]:
    """List the objects of a text; ``name`` is its name in errors. Raise ManifestError."""
    return _manifests(_named_documents(text, name))


def read_documents(path: str) -> list[Document]:
    """List the documents of a file, of any kind or of none. Raise ManifestError."""
    name = "standard input" if path == "-" else path
    return _named_documents(_contents(path, name), name)


def _manifests(documents: Iterable[Document]) -> list[Manifest]:
    found: list[Manifest] = []
    for document in documents:
        try:
            found.extend(_objects(document.raw, document.source, None))
        except RecursionError:
            raise ManifestError(f"{document.source}: nested too deeply") from None
    return found


def _named_documents(data: bytes, name: str) -> list[Document]:
    try:
        documents = enumerate(_documents(data, name))
        return [Document(raw, f"{name}[{index}]") for index, raw in documents]
    except RecursionError:
        raise ManifestError(f"{name}: nested too deeply") from None


def decode_document(decoder: msgspec.json.Decoder[T], document: Document) -> T:
    """Decode a document that is not an API object. Raise ManifestError."""
    try:
        return decoder.decode(document.raw)
    except msgspec.ValidationError as error:
        raise ManifestError(f"{document.source}: {with_field_path(str(error))}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ManifestError(f"{document.source}: not JSON: {error}") from None
    except RecursionError:
        raise ManifestError(f"{document.source}: nested too deeply") from None


def decode_manifests(
    manifests: Iterable[Manifest], kind: str, decode: Decode[T]
) -> list[T | Unreadable]:
    """Decode the objects of one kind; a malformed one becomes an Unreadable."""
    read = tolerant_decoder(kind, decode)
    return [read(manifest.raw) for manifest in manifests if manifest.kind == kind]


def _contents(path: str, name: str) -> bytes:
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return gzip.decompress(data) if data.startswith(_GZIP) else data
    except (OSError, EOFError, zlib.error) as error:
        problem = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ManifestError(f"{name}: cannot be read: {problem}") from None


def _documents(data: bytes, name: str) -> Iterable[bytes]:
    if data.lstrip()[:1] in (b"{", b"["):
        try:
            data.decode()  # the decoder does not look at the text of values that are kept raw
            return [bytes(raw) for raw in _lines.decode_lines(data)]
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass
        try:
            return list(_concatenated(data.decode()))
        except ValueError:
            pass  # a YAML document may also start with a brace; the YAML parser reports the error
    return _yaml_documents(data, name)


def _concatenated(text: str) -> Iterator[bytes]:
    """Split JSON documents that follow each other without being lines."""
    decoder, end = json.JSONDecoder(), 0
    while start := _NOT_SPACE.search(text, end):
        value, end = decoder.raw_decode(text, start.start())
        yield msgspec.json.encode(value)


def _yaml_documents(data: bytes, name: str) -> list[bytes]:
    try:
        # This loader is safe: it builds plain values only.
        documents = yaml.load_all(data, _Loader)
        return [msgspec.json.encode(document) for document in documents if document is not None]
    except yaml.YAMLError as error:
        raise ManifestError(
            f"{name}: neither JSON nor YAML: {' '.join(str(error).split())}"
        ) from None
    except (TypeError, UnicodeDecodeError) as error:
        raise ManifestError(f"{name}: not a Kubernetes document: {error}") from None


def _objects(raw: bytes, source: str, kind_of_items: str | None) -> Iterator[Manifest]:
    try:
        header = _headers.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ManifestError(
            f"{source}: expected a Kubernetes object, with texts for apiVersion and kind"
        ) from None
    kind = header.kind or kind_of_items
    if not kind:
        raise ManifestError(f"{source}: has no kind; expected a Kubernetes object")
    if kind.endswith("List") and header.items is not None:
        for index, item in enumerate(header.items):
            yield from _objects(bytes(item), f"{source}.items[{index}]", kind.removesuffix("List"))
    else:
        yield Manifest(kind, raw, source)
