"""A REST client for the Kubernetes API over any transport, with bodies as bytes.

- Bodies are sent as bytes and decoded by `decode`, a function of the caller: the client is
  independent of kinds. `decode` receives a `msgspec.Raw`, a view into the response. Its result
  must not keep the view (`Raw.copy()` detaches it), or it keeps the whole response in memory.
- Every response outside 2xx is raised as an `ApiError` with the request, the server's message and
  a remedy. A response that is not Kubernetes JSON is a `MalformedError`. A request without a
  response is the transport's `TransportError`.
- The client does not retry: only the caller knows whether a request may be repeated.
- A list is read in chunks of 500 and is one consistent state. If the continue token expires
  between chunks (410), the list restarts without chunks (as client-go's pager does).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, MutableSequence, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

from extender.kube.rest.api_errors import (
    ApiError,
    MalformedError,
    NestedTooDeeplyError,
    error_from_body,
)
from extender.kube.rest.resources import CollectionPath, ObjectPath, Resource
from extender.kube.rest.transport import Request, Transport
from extender.kube.rest.watch_events import EventStream

CHUNK = 500
WATCH_GRACE_SECONDS = 30

_LIMIT = ("limit", str(CHUNK))

T = TypeVar("T")
Decode = Callable[[msgspec.Raw], T]
Query = tuple[tuple[str, str], ...]


def response_decoder(name: str, decode: Decode[T]) -> Decode[T]:
    """Return ``decode`` with MalformedError in place of the errors of msgspec."""

    def read(raw: msgspec.Raw) -> T:
        try:
            return decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise MalformedError(f"not {name}: {error}") from error

    return read


class PatchType(StrEnum):
    """The type of a patch; its value is the content type."""

    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    JSON = "application/json-patch+json"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a resource are selected; empty strings select all."""

    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""

    def query(self) -> Query:
        """Return the selectors as query parameters."""
        pairs = (("labelSelector", self.label_selector), ("fieldSelector", self.field_selector))
        return tuple(pair for pair in pairs if pair[1])


EVERYTHING = Selection()


@dataclass(frozen=True, slots=True)
class ObjectList(Generic[T]):
    """The objects at one resourceVersion, in the server's order."""

    resource_version: str
    items: Sequence[T]


