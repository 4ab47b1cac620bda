"""What a mutating webhook makes of an object: its JSON patch, applied to the form that it saw.

The patched object is read as a body would be: fields that its kind does not have go, a value of a
wrong type is an error, defaults are filled in. A patch that does not apply fails the request
whatever the webhook's failure policy.

Sources: k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go, and
gopkg.in/evanphx/json-patch.v4 for the words.
"""

from __future__ import annotations

from typing import Any

import orjson

from fakeapi.api.decoding import MismatchError
from fakeapi.api.defaulting import apply_defaults
from fakeapi.api.errors import StatusError, internal_error
from fakeapi.api.hooks.forms import Shapes
from fakeapi.api.hooks.reviewing import CallError
from fakeapi.api.patching import json_patch
from fakeapi.api.reading import read_document
from fakeapi.api.samejson import same_json
from fakeapi.kinds import Kind
from fakeapi.store import Document


def read_patch(name: str, patch: bytes, patch_type: str, *, has_object: bool) -> list[Document]:
    """Give the operations of a webhook's patch; raises CallError, StatusError (500)."""
    try:
        operations = orjson.loads(patch)
    except orjson.JSONDecodeError as error:
        raise _undecodable(str(error)) from None
    if not isinstance(operations, list) or not all(isinstance(o, dict) for o in operations):
        raise _undecodable("json: cannot unmarshal into Go value of type jsonpatch.Patch")
    if operations and not has_object:
        why = "attempted to modify the object, which is not supported for this operation"
        raise internal_error(f'admission webhook "{name}" {why}')
    if operations and patch_type != "JSONPatch":
        raise CallError(f'unsupported patch type "{patch_type}"')
    return operations


def patched(
    shapes: Shapes, kind: Kind, form: Kind, document: Document, operations: list[Document]
) -> Document | None:
    """Give an object of ``kind`` after a patch of its ``form``; None if it is the same.

    Raises StatusError (500).
    """
    before = shapes.shown(form, kind, document)
    after = _apply(orjson.loads(orjson.dumps(before)), operations)
    _check_header(form, after)
    try:
        read_document(form, after)
    except MismatchError as error:
        raise internal_error(str(error)) from None
    if same_json(after, before):
        return None
    result = shapes.taken(form, kind, after)
    result.setdefault("metadata", {})
    apply_defaults(kind, result)
    return result


def _apply(document: Any, operations: list[Document]) -> Document:
    for operation in operations:
        try:
            document = json_patch(document, [operation])
        except StatusError:
            raise internal_error(_why_not(document, operation)) from None
    if not isinstance(document, dict):
        raise internal_error("json: cannot unmarshal into Go value of an object")
    return document


def _why_not(document: Any, operation: Document) -> str:
    """Say why an operation does not apply."""
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
        shown = f'"{path}"' if name != "replace" else path
        return f"{name} operation does not apply: doc is missing path: {shown}: missing value"
    if name == "replace":
        return f"replace operation does not apply: doc is missing key: {path}: missing value"
    if name == "remove":
        why = f"unable to remove nonexistent key: {key}: missing value"
        return f"error in remove for path: '{path}': {why}"
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


def _check_header(form: Kind, document: Document) -> None:
    said = (document.get("apiVersion"), document.get("kind"))
    if said != (form.api_version, form.kind):
        raise internal_error(
            f"a webhook made the object a {said[1]} of version {said[0]}; it must stay a "
            f"{form.kind} of version {form.api_version}"
        )


def _undecodable(why: str) -> CallError:
    return CallError(f"received undecodable patch in webhook response: {why}")
