"""Patches: three media types, each a function from a document and a patch to a new document.

- ``application/merge-patch+json`` (RFC 7386): maps merge, null deletes, other values replace.
- ``application/json-patch+json`` (RFC 6902): operations in order, all or none.
- ``application/strategic-merge-patch+json``: the merge of
  :mod:`extender.kube.patches.strategic_merge_patch`, by the kind's structural type. Fields that
  the type does not have merge as in a JSON merge patch.

Limits are upstream's: 10,000 JSON patch operations, and ``copy`` operations may not copy more than
the size of a request body (a few nested copies could otherwise exhaust the memory).

Server-side apply is not a patch of this kind (:mod:`fakeapi.apiserver.managedfields`); only its
body, one object in YAML or JSON, is decoded here.

Source: k8s.io/apiserver/pkg/endpoints/handlers/patch.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import jsonpatch
import jsonpointer
import orjson

from extender.kube.patches import strategic_merge_patch
from extender.kube.patches.strategic_merge_patch import PatchError
from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.structural_types import (
    UNTYPED,
    ListType,
    Struct,
    Type,
    child,
    schema_of,
)
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import (
    StatusError,
    bad_request,
    unprocessable_patch,
    unrouted_media_type,
    unsupported_media_type,
)
from fakeapi.apiserver.wire.go_format import json_type
from fakeapi.apiserver.wire.request_bodies import check_depth, media_type, read_json
from fakeapi.apiserver.wire.yaml_decoder import YamlError, decode_yaml


def strategic_merge(
    kind: ResourceInfo, document: Mapping[str, Any], patch: Mapping[str, Any]
) -> dict[str, Any]:
    """Return ``document`` with ``patch`` merged in; raise StatusError (400) if it is malformed."""
    try:
        return strategic_merge_patch.strategic_merge(MERGE_RULES, schema_of(kind), document, patch)
    except PatchError as error:
        raise bad_request(str(error)) from None


class StructuralMergeRules:
    """Merge rules of structural types."""

    def child(self, shape: Type, key: str) -> Type:
        """Return the type of the field ``key``."""
        return child(shape, key)

    def element(self, shape: Type) -> Type:
        """Return the type of a list's elements."""
        return shape.element if isinstance(shape, ListType) else UNTYPED

    def merge_key(self, shape: Type) -> str | None:
        """Return the key by which a list's elements are merged; None if the list is replaced."""
        merge = shape.merge if isinstance(shape, ListType) else None
        return None if merge is None else merge.key

    def replaces(self, shape: Type, key: str) -> bool:
        """Return whether a patch replaces the field ``key`` as a whole."""
        field = shape.fields.get(key) if isinstance(shape, Struct) else None
        return field is not None and field.replaces


MERGE_RULES: Final = StructuralMergeRules()

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
PATCH_TYPES: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH)
CUSTOM_PATCH_TYPES: Final = (JSON_PATCH, MERGE_PATCH, "application/apply-patch+yaml")
"""Patch types of custom resources: without a Go type, the merge keys of lists are unknown."""

_GO_MAP: Final = "map[string]interface {}"
MAX_OPERATIONS: Final = 10_000
MAX_COPIED_BYTES: Final = 3 * 1024 * 1024


def apply_patch(kind: ResourceInfo, document: Document, content_type: str, body: bytes) -> Document:
    """Return the patched document; it may share parts with ``document``.

    Raise StatusError: 415 unknown patch type, 400 malformed patch, 413 patch too large, 422 patch
    does not apply.
    """
    patch_type = media_type(content_type)
    accepted = PATCH_TYPES if kind.custom is None else CUSTOM_PATCH_TYPES
    if patch_type not in accepted:
        raise unrouted_media_type() if kind.custom is None else unsupported_media_type(accepted)
    try:
        patch = read_json(body)
    except StatusError:
        raise bad_request("invalid JSON patch") from None
    if patch_type == JSON_PATCH:
        patched = json_patch(document, patch)
    elif patch is None and patch_type == MERGE_PATCH:
        raise bad_request("Invalid JSON Patch")
    elif not isinstance(patch := {} if patch is None else patch, dict):
        wrong = f"json: cannot unmarshal {json_type(patch)} into Go value of type {_GO_MAP}"
        raise bad_request(wrong if patch_type != MERGE_PATCH else f"error decoding patch: {wrong}")
    elif patch_type == MERGE_PATCH:
        patched = merge_patch(document, patch)
    else:
        patched = strategic_merge(kind, document, patch)
    if not isinstance(patched, dict):
        raise unprocessable_patch()
    return patched


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch; source: RFC 7386, section 2."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def json_patch(document: Any, operations: Any) -> Any:
    """Apply a JSON patch; the result may share unchanged parts with the document.

    Raise StatusError (400, 413, 422).
    """
    operations = [] if operations is None else operations
    _check_operations(operations)
    if len(operations) > MAX_OPERATIONS:
        raise _too_large(
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{MAX_OPERATIONS}, got {len(operations)}"
        )
    try:
        return _apply_operations(document, operations)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException):
        raise unprocessable_patch() from None
    except (TypeError, KeyError, IndexError, AttributeError, ValueError):
        raise unprocessable_patch() from None  # an operation does not fit the object


