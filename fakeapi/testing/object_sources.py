"""The objects that a test loads: manifests, models of client libraries, files, globs, and text.

    cluster.load("manifests/*.yaml")
    cluster.load([{"kind": "Node", ...}, V1Pod(...), Path("crd.yaml"), YAML])

A string with a line break, or one that begins with a brace or bracket, is text in YAML or JSON;
any other is a path or a glob.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

import orjson

from extender.kube.decoders.manifests import (
    Manifest,
    ManifestError,
    parse_manifests,
    read_manifests,
)
from fakeapi.apiserver.kinds import BUILTIN
from fakeapi.apiserver.registry.manifests import flatten_lists
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import StatusError

_TEXT: Final = re.compile(r"\s*[{\[]|.*\n", re.DOTALL)
_LINE: Final = re.compile(r"^document (\d+)", re.MULTILINE)


@runtime_checkable
class Model(Protocol):
    """An object of a client library."""

    def to_dict(self) -> Mapping[str, Any]:
        """Return the object as JSON, or with the names of its attributes (official clients)."""
        ...


ObjectSource: TypeAlias = Mapping[str, Any] | Model | str | Path
ObjectSources: TypeAlias = ObjectSource | Iterable[ObjectSource]


class EncodedDocuments(Collection[Document]):
    """Documents as JSON: each iteration decodes them anew, one at a time."""

    def __init__(self, encoded: Sequence[bytes]) -> None:
        self._encoded = encoded

    def __len__(self) -> int:
        return len(self._encoded)

    def __iter__(self) -> Iterator[Document]:
        return map(orjson.loads, self._encoded)

    def __contains__(self, document: object) -> bool:
        return any(document == each for each in self)


def read_objects(sources: ObjectSources) -> tuple[EncodedDocuments, list[str]]:
    """Return the objects, items of Lists instead of the Lists, and the source of each in errors.

    The result shares no value with the arguments. Raise ManifestError, OSError, and StatusError
    (400) for a list that contains something else.
    """
    encoded: list[bytes] = []
    names: list[str] = []
    for source in _each(sources):
        if isinstance(source, str | Path):
            manifests = _read(source)
            encoded += [manifest.raw for manifest in manifests]
            names += [manifest.source for manifest in manifests]
        else:
            found = list(flatten_lists(orjson.loads(orjson.dumps(manifest_of(source)))))
            names += [f"document {len(encoded) + index}" for index in range(len(found))]
            encoded += map(orjson.dumps, found)
    return EncodedDocuments(encoded), names


@contextmanager
def sources_in_errors(names: list[str]) -> Iterator[None]:
    """Replace the numbers of documents in a StatusError of a load by their sources."""
    try:
        yield
    except StatusError as error:
        text = _LINE.sub(lambda found: names[int(found[1])], error.message)
        raise StatusError(error.code, error.reason, text) from None


def manifest_of(thing: Mapping[str, Any] | Model) -> Document:
    """Return an object of any library as JSON; raise ManifestError if its kind is not known."""
    if isinstance(thing, Mapping):
        return dict(thing)
    if not isinstance(thing, Model):
        raise ManifestError(f"expected an object, a path, a glob or text, found {thing!r}")
    document: Document = (
        _members(thing) if hasattr(thing, "attribute_map") else dict(thing.to_dict())
    )
    if document.get("kind") and document.get("apiVersion"):
        return document
    model = type(thing).__name__
    for kind in BUILTIN.all:
        if f"{kind.version.capitalize()}{kind.kind}" == model:
            return {**document, "apiVersion": kind.api_version, "kind": kind.kind}
    raise ManifestError(f"{model}: expected its apiVersion and kind to be set")


def _each(sources: ObjectSources) -> Iterable[ObjectSource]:
    return (sources,) if isinstance(sources, Mapping | Model | str | Path) else sources


def _read(source: str | Path) -> list[Manifest]:
    if isinstance(source, str) and _TEXT.match(source):
        return parse_manifests(source.encode(), "text")
    pattern = str(source)
    if not any(sign in pattern for sign in "*?[") or Path(pattern).exists():
        return read_manifests(pattern)
    anchor = Path(pattern).anchor
    paths = sorted(Path(anchor).glob(pattern.removeprefix(anchor)))
    if not paths:
        raise ManifestError(f"{pattern}: no file matches")
    return [manifest for path in paths for manifest in read_manifests(str(path))]


def _members(value: Any) -> Any:
    """Return a model of an official client as JSON; its ``to_dict`` has other names."""
    if hasattr(value, "attribute_map"):
        members = {name: getattr(value, own) for own, name in value.attribute_map.items()}
        return {name: _members(each) for name, each in members.items() if each is not None}
    if isinstance(value, list):
        return [_members(each) for each in value]
    if isinstance(value, dict):
        return {name: _members(each) for name, each in value.items()}
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return value