class Propagation(StrEnum):
    """The propagation policy of a deletion: what happens to the object's dependents."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class _DeleteOptions(msgspec.Struct, rename="camel", omit_defaults=True):
    grace_period_seconds: int | None = None
    preconditions: dict[str, str] = {}
    propagation_policy: Propagation | None = None


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class _ListPage(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


_list_decoder = msgspec.json.Decoder(_ListPage)


class Client:
    """A REST client over one transport."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def close(self) -> None:
        """Close the transport."""
        await self._transport.close()

    async def get(self, path: ObjectPath, decode: Decode[T]) -> T:
        """Get one object or subresource. Raise ApiError, TransportError."""
        return decode(msgspec.Raw(await self._body(Request("GET", path.path))))

    async def find(self, path: ObjectPath, decode: Decode[T]) -> T | None:
        """Get one object; None if it does not exist. Raise ApiError, TransportError."""
        try:
            return await self.get(path, decode)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def create(self, path: CollectionPath | ObjectPath, body: bytes, decode: Decode[T]) -> T:
        """POST to a collection, or to a subresource such as `eviction` or `binding`.

        Return the server's response. Raise ApiError, TransportError.
        """
        return decode(msgspec.Raw(await self._body(Request("POST", path.path, body=body))))

    async def update(self, path: ObjectPath, body: bytes, decode: Decode[T]) -> T:
        """Replace an object; a stale metadata.resourceVersion in `body` is a 409.

        Return the stored object. Raise ApiError, TransportError.
        """
        return decode(msgspec.Raw(await self._body(Request("PUT", path.path, body=body))))

    async def patch(self, path: ObjectPath, kind: PatchType, body: bytes, decode: Decode[T]) -> T:
        """Patch an object. Return the stored object. Raise ApiError, TransportError."""
        request = Request("PATCH", path.path, body=body, content_type=kind.value)
        return decode(msgspec.Raw(await self._body(request)))

    async def delete(
        self,
        path: ObjectPath,
        *,
        uid: str = "",
        resource_version: str = "",
        grace_period_seconds: int | None = None,
        propagation: Propagation | None = None,
    ) -> None:
        """Delete an object; `uid` and `resource_version` are preconditions (else 409).

        The default grace period is the object's, the default propagation policy the kind's. Raise
        ApiError, TransportError.
        """
        fields = {"uid": uid, "resourceVersion": resource_version}
        preconditions = {name: value for name, value in fields.items() if value}
        options = _DeleteOptions(grace_period_seconds, preconditions, propagation)
        await self._body(Request("DELETE", path.path, body=msgspec.json.encode(options)))

    async def delete_collection(self, path: CollectionPath, propagation: Propagation) -> None:
        """Delete all objects of a collection. Raise ApiError, TransportError."""
        body = msgspec.json.encode(_DeleteOptions(propagation_policy=propagation))
        await self._body(Request("DELETE", path.path, body=body))

    async def list(
        self,
        resource: Resource,
        decode: Decode[T],
        selection: Selection = EVERYTHING,
        *,
        resource_version: str = "",
    ) -> ObjectList[T]:
        """List all selected objects.

        `resource_version` "" requests the newest state, "0" any state the server has cached,
        another value a state at least that new. Raise ApiError, MalformedError,
        TransportError.
        """
        path = resource.collection(selection.namespace).path
        items: MutableSequence[T] = []
        version = (("resourceVersion", resource_version),) if resource_version else ()
        whole: Query = (*selection.query(), *version)
        # With a limit, the server reads the version as "exactly", which it may no longer have.
        query, token = (*whole, _LIMIT) if resource_version in ("", "0") else whole, ""
        while True:
            try:
                page = await self._page(Request("GET", path, query))
            except ApiError as error:
                if not (error.expired and token):
                    raise
                items, query, token = [], whole, ""
                continue
            await _decode_into(items, page.items or (), decode)
            token = page.metadata.continue_
            if not token:
                return ObjectList(page.metadata.resource_version, items)
            query = (*selection.query(), _LIMIT, ("continue", token))

    def watch(
        self,
        resource: Resource,
        selection: Selection = EVERYTHING,
        *,
        resource_version: str,
        timeout_seconds: int,
        silence_seconds: float | None = None,
    ) -> AbstractAsyncContextManager[EventStream]:
        """Watch changes after `resource_version`, with bookmarks, for at most `timeout_seconds`.

        If no byte arrives for the idle timeout (default: `timeout_seconds` + 30 s), a
        TransportError is raised. Raise ApiError, TransportError on entering; see EventStream for
        later errors.
        """
        from_there = (("resourceVersion", resource_version),)
        return self._watched(resource, selection, from_there, timeout_seconds, silence_seconds)

    def stream(
        self,
        resource: Resource,
        selection: Selection = EVERYTHING,
        *,
        resource_version: str,
        timeout_seconds: int,
    ) -> AbstractAsyncContextManager[EventStream]:
        """Stream all selected objects as ADDED, a bookmark (`ends_initial_events`), then changes.

        The objects are at `resource_version` or later, "" for the newest state. Only servers since
        1.27 support it, and not all; others answer 422 or send no such bookmark. Raise ApiError,
        TransportError on entering; see EventStream for later errors.
        """
        least = (("resourceVersion", resource_version),) if resource_version else ()
        initial = (("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan"), *least)
        return self._watched(resource, selection, initial, timeout_seconds)

    def _watched(
        self,
        resource: Resource,
        selection: Selection,
        beginning: Query,
        timeout_seconds: int,
        silence_seconds: float | None = None,
    ) -> AbstractAsyncContextManager[EventStream]:
        query = (
            *selection.query(),
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            *beginning,
            ("timeoutSeconds", str(timeout_seconds)),
        )
        path = resource.collection(selection.namespace).path
        silence = silence_seconds or timeout_seconds + WATCH_GRACE_SECONDS
        return self._events(Request("GET", path, query, idle_timeout=silence))

    @asynccontextmanager
    async def _events(self, request: Request) -> AsyncIterator[EventStream]:
        async with self._transport.stream(request) as stream:
            if stream.status != 200:
                body = await stream.read()
                raise error_from_body(request, stream.status, stream.headers, body)
            yield EventStream(request, stream)

    async def _page(self, request: Request) -> _ListPage:
        try:
            return _list_decoder.decode(await self._body(request))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise MalformedError(f"{request}: not a list of objects: {error}") from error
        except RecursionError:
            raise NestedTooDeeplyError(request) from None

    async def _body(self, request: Request) -> bytes:
        response = await self._transport.request(request)
        if not 200 <= response.status < 300:
            raise error_from_body(request, response.status, response.headers, response.body)
        return response.body


async def _decode_into(
    items: MutableSequence[T], raws: Sequence[msgspec.Raw], decode: Decode[T]
) -> None:
    """Decode in slices, so that a large list does not block the event loop."""
    for start in range(0, len(raws), CHUNK):
        items.extend(map(decode, raws[start : start + CHUNK]))
        await asyncio.sleep(0)
