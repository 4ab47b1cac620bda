"""ObjectMeta: checks on every document before it is stored (type, metadata fields).

Only fields that the server itself reads, and owners, labels, annotations and finalizers are
checked. Other fields (a pod's spec, say) are accepted.

Sources: k8s.io/apimachinery/pkg/apis/meta/v1 (ObjectMeta), pkg/api/validation (objectmeta.go);
upstream's decoder for the wording of type errors.
"""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.objects.type_meta import check_type
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import (
    Cause,
    bad_request,
    invalid_value,
    required,
    too_long,
)
from fakeapi.apiserver.wire.go_format import json_type
from policies.kubernetes.name_validation import (
    invalid_finalizer,
    invalid_label_key,
    invalid_label_value,
)

_TIMESTAMP: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)", re.ASCII)
_MAX_GENERATED_BASE: Final = 58
MAX_ANNOTATION_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class IdAndTimeSources:
    """Functions for the values that the server generates; injected, so a seed can reproduce them.

    ``timestamp(s)``: RFC 3339, UTC, whole seconds, of ``s`` seconds from now. ``uid()``: a new UID.
    ``suffix()``: five characters for a generated name. ``now()``: whole seconds since the epoch.
    """

    timestamp: Callable[[int], str]
    uid: Callable[[], str]
    suffix: Callable[[], str]
    now: Callable[[], int]


def check_document(kind: ResourceInfo, document: Document) -> dict[str, Any]:
    """Check the types of a document's fields, drop nulls, and return its metadata.

    Raise StatusError (400).
    """
    check_type(kind, document)
    for name in ("metadata", "spec", "status") if kind.custom is None else ("metadata",):
        if document.get(name, {}) is None:
            del document[name]
        elif not isinstance(document.get(name, {}), dict):
            raise _type_mismatch(kind, document[name], name, "object")
    metadata: dict[str, Any] = document.setdefault("metadata", {})
    for name in [name for name, value in metadata.items() if value is None]:
        del metadata[name]
    for name, (go_type, fits) in _FIELD_TYPES.items():
        if name in metadata and not fits(metadata[name]):
            raise _type_mismatch(kind, metadata[name], f"metadata.{name}", go_type)
    if not kind.first_spec_finalizers:
        return metadata
    finalizers = (document.get("spec") or {}).get("finalizers")
    if not (finalizers is None or _is_string_list(finalizers)):
        raise _type_mismatch(kind, finalizers, "spec.finalizers", "[]v1.FinalizerName")
    return metadata


def check_url_name(name: str, metadata: Mapping[str, Any]) -> None:
    """Check that the name in a document matches that in the path; raise StatusError (400)."""
    own_name = metadata.get("name")
    if not own_name:
        raise bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: "
            "name must be provided"
        )
    if own_name != name:
        raise bad_request(
            f"the name of the object ({own_name}) does not match the name on the URL ({name})"
        )


def generated_name(base: str, sources: IdAndTimeSources) -> str:
    """Return a name that begins with (at most 58 characters of) ``base``."""
    return base[:_MAX_GENERATED_BASE] + sources.suffix()


def epoch_seconds(timestamp: Any) -> int | None:
    """Return an RFC 3339 UTC timestamp in whole seconds since the epoch; None if it is invalid."""
    match = _TIMESTAMP.match(timestamp) if isinstance(timestamp, str) else None
    return timegm(tuple(map(int, match.groups()))) if match else None


def _type_mismatch(kind: ResourceInfo, value: Any, where: str, go_type: str) -> Exception:
    field = f"{kind.kind}.{where} of type {go_type}"
    return bad_request(
        f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: json: '
        f"cannot unmarshal {json_type(value)} into Go struct field {field}"
    )


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_string_map(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _is_string_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_object_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


_FIELD_TYPES: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    "name": ("string", _is_string),
    "generateName": ("string", _is_string),
    "namespace": ("string", _is_string),
    "uid": ("types.UID", _is_string),
    "resourceVersion": ("string", _is_string),
    "generation": ("int64", _is_integer),
    "creationTimestamp": ("v1.Time", _is_string),
    "deletionTimestamp": ("v1.Time", _is_string),
    "deletionGracePeriodSeconds": ("int64", _is_integer),
    "labels": ("map[string]string", _is_string_map),
    "annotations": ("map[string]string", _is_string_map),
    "finalizers": ("[]string", _is_string_list),
    "ownerReferences": ("[]v1.OwnerReference", _is_object_list),
    "managedFields": ("[]v1.ManagedFieldsEntry", _is_object_list),
}


def check_metadata(metadata: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Yield the errors of owners, finalizers, labels and annotations."""
    yield from check_common_metadata(metadata, path)
    for index, finalizer in enumerate(metadata.get("finalizers") or ()):
        wrong = invalid_finalizer(finalizer)
        if wrong:
            yield invalid_value(f"{path}.finalizers[{index}]", finalizer, wrong)


def check_custom_metadata(metadata: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Yield the errors of a custom resource's metadata; its finalizers need no domain."""
    yield from check_common_metadata(metadata, path)
    for finalizer in metadata.get("finalizers") or ():
        wrong = invalid_label_key(finalizer)
        if wrong:
            yield invalid_value(f"{path}.finalizers", finalizer, wrong)


def check_common_metadata(metadata: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Yield the errors of owners, labels and annotations."""
    for index, owner in enumerate(metadata.get("ownerReferences") or ()):
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                yield required(f"{path}.ownerReferences[{index}].{name}", "must not be empty")
    yield from check_labels(metadata.get("labels") or {}, f"{path}.labels")
    for key in metadata.get("annotations") or {}:
        wrong = invalid_label_key(key.lower())
        if wrong:
            yield invalid_value(f"{path}.annotations", key, wrong)
    if text_bytes(metadata.get("annotations") or {}) > MAX_ANNOTATION_BYTES:
        yield too_long(f"{path}.annotations", MAX_ANNOTATION_BYTES)


def text_bytes(texts: Mapping[str, str]) -> int:
    """Return the bytes of all keys and values in UTF-8."""
    return sum(len(text.encode()) for pair in texts.items() for text in pair)


def check_labels(labels: Mapping[str, str], path: str) -> Iterator[Cause]:
    """Yield the errors of label keys and values."""
    for key, value in labels.items():
        for text, wrong in ((key, invalid_label_key(key)), (value, invalid_label_value(value))):
            if wrong:
                yield invalid_value(path, text, wrong)
