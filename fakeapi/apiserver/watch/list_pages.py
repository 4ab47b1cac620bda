"""Lists: versions of objects, whole or in pages.

Versions (``resourceVersion``, ``resourceVersionMatch``):

- unset: the present state;
- ``0``: any state, here the present one; ``limit`` is then ignored, as upstream's watch cache does;
- ``N`` NotOlderThan (the default without a limit): the present state, if ``N`` has been reached;
- ``N`` Exact (the default with a limit): the state at ``N``, or 410 if the history is shorter.

Pages: a continue token has the version of the first page and the key to continue from, so every
page shows the same state, regardless of later writes. If the history no longer reaches back to that
version, the answer is 410 with a token that continues from the same key in the present state.

The items of a list are joined from the bytes that each write encoded; nothing is encoded again.

Sources: k8s.io/apiserver/pkg/storage (continue.go, etcd3/store.go, cacher), and "Resource versions"
in the Kubernetes API concepts.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import orjson

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.store.dry_run import ReadOnlyHistory
from fakeapi.apiserver.store.object_store import Entry
from fakeapi.apiserver.store.store_errors import ExpiredError
from fakeapi.apiserver.wire.errors import bad_request, expired, too_large_version
from fakeapi.apiserver.wire.http_messages import Response
from fakeapi.apiserver.wire.request_options import ListOptions
from fakeapi.apiserver.wire.selectors import SelectionPredicate

PIECE: Final = 1_000
_END: Final = b"]}\n"
_PRESENT_VERSION = -1

_TOO_OLD_LIST = "The resourceVersion for the provided list is too old."
_TOO_OLD_PAGE = (
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without the continue parameter, or use the continue token in this response to "
    "retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True, slots=True)
class ListPage:
    """A page of a list at one version; ``remaining`` is None where upstream does not count."""

    version: int
    entries: Sequence[Entry]
    continue_token: str = ""
    remaining: int | None = None


def list_page(
    store: ReadOnlyHistory,
    kind: ResourceInfo,
    namespace: str,
    selection: SelectionPredicate,
    options: ListOptions,
) -> ListPage:
    """Read one page; raise StatusError (400 bad token, 410 too old, 504 not reached yet)."""
    version, start = _read_position(store, options)
    candidates = _entries(store, kind, namespace, version, start, options)
    limit = 0 if options.version == "0" and not start else max(options.limit, 0)
    if not selection:
        return _paginate(version, candidates, len(candidates), limit)
    chosen = _select(kind, namespace, selection, candidates, limit + 1 if limit else None)
    page = _paginate(version, chosen, len(chosen), limit)
    return ListPage(page.version, page.entries, page.continue_token)


class EncodedItems:
    """The rest of an encoded list, from its first item on, in pieces of ``PIECE`` items."""

    def __init__(
        self, entries: Sequence[Entry], encode: Callable[[Sequence[Entry]], bytes]
    ) -> None:
        self._entries = entries
        self._encode = encode

    def __iter__(self) -> Iterator[bytes]:
        for begin in range(0, len(self._entries), PIECE):
            encoded = self._encode(self._entries[begin : begin + PIECE])
            yield b"," + encoded if begin else encoded
        yield _END


def encode_items(entries: Sequence[Entry]) -> bytes:
    """Return items without kind and apiVersion, as in lists of a built-in kind."""
    return b",".join([entry.raw for entry in entries])


def encode_typed_items(entries: Sequence[Entry]) -> bytes:
    """Return items with kind and apiVersion, as in lists of a custom kind."""
    return b",".join([entry.kind.head + entry.raw[1:] for entry in entries])


def list_response(kind: ResourceInfo, page: ListPage) -> Response:
    """Return a list as a response; a large one is encoded in pieces as they are sent."""
    encode = encode_items if kind.custom is None else encode_typed_items
    items = EncodedItems(page.entries, encode)
    if len(page.entries) > PIECE:
        return Response(200, _encode_head(kind, page), rest=items)
    return Response(200, b"".join((_encode_head(kind, page), *items)))


def _encode_head(kind: ResourceInfo, page: ListPage) -> bytes:
    """Return an encoded list up to its first item."""
    metadata: dict[str, str | int] = {"resourceVersion": str(page.version)}
    if page.continue_token:
        metadata["continue"] = page.continue_token
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
    head = f'{{"kind":"{kind.list_kind}","apiVersion":"{kind.api_version}","metadata":'.encode()
    return b"".join((head, orjson.dumps(metadata), b',"items":['))


def encode_object(kind: ResourceInfo, entry: Entry) -> bytes:
    """Return the encoded document of one object."""
    return b"".join((kind.head, entry.raw[1:], b"\n"))


def _read_position(store: ReadOnlyHistory, options: ListOptions) -> tuple[int, str]:
    """Return the version to read at and the key to start from."""
    if options.continue_token:
        if options.version_number:
            raise bad_request("specifying resource version is not allowed when using continue")
        version, start = _read_token(options.continue_token)
        return (store.version if version == _PRESENT_VERSION else version), start
    if options.version_number > store.version:
        raise too_large_version(options.version_number, store.version)
    exact = options.match == "Exact" or (options.limit > 0 and not options.match)
    return (options.version_number if exact and options.version_number else store.version), ""


def _entries(
    store: ReadOnlyHistory,
    kind: ResourceInfo,
    namespace: str,
    version: int,
    start: str,
    options: ListOptions,
) -> Sequence[Entry]:
    if version > store.version:
        raise too_large_version(version, store.version)
    if version >= store.oldest_read:
        with suppress(ExpiredError):
            return store.entries_at(kind, version, namespace, start)
    if options.continue_token:
        raise expired(_TOO_OLD_PAGE, _write_token(_PRESENT_VERSION, start))
    raise expired(_TOO_OLD_LIST)


def _select(
    kind: ResourceInfo,
    namespace: str,
    selection: SelectionPredicate,
    entries: Sequence[Entry],
    most: int | None,
) -> Sequence[Entry]:
    name = selection.only_name()
    if name is not None and (namespace or not kind.namespaced):
        key = f"{namespace}/{name}" if namespace else name
        entries = [entry for entry in entries if entry.key == key]
    chosen = []
    for entry in entries:
        if selection.matches(entry):
            chosen.append(entry)
            if len(chosen) == most:
                break
    return chosen


def _paginate(version: int, entries: Sequence[Entry], total: int, limit: int) -> ListPage:
    if not limit or total <= limit:
        return ListPage(version, entries)
    page = entries[:limit]
    token = _write_token(version, page[-1].key + "\0")
    return ListPage(version, page, token, total - limit)


def _write_token(version: int, start: str) -> str:
    token = orjson.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": start})
    return urlsafe_b64encode(token).rstrip(b"=").decode()


def _read_token(text: str) -> tuple[int, str]:
    try:
        token = orjson.loads(urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4)))
    except (binascii.Error, orjson.JSONDecodeError, UnicodeEncodeError) as error:
        raise bad_request(f"continue key is not valid: {error}") from None
    match token:
        case {"v": "meta.k8s.io/v1", "rv": int(version), "start": str(start)}:
            if version >= _PRESENT_VERSION and version != 0:
                return version, start
    raise bad_request("continue key is not valid: unknown version, or a part is missing")
