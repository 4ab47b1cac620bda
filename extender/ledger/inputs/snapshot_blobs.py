"""A snapshot as blobs, most of which it shares with the snapshots before it.

The state of each node, with its pods, is a blob. Every collection of a snapshot (its nodes, its
budgets, each kind of storage object) is cut into chunks of about 64 items, which are blobs too; an
index lists the chunks of a collection, and the root lists the indexes. A chunk of nodes has the
digests of their states::

    root -> index of nodes   -> chunk -> state of node-1, ..., state of node-64
         -> index of budgets -> chunk (the budgets themselves)

A chunk ends at an item whose key has a checksum that is a multiple of 64. So an item that is added
or removed changes its own chunk, and not all chunks after it. Snapshots that differ in k nodes
differ in at most k states, k chunks (2k if nodes are added), the index and the root.

Items of mappings are sorted by key, nodes by name, since their order never matters to a decision.
The order of tuples is kept. What is stored is what :class:`policies.kubernetes.snapshot.Snapshot`
has of the cluster: of a pod its labels, and of its annotations only those that the policy reads.
Containers, environment variables, and the data of ConfigMaps and Secrets are no part of it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Final, NamedTuple
from zlib import crc32

from extender.ledger.inputs.snapshot_codec import compress, digest_of, encode_value
from policies.kubernetes.snapshot import (
    DisruptionBudget,
    NodeState,
    PastPreemption,
    Pod,
    Snapshot,
)

FORMAT: Final = 1
"""The version of the format; it grows when a type of the snapshot gets or loses a field."""
_CHUNK_ITEMS: Final = 64
_MOST_DIGESTS: Final = 2**17
NODES: Final = "nodes"
"""The field of a snapshot whose items are in blobs of their own."""

_Item = tuple[str, object]


class EncodedValue(NamedTuple):
    """The digest of a value, and those of its blobs, by digest, that were not returned before."""

    digest: bytes
    blobs: Mapping[bytes, bytes]


class BlobWriter:
    """Compresses values that are new.

    It remembers the digests of the last 131,072 values, and forgets older ones, so that their
    blobs may be returned again.
    """

    def __init__(self) -> None:
        self._known = OrderedDict[bytes, None]()
        self._new: dict[bytes, bytes] = {}

    def put(self, value: object) -> bytes:
        """Return the digest of a value, whose blob is then there to take. Raise BlobError."""
        data = encode_value(value)
        digest = digest_of(data)
        if digest not in self._known:
            self._new[digest] = compress(data)
            if len(self._known) >= _MOST_DIGESTS:
                self._known.popitem(last=False)
        self._known[digest] = None
        self._known.move_to_end(digest)
        return digest

    def take(self) -> Mapping[bytes, bytes]:
        """Return the blobs of new values since the last call, by digest."""
        new, self._new = self._new, {}
        return new


@dataclass(frozen=True, slots=True)
class _Collection:
    """A collection, the digest of its index, and its chunks by the key of their first item."""

    value: object = None
    index: bytes = b""
    chunks: Mapping[str, tuple[list[_Item], bytes]] = field(default_factory=dict)


class SnapshotEncoder:
    """Encodes the snapshots of one cluster, one after the other.

    What is the same object as in the last snapshot is not encoded again: a node, or a collection.
    A new ledger needs a new encoder, which returns all blobs.
    """

    def __init__(self) -> None:
        self.writer = BlobWriter()
        self._states: Mapping[str, tuple[NodeState, bytes]] = {}
        self._collections: dict[str, _Collection] = {}

    def encode(self, snapshot: Snapshot) -> EncodedValue:
        """Return the root of a snapshot, and the blobs that were not returned before.

        Raise BlobError for a snapshot with a value that is too large.
        """
        root = self.put(snapshot)
        return EncodedValue(root, self.writer.take())

    def put(self, snapshot: Snapshot) -> bytes:
        """Return the root of a snapshot, whose blobs are then in ``writer``. Raise BlobError."""
        return self.writer.put({"format": FORMAT, "snapshot": self._document(snapshot, "")})

    def _document(self, value: Any, prefix: str) -> Mapping[str, object]:
        """Return the fields of a dataclass, with the digest of its index for each collection."""
        return {
            each.name: self._field(getattr(value, each.name), f"{prefix}{each.name}")
            for each in fields(value)
        }

    def _field(self, value: object, name: str) -> object:
        if is_dataclass(value):
            return self._document(value, f"{name}.")
        if not isinstance(value, (Mapping, tuple)):
            return value
        last = self._collections.get(name, _Collection())
        if last.value is not value:
            items = self._node_items(value) if name == NODES else _items(value)
            last = self._collections[name] = self._indexed(value, items, last.chunks)
        return last.index

    def _node_items(self, nodes: Any) -> Iterator[_Item]:
        states: dict[str, tuple[NodeState, bytes]] = {}
        for name in sorted(nodes):
            state, known = nodes[name], self._states.get(name)
            if known is None or known[0] is not state:
                known = state, self.writer.put(state)
            states[name] = known
            yield name, known[1]
        self._states = states

    def _indexed(
        self,
        value: object,
        items: Iterable[_Item],
        known: Mapping[str, tuple[list[_Item], bytes]],
    ) -> _Collection:
        chunks: dict[str, tuple[list[_Item], bytes]] = {}
        digests: list[bytes] = []
        for chunk in _cut(items):
            first = chunk[0][0]
            last = known.get(first)
            if last is None or last[0] != chunk:
                last = chunk, self.writer.put(chunk)
            chunks[first] = last
            digests.append(last[1])
        return _Collection(value, self.writer.put(digests), chunks)


def _items(value: Mapping[str, object] | tuple[Any, ...]) -> Iterable[_Item]:
    """Return the items of a collection with their keys, by which it is cut into chunks."""
    if isinstance(value, Mapping):
        return sorted(value.items(), key=lambda item: item[0])
    return ((_key_of(each), each) for each in value)


def _key_of(item: Pod | DisruptionBudget | PastPreemption) -> str:
    return item.victim.key if isinstance(item, PastPreemption) else item.key


def _cut(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    """Yield the chunks of some items, none of which is empty."""
    chunk: list[_Item] = []
    for item in items:
        chunk.append(item)
        if crc32(item[0].encode()) % _CHUNK_ITEMS == 0:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