def _check_operations(operations: Any) -> None:
    """Raise StatusError (400) for a value that is no list of operations."""
    if not isinstance(operations, list):
        raise _operation_error(operations, "value of type []handlers.jsonPatchOp")
    for operation in operations:
        if operation is None:
            raise unprocessable_patch()
        if not isinstance(operation, dict):
            raise _operation_error(operation, "value of type handlers.jsonPatchOp")
        for name in ("op", "path", "from"):
            if not isinstance(operation.get(name), str | None):
                where = f"struct field jsonPatchOp.{name} of type string"
                raise _operation_error(operation[name], where)


def _operation_error(value: Any, where: str) -> StatusError:
    return bad_request(
        f"error decoding patch: json: cannot unmarshal {json_type(value)} into Go {where}"
    )


def _apply_operations(document: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    copied, ours = 0, False
    for operation in operations:
        if operation.get("op") == "copy":
            source = jsonpointer.resolve_pointer(document, str(operation.get("from")))
            copied += len(orjson.dumps(source))
            if copied > MAX_COPIED_BYTES:
                raise _too_large(f"copy operations may copy {MAX_COPIED_BYTES} bytes at most")
        name, value = operation.get("op"), operation.get("value")
        if name == "test" and value is None and _is_missing_member(document, operation):
            continue
        changed = _set_member(document, operation)
        if changed is None:
            if not ours:
                document, ours = orjson.loads(orjson.dumps(document)), True
            if name == "replace" and _is_missing_member(document, operation):
                operation = {**operation, "op": "add"}
            changed = jsonpatch.JsonPatch([operation]).apply(document, in_place=True)
        document = changed
    check_depth(document)  # operations may nest deeper than any body: raises a TypeError
    return document


def _is_missing_member(document: Any, operation: Mapping[str, Any]) -> bool:
    """Return whether an operation is about a missing member of a map.

    It may be replaced, and is null in a test, as in evanphx/json-patch, which kube-apiserver uses.
    Both fail in RFC 6902.
    """
    last: object
    parent, last = jsonpointer.JsonPointer(operation["path"]).to_last(document)
    return isinstance(parent, dict) and last is not None and last not in parent


def _set_member(document: Any, operation: Mapping[str, Any]) -> Document | None:
    """Apply an operation that sets a member of a map in maps; return None for other operations.

    This is the most common operation. Only the maps on the path are copied.
    """
    path = operation.get("path")
    if operation.get("op") not in ("add", "replace") or not isinstance(path, str):
        return None
    root, *steps = path.split("/")
    if root or not steps or "value" not in operation or "~" in path:
        return None
    maps = [document]
    for step in steps[:-1]:
        maps.append(maps[-1].get(step) if isinstance(maps[-1], dict) else None)
    last = maps[-1]
    if not isinstance(last, dict):
        return None
    changed: Document = {**last, steps[-1]: operation["value"]}
    for place, step in zip(reversed(maps[:-1]), reversed(steps[:-1]), strict=True):
        changed = {**place, step: changed}
    return changed


def _too_large(message: str) -> StatusError:
    return StatusError(413, "RequestEntityTooLarge", message)


def read_configuration(body: bytes) -> Document:
    """Decode the applied object; raise StatusError (400)."""
    try:
        value = decode_yaml(body).value
    except YamlError as error:
        as_json = body.lstrip()[:1] == b"{"
        step = "decoding patch: error converting YAML to JSON" if as_json else "encoding patch"
        raise bad_request(f"error {step}: {error}") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise bad_request(
            "error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot "
            f"unmarshal {json_type(value)} into Go value of type {_GO_MAP}"
        )
    copy: Document = orjson.loads(orjson.dumps(value))  # values that aliases repeat are not shared
    return copy
