"""JSON patches of mutating webhooks, applied to an object in the webhook's version.

The patched object is decoded as a request body is: unknown fields are pruned, a value of another
type is an error, defaults are applied. A patch that does not apply fails the request, whatever the
webhook's failure policy is.

Sources: k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go, and
gopkg.in/evanphx/json-patch.v4 for the messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from fakeapi.apiserver.admission.webhooks.admission_review import CallError
from fakeapi.apiserver.admission.webhooks.attributes import VersionedObjects
from fakeapi.apiserver.defaulting.field_defaults import apply_defaults
from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.builtin import CUSTOM_RESOURCE_DEFINITIONS
from fakeapi.apiserver.objects.patch import json_patch
from fakeapi.apiserver.schema.typed_document import read_document
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import StatusError, internal_error
from fakeapi.apiserver.wire.raw_json import json_equal
from fakeapi.apiserver.wire.struct_decoder import StructDecodeError


class PatchError(ValueError):
    """An operation does not apply to an object; the message is upstream's."""


class PatchTestError(PatchError):
    """The test of a patch has failed."""


def decode_patch(name: str, patch: bytes, patch_type: str, *, has_object: bool) -> list[Document]:
    """Return the operations of a webhook's patch. Raise CallError, StatusError (500)."""
    try:
        operations = orjson.loads(patch)
    except orjson.JSONDecodeError as error:
        raise _undecodable(str(error)) from None
    if not isinstance(operations, list) or not all(isinstance(o, dict) for o in operations):
        raise _undecodable("json: cannot unmarshal into Go value of type jsonpatch.Patch")
    if operations and not has_object:
        detail = "attempted to modify the object, which is not supported for this operation"
        raise internal_error(f'admission webhook "{name}" {detail}')
    if operations and patch_type != "JSONPatch":
        raise CallError(f'unsupported patch type "{patch_type}"')
    return operations


def apply_webhook_patch(
    versioned_objects: VersionedObjects,
    kind: ResourceInfo,
    webhook_kind: ResourceInfo,
    document: Document,
    operations: list[Document],
) -> Document | None:
    """Return an object of ``kind`` after a patch in ``webhook_kind``; None if nothing changes.

    Unchanged values may be shared with ``document``. Raise StatusError (500).
    """
    before = versioned_objects.to_version(webhook_kind, kind, document) or {}
    try:
        after = apply_operations(before, operations)
        _check_header(webhook_kind, after)
        after = _decode(kind, webhook_kind, after, operations)
    except (PatchError, StructDecodeError) as error:
        raise internal_error(str(error)) from None
    return complete_object(versioned_objects, kind, webhook_kind, before, after)


def complete_object(
    versioned_objects: VersionedObjects,
    kind: ResourceInfo,
    patched_kind: ResourceInfo,
    before: Document,
    after: Document,
) -> Document | None:
    """Return a patched object converted to ``kind``, with defaults; None if nothing changes."""
    if json_equal(after, before):
        return None
    result = versioned_objects.from_version(patched_kind, kind, after)
    result.setdefault("metadata", {})
    apply_defaults(kind, result, before)
    return result


def _decode(
    kind: ResourceInfo,
    webhook_kind: ResourceInfo,
    document: Document,
    operations: Sequence[Document],
) -> Document:
    """Return a decoded patched object. Raise StructDecodeError."""
    if webhook_kind is kind and kind.custom is None and kind is not CUSTOM_RESOURCE_DEFINITIONS:
        decode_changes(kind, document, operations)
        return document
    whole: Document = orjson.loads(orjson.dumps(document))
    read_document(webhook_kind, whole)
    return whole


