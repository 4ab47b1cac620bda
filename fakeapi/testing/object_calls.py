"""The requests and the answers of a cluster's methods about objects, without a transport."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import StatusError

FIELD_MANAGER: Final = "fakeapi-test"
_APPLY: Final = "application/apply-patch+yaml"
_FROM_PRESENT_STATE: Final = {
    "watch": "true",
    "sendInitialEvents": "true",
    "resourceVersionMatch": "NotOlderThan",
    "allowWatchBookmarks": "true",
}


@dataclass(frozen=True, slots=True)
class ObjectCall:
    """A request in the words of :mod:`fakeapi.apiserver.testing.object_requests`.

    ``result`` returns the result of a call from the decoded answer.
    """

    method: str
    query: Mapping[str, str]
    body: bytes = b""
    content_type: str = ""
    result: Callable[[Any], Any] = lambda answer: answer


def non_empty(**values: str) -> Mapping[str, str]:
    """Return a query without its empty values."""
    return {name: value for name, value in values.items() if value}


def apply_call(document: Document) -> ObjectCall:
    """Return the request for a server-side apply that takes over all fields."""
    metadata = document.get("metadata") or {}
    query = non_empty(
        apiVersion=document.get("apiVersion", ""),
        kind=document.get("kind", ""),
        namespace=metadata.get("namespace", ""),
        name=metadata.get("name", ""),
        fieldManager=FIELD_MANAGER,
        force="true",
    )
    return ObjectCall("PATCH", query, orjson.dumps(document), _APPLY)


def watch_call(kind: str, name: str, namespace: str) -> ObjectCall:
    """Return the request that watches one object, beginning with its present state."""
    own = {"kind": kind, "namespace": namespace or "default"}
    return ObjectCall(
        "GET", {**own, "fieldSelector": f"metadata.name={name}", **_FROM_PRESENT_STATE}
    )


def decode_answer(status: int, body: bytes) -> Any:
    """Return the decoded body of an answer; raise StatusError."""
    if status < 400:
        return orjson.loads(body)
    try:
        failure = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise StatusError(status, "", body.decode(errors="replace").strip()) from None
    raise StatusError(status, failure.get("reason", ""), failure["message"], failure.get("details"))


def items_of(listing: Document) -> list[Document]:
    """Return the items of a list, with kind and apiVersion."""
    kind = {"apiVersion": listing["apiVersion"], "kind": listing["kind"].removesuffix("List")}
    return [{**kind, **item} for item in listing["items"]]
