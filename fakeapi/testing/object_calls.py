"""The requests and the answers of a cluster's methods about objects, without a transport."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import StatusError
from fakeapi.testing.object_sources import Model, manifest_of

FIELD_MANAGER: Final = "fakeapi-test"
_APPLY: Final = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class ObjectCall:
    """A request in the words of :mod:`fakeapi.apiserver.testing.object_requests`."""

    method: str
    query: Mapping[str, str]
    body: bytes = b""
    content_type: str = ""


def get_call(kind: str, name: str, namespace: str) -> ObjectCall:
    """Return the request for an object."""
    return ObjectCall("GET", _place(kind, namespace, name))


def list_call(kind: str, namespace: str, label_selector: str) -> ObjectCall:
    """Return the request for the objects of a kind."""
    selector = {"labelSelector": label_selector} if label_selector else {}
    return ObjectCall("GET", {**_place(kind, namespace), **selector})


def apply_call(thing: Mapping[str, Any] | Model) -> ObjectCall:
    """Return the request for a server-side apply that takes over all fields."""
    document = manifest_of(thing)
    metadata = document.get("metadata") or {}
    place = _place(
        document.get("kind", ""), metadata.get("namespace", ""), metadata.get("name", "")
    )
    options = {"fieldManager": FIELD_MANAGER, "force": "true"}
    query = {**place, "apiVersion": document.get("apiVersion", ""), **options}
    return ObjectCall("PATCH", query, orjson.dumps(document), _APPLY)


def delete_call(
    kind: str, name: str, namespace: str, grace_period_seconds: int | None
) -> ObjectCall:
    """Return the request that deletes an object."""
    grace = (
        {} if grace_period_seconds is None else {"gracePeriodSeconds": str(grace_period_seconds)}
    )
    return ObjectCall("DELETE", {**_place(kind, namespace, name), **grace})


def watch_call(kind: str, name: str, namespace: str) -> ObjectCall:
    """Return the request that watches one object, beginning with its present state."""
    return ObjectCall(
        "GET",
        {
            **_place(kind, namespace or "default"),
            "watch": "true",
            "fieldSelector": f"metadata.name={name}",
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
            "allowWatchBookmarks": "true",
        },
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
    header = {
        "apiVersion": listing["apiVersion"],
        "kind": listing["kind"].removesuffix("List"),
    }
    return [{**header, **item} for item in listing["items"]]


def _place(kind: str, namespace: str = "", name: str = "") -> dict[str, str]:
    words = {"kind": kind, "namespace": namespace, "name": name}
    return {word: value for word, value in words.items() if value}