def decode_changes(kind: ResourceInfo, document: Document, operations: Sequence[Document]) -> None:
    """Decode in place the fields of a built-in kind's object that operations have set.

    All other fields are decoded already, so decoding them again would not change them. Raise
    StructDecodeError.
    """
    touched = _changed_fields(operations)
    if touched is None:
        read_document(kind, document)
        return
    changed = {
        name: _selected(document[name], touched[name]) for name in document if name in touched
    }
    read_document(kind, changed)
    for name, members in touched.items():
        if not members or name not in changed:
            _copy_fields(document, changed, (name,))
        elif changed[name] is not document[name]:
            _copy_fields(document[name], changed[name], members)


def _changed_fields(operations: Sequence[Document]) -> dict[str, set[str]] | None:
    """Return the top-level fields that operations set, each with the names set below it.

    An empty set of names stands for the whole field. Return None for operations other than simple
    adds and replaces.
    """
    touched: dict[str, set[str]] = {}
    whole: set[str] = set()
    for operation in operations:
        root, *steps = str(operation.get("path")).split("/")
        if operation.get("op") not in ("add", "replace") or root or not steps:
            return None
        name, *below = (step.replace("~1", "/").replace("~0", "~") for step in steps)
        touched.setdefault(name, set()).update(below[:1])
        if not below:
            whole.add(name)
    return {name: set() if name in whole else members for name, members in touched.items()}


def _selected(value: Any, members: set[str]) -> Any:
    """Return the named entries of a map, in its order; the whole value if no names are given."""
    if not members or not isinstance(value, dict):
        return value
    return {name: item for name, item in value.items() if name in members}


def _copy_fields(target: Document, changed: Document, names: Iterable[str]) -> None:
    """Copy the named entries of ``changed`` to ``target``; remove those that are missing."""
    for name in names:
        if name in changed:
            target[name] = changed[name]
        else:
            target.pop(name, None)


def apply_operations(document: Document, operations: list[Document]) -> Document:
    """Return a patched document. Raise PatchError."""
    try:
        after = json_patch(document, operations)
    except StatusError:
        after = _apply_one_by_one(document, operations)
    if not isinstance(after, dict):
        raise PatchError("json: cannot unmarshal into Go value of an object")
    return after


def _apply_one_by_one(document: Any, operations: list[Document]) -> Any:
    """Return a patched document. Raise PatchError for the first operation that fails."""
    for operation in operations:
        try:
            document = json_patch(document, [operation])
        except StatusError:
            failed = PatchTestError if operation.get("op") == "test" else PatchError
            raise failed(_operation_error(document, operation)) from None
    return document


def _operation_error(document: Any, operation: Document) -> str:
    name, path = operation.get("op"), str(operation.get("path", ""))
    parent, _, key = path.rpartition("/")
    if name == "test":
        return f"testing value {path} failed: test failed"
    if name in ("move", "copy"):
        source = operation.get("from", "")
        return f"{name} operation does not apply: doc is missing from path: {source}: missing value"
    if name not in ("add", "remove", "replace"):
        return f"Unexpected kind: {name or 'unknown'}"
    if not isinstance(_at(document, parent), dict | list):
        location = f'"{path}"' if name != "replace" else path
        return f"{name} operation does not apply: doc is missing path: {location}: missing value"
    if name == "replace":
        return f"replace operation does not apply: doc is missing key: {path}: missing value"
    if name == "remove":
        detail = f"Unable to remove nonexistent key: {key}: missing value"
        return f"error in remove for path: '{path}': {detail}"
    return f"error in add for path: '{path}': invalid index referenced"


def _at(document: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict):
            document = document.get(key)
        elif isinstance(document, list) and key.isdecimal() and int(key) < len(document):
            document = document[int(key)]
        else:
            return None
    return document


def _check_header(webhook_kind: ResourceInfo, document: Document) -> None:
    found = (document.get("apiVersion"), document.get("kind"))
    if found != (webhook_kind.api_version, webhook_kind.kind):
        raise internal_error(
            f"a webhook made the object a {found[1]} of version {found[0]}; it must stay a "
            f"{webhook_kind.kind} of version {webhook_kind.api_version}"
        )


def _undecodable(detail: str) -> CallError:
    return CallError(f"received undecodable patch in webhook response: {detail}")
