"""Exporting: a world's objects as manifests, as ``kubectl get -o json`` would print them.

:mod:`fakeapi.api.loading` brings them back, into this world or another. Cluster-wide kinds come
first and namespaces before all, so that other tools can create them in this order, too. Of a kind
that is served in several versions, each object comes once, as it is stored.
"""

from __future__ import annotations

from typing import Any

import orjson

from fakeapi.api.conversions import conversion_of
from fakeapi.kinds import Kind, Kinds
from fakeapi.kinds.builtin import NAMESPACES
from fakeapi.store import Document, Store


def export(store: Store, kinds: Kinds) -> list[Document]:
    """Return every object there is, with its kind."""
    stored: dict[str, Kind] = {}
    for kind in sorted(kinds.all, key=_rank):
        if conversion_of(kind) is None:
            stored.setdefault(kind.resource, kind)
    return [
        {"apiVersion": kind.api_version, "kind": kind.kind, **entry.document()}
        for kind in stored.values()
        for entry in store.entries(kind)
    ]


def encode_export(store: Store, kinds: Kinds) -> bytes:
    """Return the export as one ``List`` document."""
    document: dict[str, Any] = {"apiVersion": "v1", "kind": "List", "items": export(store, kinds)}
    return orjson.dumps(document) + b"\n"


def _rank(kind: Kind) -> tuple[bool, bool]:
    return kind.resource != NAMESPACES.resource, kind.namespaced
