"""Conversion between versions: only apiVersion changes, or a webhook converts the objects.

A webhook receives a ConversionReview with the objects and returns them, in the same order, in the
desired version. It may change only the labels and annotations of their metadata.

Source: pkg/apiserver/conversion (converter.go, webhook_converter.go) of
k8s.io/apiextensions-apiserver.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any, Final

import orjson

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.resource_info import CustomResourceInfo
from fakeapi.apiserver.objects.metadata import IdAndTimeSources, check_common_metadata
from fakeapi.apiserver.store.dry_run import ObjectReader
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.webhooks.calls import (
    InvalidReviewError,
    PendingCalls,
    ServiceUrls,
    WebhookCall,
    WebhookCallError,
    display_url,
    resolve_address,
)
from fakeapi.apiserver.wire.errors import StatusError

Review = dict[str, Any]
ConversionHandler = Callable[[Review], Review]
"""A function that answers a ConversionReview instead of a webhook."""

_REVIEWS: Final = ("v1", "v1beta1")
_GROUP: Final = "apiextensions.k8s.io"
_KEPT: Final = ("kind", "name", "namespace", "uid")


class ConversionError(Exception):
    """A webhook could not be called, or its response is invalid."""


class VersionConverter:
    """Converts objects between versions.

    ``handlers`` are functions that replace the webhooks of definitions, by the definition's name.
    ``services`` are the URLs of services, by ``namespace/name``.
    """

    def __init__(
        self,
        objects: ObjectReader,
        outbox: PendingCalls,
        sources: IdAndTimeSources,
        services: ServiceUrls,
    ) -> None:
        self.handlers: MutableMapping[str, ConversionHandler] = {}
        self._objects = objects
        self._outbox = outbox
        self._sources = sources
        self._services = services

    def convert(
        self,
        target: ResourceInfo,
        custom: CustomResourceInfo,
        documents: Sequence[Document],
        source: str,
    ) -> list[Document]:
        """Return objects of the version ``source`` in the version of the kind ``target``.

        Raise StatusError (500), CallsPendingError.
        """
        if custom.conversion.get("strategy") != "Webhook" or not documents:
            return [{**document, "apiVersion": target.api_version} for document in documents]
        try:
            answer = self._convert_by_webhook(custom, self._request(custom, target, documents))
            return _checked_objects(documents, answer, target)
        except (ConversionError, WebhookCallError) as error:
            subject = f"{source}, Kind={target.kind}"
            message = f"conversion webhook for {subject} {_verb(error)}{error}"
            raise StatusError(500, "", message) from None

    def _request(
        self, custom: CustomResourceInfo, target: ResourceInfo, documents: Sequence[Document]
    ) -> Review:
        webhook = custom.conversion.get("webhook") or {}
        versions = [v for v in webhook.get("conversionReviewVersions") or () if v in _REVIEWS]
        if not versions:
            raise ConversionError("no supported conversion review versions")
        return {
            "kind": "ConversionReview",
            "apiVersion": f"{_GROUP}/{versions[0]}",
            "request": {
                "uid": self._sources.uid(),
                "desiredAPIVersion": target.api_version,
                "objects": list(documents),
            },
        }

    def _convert_by_webhook(self, custom: CustomResourceInfo, review: Review) -> list[Any]:
        handler = self.handlers.get(custom.definition)
        if handler is not None:
            answer = handler(orjson.loads(orjson.dumps(review)))
        else:
            answer = self._call((custom.conversion.get("webhook") or {})["clientConfig"], review)
        return _converted(review, answer)

    def _call(self, config: Mapping[str, Any], review: Review) -> Any:
        bundle = b64decode(config.get("caBundle") or "")
        try:
            address = resolve_address(self._objects, self._services, config)
            body = orjson.dumps(review)
            call = WebhookCall(f"{address.url}?timeout=30s", body, bundle, address.host)
            return orjson.loads(self._outbox.call(call))
        except orjson.JSONDecodeError as error:
            raise ConversionError(f"couldn't get version/kind; json parse error: {error}") from None
        except InvalidReviewError:
            raise
        except WebhookCallError as error:
            raise WebhookCallError(f'Post "{display_url(config)}?timeout=30s": {error}') from None


def _verb(error: Exception) -> str:
    return "" if str(error).startswith("returned") else "failed: "


def _converted(review: Review, answer: Any) -> list[Any]:
    """Return the converted objects of a webhook's response. Raise ConversionError."""
    expected = f"{_GROUP}/v1, Kind=ConversionReview"
    if not isinstance(answer, dict):
        raise ConversionError("couldn't get version/kind; json parse error")
    if review["apiVersion"] == f"{_GROUP}/v1":
        header = f"{answer.get('apiVersion', '')}, Kind={answer.get('kind', '')}"
        if header != expected:
            raise ConversionError(f"expected webhook response of {expected}, got {header}")
    response = answer.get("response")
    if not isinstance(response, dict):
        raise ConversionError("no response provided")
    uid = review["request"]["uid"]
    if review["apiVersion"] == f"{_GROUP}/v1" and response.get("uid") != uid:
        got = response.get("uid", "")
        raise ConversionError(f'expected response.uid="{uid}", got "{got}"')
    result = response.get("result") or {}
    if result.get("status") != "Success":
        status = result.get("status", "")
        default = f"response.result.status was '{status}', not 'Success'"
        raise ConversionError(result.get("message") or default)
    found, sent = response.get("convertedObjects") or [], review["request"]["objects"]
    if len(found) != len(sent):
        raise ConversionError(f"returned {len(found)} objects, expected {len(sent)}")
    return list(found)


def _checked_objects(
    sent: Sequence[Document], found: list[Any], target: ResourceInfo
) -> list[Document]:
    return [
        _checked_object(before, after, target, index)
        for index, (before, after) in enumerate(zip(sent, found, strict=True))
    ]


def _checked_object(before: Document, after: Any, target: ResourceInfo, index: int) -> Document:
    """Return a converted object with its original metadata. Raise ConversionError."""
    where = f"returned invalid converted object at index {index}: "
    if not isinstance(after, dict):
        raise ConversionError(f"{where}not an object")
    version = after.get("apiVersion", "")
    if version != target.api_version:
        expected = f"(expected {target.api_version}, received {version})"
        raise ConversionError(f"{where}invalid groupVersion {expected}")
    metadata = after.get("metadata")
    if not isinstance(metadata, dict):
        raise ConversionError(f"{where}missing metadata in converted object")
    own = {"kind": before.get("kind"), **before["metadata"]}
    new = {"kind": after.get("kind"), **metadata}
    for name in _KEPT:
        if (own.get(name) or "") != (new.get(name) or ""):
            noun = "UID" if name == "uid" else name
            difference = f"{own.get(name) or ''} != {new.get(name) or ''}"
            raise ConversionError(f"{where}must have the same {noun}: {difference}")
    return {**after, "metadata": _restored_metadata(before["metadata"], metadata, where)}


def _restored_metadata(own: Document, new: Document, where: str) -> Document:
    restored = {n: v for n, v in own.items() if n not in ("labels", "annotations")}
    for name in ("labels", "annotations"):
        found = new.get(name)
        if found is None:
            continue
        texts = isinstance(found, dict) and all(isinstance(v, str) for v in found.values())
        if not texts:
            raise ConversionError(f"{where}invalid metadata.{name} in converted object")
        restored[name] = found
    faults = [f"{c.field}: {c.message}" for c in check_common_metadata(restored, "metadata")]
    if faults:
        raise ConversionError(f"{where}{faults[0]}")
    return restored
