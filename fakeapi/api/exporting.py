"""Export of all objects as manifests, as ``kubectl get -o json`` prints them.

:mod:`fakeapi.apiserver.registry.manifests` loads them again, into this world or another. Namespaces
come first, then other cluster-scoped kinds, so other tools can create the objects in this order,
too. An object of a kind with several served versions is exported once, in the stored version.
"""

from __future__ import annotations

from typing import Any

import orjson

from fakeapi.api.conversions import conversion_of
from fakeapi.kinds import ResourceInfo, ResourceRegistry
from fakeapi.kinds.builtin import NAMESPACES
from fakeapi.store import Document, Store


def export(store: Store, kinds: ResourceRegistry) -> list[Document]:
    """Return every object, with kind and apiVersion."""
    stored: dict[str, ResourceInfo] = {}
    for kind in sorted(kinds.all, key=_rank):
        if conversion_of(kind) is None:
            stored.setdefault(kind.resource, kind)
    return [
        {"apiVersion": kind.api_version, "kind": kind.kind, **entry.document()}
        for kind in stored.values()
        for entry in store.entries(kind)
    ]


def encode_export(store: Store, kinds: ResourceRegistry) -> bytes:
    """Return the export as one ``List`` document."""
    document: dict[str, Any] = {"apiVersion": "v1", "kind": "List", "items": export(store, kinds)}
    return orjson.dumps(document) + b"\n"


def _rank(kind: ResourceInfo) -> tuple[bool, bool]:
    return kind.resource != NAMESPACES.resource, kind.namespaced
