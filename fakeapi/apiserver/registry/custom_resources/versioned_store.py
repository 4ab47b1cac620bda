"""The store, with custom resources in the requested version.

Objects are stored in one version and read in every served one. A read converts, prunes and defaults
them by the current schema of the requested version; a write converts them into the storage version.
Objects that were written by the requested kind are returned unchanged at no cost, which includes
all built-in kinds.

Sources: pkg/apiserver/customresource_handler.go (crdConversionRESTOptionsGetter) of
k8s.io/apiextensions-apiserver.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.resource_info import CustomResourceInfo
from fakeapi.apiserver.registry.custom_resources.conversion_webhook import VersionConverter
from fakeapi.apiserver.schema.crds.custom_resource_strategy import compiled_schema
from fakeapi.apiserver.store.object_store import Document, Entry, Store, StoreEvent, encode_entry
from fakeapi.apiserver.wire.struct_decoder import StructDecodeError

_CACHE_SIZE: Final = 20_000


class VersionedStore:
    """The objects of a store in any version; ``stored`` returns the storage version of a kind."""

    def __init__(
        self,
        store: Store,
        stored: Callable[[ResourceInfo], ResourceInfo],
        converter: VersionConverter,
    ) -> None:
        self.stored = stored
        self._store = store
        self._converter = converter
        self._converted: OrderedDict[tuple[ResourceInfo, int, str], Entry] = OrderedDict()

    @property
    def version(self) -> int:
        """The resource version of the last write."""
        return self._store.version

    @property
    def oldest_read(self) -> int:
        """The version before which lists have expired."""
        return self._store.oldest_read

    def get(self, kind: ResourceInfo, key: str) -> Entry | None:
        """Return the current entry of ``key``."""
        entry = self._store.get(kind, key)
        if entry is None or entry.kind is kind or kind.custom is None:
            return entry
        return self.convert_entries(kind, [entry])[0]

    def entries(self, kind: ResourceInfo, namespace: str = "", start: str = "") -> Sequence[Entry]:
        """Return the current entries of one namespace or all."""
        return self.convert_entries(kind, self._store.entries(kind, namespace, start))

    def entries_at(
        self, kind: ResourceInfo, version: int, namespace: str = "", start: str = ""
    ) -> Sequence[Entry]:
        """Return the entries as they were at ``version``. Raise ExpiredError."""
        return self.convert_entries(kind, self._store.entries_at(kind, version, namespace, start))

    def since(
        self, kind: ResourceInfo, version: int, limit: int | None = None
    ) -> Sequence[StoreEvent]:
        """Return the events after ``version``, at most ``limit``. Raise ExpiredError."""
        events = self._store.since(kind, version, limit)
        if kind.custom is None:
            return events
        found = [entry for e in events for entry in (e.entry, e.previous) if entry is not None]
        converted = {
            id(e): new for e, new in zip(found, self.convert_entries(kind, found), strict=True)
        }
        return [
            replace(
                e, entry=converted[id(e.entry)], previous=e.previous and converted[id(e.previous)]
            )
            for e in events
        ]

    def reached(self, kind: ResourceInfo, version: int) -> int:
        """Return where the reader of all events until ``version`` is."""
        return self._store.reached(kind, version)

    def listen(self, kind: ResourceInfo, wake: Callable[[], None]) -> Callable[[], None]:
        """Call ``wake`` after each write of ``kind``, until the returned function is called."""
        return self._store.listen(kind, wake)

    def create(self, kind: ResourceInfo, key: str, document: Document) -> Entry:
        """Store a new object; takes ownership of ``document``.

        Raise VersionSetError, AlreadyExistsError.
        """
        stored = self.stored(kind)
        if kind.custom is None or stored is kind:
            return self._store.create(kind, key, document)
        entry = self._store.create(stored, key, self._to_store(stored, kind, document))
        return self._in_request_version(kind, entry, document)

    def update(self, kind: ResourceInfo, key: str, document: Document, base: int) -> Entry:
        """Replace the object whose version is ``base``; takes ownership of ``document``.

        Raise NotFoundError, ConflictError.
        """
        stored = self.stored(kind)
        if kind.custom is None or stored is kind:
            return self._store.update(kind, key, document, base)
        entry = self._store.update(stored, key, self._to_store(stored, kind, document), base)
        return self._in_request_version(kind, entry, document)

    def delete(self, kind: ResourceInfo, key: str, document: Document, base: int) -> Entry:
        """Remove the object whose version is ``base``. Raise NotFoundError, ConflictError."""
        stored = self.stored(kind)
        if kind.custom is None or stored is kind:
            return self._store.delete(kind, key, document, base)
        entry = self._store.delete(stored, key, self._to_store(stored, kind, document), base)
        return self._in_request_version(kind, entry, document)

    def convert_entries(self, kind: ResourceInfo, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Return entries in the version of a kind. Raise StatusError (500), CallsPendingError."""
        custom = kind.custom
        if custom is None or all(entry.kind is kind for entry in entries):
            return entries
        unknown = [
            entry
            for entry in entries
            if entry.kind is not kind and (kind, entry.version, entry.key) not in self._converted
        ]
        self._cache_converted(kind, custom, unknown)
        found = [
            entry if entry.kind is kind else self._converted[kind, entry.version, entry.key]
            for entry in entries
        ]
        while len(self._converted) > _CACHE_SIZE:
            self._converted.popitem(last=False)
        return found

    def _cache_converted(
        self, kind: ResourceInfo, custom: CustomResourceInfo, entries: Iterable[Entry]
    ) -> None:
        """Convert entries that are not cached, with one conversion for each source version."""
        versions: dict[str, list[Entry]] = {}
        for entry in entries:
            versions.setdefault(entry.kind.api_version, []).append(entry)
        for version, found in versions.items():
            documents = [{**_type_meta(entry.kind), **entry.document()} for entry in found]
            if version != kind.api_version:
                documents = self._converter.convert(kind, custom, documents, version)
            for entry, document in zip(found, documents, strict=True):
                _prune_and_default(custom, document)
                converted = encode_entry(kind, entry.key, entry.version, document)
                self._converted[kind, entry.version, entry.key] = converted

    def _to_store(self, stored: ResourceInfo, kind: ResourceInfo, document: Document) -> Document:
        assert stored.custom is not None
        typed = {**_type_meta(kind), **document}
        [converted] = self._converter.convert(stored, stored.custom, [typed], kind.api_version)
        _prune_and_default(stored.custom, converted)
        return {**converted, "metadata": dict(converted["metadata"])}

    def _in_request_version(self, kind: ResourceInfo, entry: Entry, document: Document) -> Entry:
        """Return a written object in the version of its request."""
        document["metadata"]["resourceVersion"] = str(entry.version)
        return encode_entry(kind, entry.key, entry.version, document)


def _type_meta(kind: ResourceInfo) -> Document:
    return {"kind": kind.kind, "apiVersion": kind.api_version}


def _prune_and_default(custom: CustomResourceInfo, document: Document) -> None:
    """Prune and default a document; metadata that does not decode stays as it is."""
    schema = compiled_schema(custom)
    with suppress(StructDecodeError):
        schema.prune(document)
    schema.apply_defaults(document)
