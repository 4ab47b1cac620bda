"""Reads the snapshots of a ledger from their blobs.

Consecutive snapshots share most of their blobs. A reader keeps the values of the last snapshot, and
decodes only what is new in the next one. What is equal is the same object then, so that an engine
finds the few nodes that have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import cache
from typing import Annotated, Any, Final, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from extender.ledger.inputs.snapshot_blobs import FORMAT, NODES
from extender.ledger.inputs.snapshot_codec import (
    DIGEST_BYTES,
    BlobError,
    GetBlob,
    convert_value,
    decode_value,
    read_blob,
)
from policies.kubernetes.snapshot import NodeState, Snapshot

T = TypeVar("T")

Prefetch = Callable[[Sequence[bytes]], None]
"""Is called with the digests of blobs that are read next, so that they are fetched at once."""

MAX_SNAPSHOT_BYTES: Final = 2**30
"""The largest size of all blobs of a snapshot together, decompressed."""

Digest = Annotated[bytes, msgspec.Meta(min_length=DIGEST_BYTES, max_length=DIGEST_BYTES)]


class _Root(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    format: int
    snapshot: dict[str, object]


class _Chunk(NamedTuple):
    """The items of a chunk, and the bytes that were read for it."""

    items: list[tuple[str, Any]]
    size: int


class _KnownState(NamedTuple):
    """The digest of the state of a node, the state, and its bytes."""

    digest: bytes
    state: NodeState
    size: int


@dataclass(frozen=True, slots=True)
class _KnownField:
    """A field of the last snapshot: what was stored of it, its value, and the bytes read for it."""

    stored: object
    value: Any
    size: int
    chunks: Mapping[bytes, _Chunk]


def load_snapshot(root: bytes, get: GetBlob, max_bytes: int = MAX_SNAPSHOT_BYTES) -> Snapshot:
    """Return the snapshot with this root, whose nodes are in the order of their names.

    Raise BlobError if a blob is missing or invalid, or of a later format, or if all together have
    more than ``max_bytes`` decompressed.
    """
    return SnapshotReader(get, max_bytes).read(root)


def verify_format(digest: bytes, version: int) -> None:
    """Raise BlobError for a blob of a later format, which has fields that are not known."""
    if not 1 <= version <= FORMAT:
        place = f"blob {digest.hex()}: format"
        raise BlobError(f"{place}: {version}; expected 1 to {FORMAT}, as this release writes")


def prefetch_nothing(_: Sequence[bytes]) -> None:
    """Prefetch nothing."""


class SnapshotReader:
    """Reads one snapshot after the other, each of at most ``max_bytes``.

    ``changed`` names the nodes by which the last two snapshots differ.
    """

    def __init__(
        self,
        get: GetBlob,
        max_bytes: int = MAX_SNAPSHOT_BYTES,
        prefetch: Prefetch = prefetch_nothing,
    ) -> None:
        self.changed: frozenset[str] = frozenset()
        self._get = get
        self._prefetch = prefetch
        self._max_bytes = self._left = max_bytes
        self._known: dict[str, _KnownField] = {}
        self._states: dict[str, _KnownState] = {}

    def read(self, root: bytes) -> Snapshot:
        """Return a snapshot. Raise the errors of :func:`load_snapshot`."""
        self._left, self.changed = self._max_bytes, frozenset()
        found = self._read(root, _Root)
        verify_format(root, found.format)
        snapshot = self._document(root, Snapshot, {NODES: None, **found.snapshot}, "")
        if len(self._states) > 2 * len(snapshot.nodes):
            self._states = {name: self._states[name] for name in snapshot.nodes}
        return snapshot

    def _read(self, digest: bytes, kind: type[T]) -> T:
        data = read_blob(digest, self._get)
        self._take(digest, len(data))
        return decode_value(digest, data, kind)

    def _take(self, digest: bytes, size: int) -> None:
        self._left -= size
        if self._left < 0:
            place = f"blob {digest.hex()}"
            raise BlobError(f"{place}: the snapshot has more than {self._max_bytes} bytes with it")

    def _document(self, root: bytes, kind: type[T], stored: object, prefix: str) -> T:
        """Return a dataclass from its fields, with the items of its collections."""
        types = _field_types(kind)  # type: ignore[arg-type]  # a type is hashable
        plain: dict[str, object] = {}
        parts: dict[str, object] = {}
        for name, value in convert_value(root, stored, dict[str, object]).items():
            if name not in types:
                place = f"blob {root.hex()}: {kind.__name__}"
                raise BlobError(f"{place}: unknown field {name!r}; expected {', '.join(types)}")
            if is_dataclass(types[name]) or get_origin(types[name]) in (Mapping, tuple):
                parts[name] = self._part(root, types[name], value, f"{prefix}{name}")
            else:
                plain[name] = value
        return replace(convert_value(root, plain, kind), **parts)  # type: ignore[type-var]

    def _part(self, root: bytes, kind: Any, stored: object, path: str) -> object:
        """Return a dataclass or a collection of the snapshot; the last one if it is equal."""
        known = self._known.get(path)
        if known is not None and known.stored == stored:
            self._take(root, known.size)
            return known.value
        left = self._left
        chunks: dict[bytes, _Chunk] = {}
        if is_dataclass(kind):
            value: object = self._document(root, kind, stored, f"{path}.")  # type: ignore[arg-type]
        else:
            before = {} if known is None else known.chunks
            digests = self._read(convert_value(root, stored, Digest), list[Digest])
            item = Digest if path == NODES else get_args(kind)[-1 if _is_mapping(kind) else 0]
            chunks = self._chunks(digests, item, before)
            if path == NODES:
                self._load_states(chunks, before)
            items = [each for digest in digests for each in chunks[digest].items]
            value = dict(items) if _is_mapping(kind) else tuple([each for _, each in items])
        self._known[path] = _KnownField(stored, value, left - self._left, chunks)
        return value

    def _chunks(
        self, digests: Sequence[bytes], item: Any, before: Mapping[bytes, _Chunk]
    ) -> dict[bytes, _Chunk]:
        self._prefetch([each for each in digests if each not in before])
        chunks: dict[bytes, _Chunk] = {}
        for digest in digests:
            chunk = before.get(digest)
            if chunk is None:
                left = self._left
                chunk = _Chunk(self._read(digest, list[tuple[str, item]]), left - self._left)
            else:
                self._take(digest, chunk.size)
            chunks[digest] = chunk
        return chunks

    def _load_states(self, chunks: dict[bytes, _Chunk], before: Mapping[bytes, _Chunk]) -> None:
        """Replace the digests of states by the states, in the chunks that are new."""
        new = {digest: chunk for digest, chunk in chunks.items() if digest not in before}
        named = [each for chunk in new.values() for each in chunk.items]
        self._prefetch([each for name, each in named if not self._is_known(name, each)])
        gone = {name: state for d in before if d not in chunks for name, state in before[d].items}
        for digest, chunk in new.items():
            left = self._left
            items = [(name, self._state(name, each)) for name, each in chunk.items]
            chunks[digest] = _Chunk(items, chunk.size + left - self._left)
        come = {name: state for digest in new for name, state in chunks[digest].items}
        self.changed = frozenset(
            name for name in gone.keys() | come.keys() if gone.get(name) is not come.get(name)
        )

    def _is_known(self, name: str, digest: bytes) -> bool:
        known = self._states.get(name)
        return known is not None and known.digest == digest

    def _state(self, name: str, digest: bytes) -> NodeState:
        known = self._states.get(name)
        if known is not None and known.digest == digest:
            self._take(digest, known.size)
            return known.state
        left = self._left
        state = self._read(digest, NodeState)
        if known is not None:
            state = _sharing(state, known.state)
        self._states[name] = _KnownState(digest, state, left - self._left)
        return state


def _sharing(state: NodeState, before: NodeState) -> NodeState:
    """Return a state with the same objects as an earlier one where they are equal."""
    known = {pod.uid: pod for pod in before.pods}
    pods = tuple([each if (pod := known.get(each.uid)) != each else pod for each in state.pods])
    node = before.node if state.node == before.node else state.node
    return msgspec.structs.replace(state, node=node, pods=pods)


def _is_mapping(kind: Any) -> bool:
    return get_origin(kind) is Mapping


@cache
def _field_types(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)
