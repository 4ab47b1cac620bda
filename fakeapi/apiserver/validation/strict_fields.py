"""Field validation: unknown and duplicate fields of a body.

``fieldValidation=Ignore`` drops them, ``Warn`` (the default) drops them with a warning for each,
``Strict`` rejects the request. Values of a wrong type are always rejected. A body is rejected with
400. A patch is rejected with 422, because only its result is invalid.

Sources: k8s.io/apiserver/pkg/endpoints/handlers (create.go, patch.go), k8s.io/apimachinery/pkg/
runtime (strict decoding errors), KEP-2885.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import orjson

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.structural_types import schema_of
from fakeapi.apiserver.objects.patch import JSON_PATCH
from fakeapi.apiserver.objects.type_meta import check_named_type, check_type, patched_type_error
from fakeapi.apiserver.schema.typed_document import read_document
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import bad_request, invalid, invalid_value
from fakeapi.apiserver.wire.go_format import format_as_go
from fakeapi.apiserver.wire.http_messages import Request
from fakeapi.apiserver.wire.request_bodies import YAML, media_type, read_json
from fakeapi.apiserver.wire.strict_decoding import (
    MAX_ERRORS,
    duplicate_fields,
    operation_errors,
    struct_errors,
    unknown_field,
)
from fakeapi.apiserver.wire.struct_decoder import FieldTypeError, StructDecodeError
from fakeapi.apiserver.wire.yaml_decoder import YamlDocument, decode_yaml

_STRATEGIC: Final = "application/strategic-merge-patch+json"


class FieldValidator:
    """Decodes the documents of one request, and collects the warnings of its answer."""

    def __init__(self, request: Request) -> None:
        """Read the level from the query of a request with valid options."""
        self._request = request
        self._level = request.query.get("fieldValidation") or "Warn"
        self._errors: list[str] = []
        self._yaml = YamlDocument(None, ())

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the texts of the answer's ``Warning`` headers."""
        if self._level != "Warn":
            return ()
        return tuple(dict.fromkeys((*self._yaml.duplicates, *self._errors)))

    def decode_body(self, kind: ResourceInfo, document: Document) -> Document:
        """Return a body with the fields of its kind only; raise StatusError (400)."""
        body = self._request.body
        check_named_type(kind, document, body)
        check_type(kind, document)
        subject = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
        try:
            unknown = read_document(kind, document)
        except StructDecodeError as error:
            raise bad_request(f"{subject}{error}") from None
        if self._level != "Ignore":
            if media_type(self._request.content_type) == YAML:
                self._yaml = decode_yaml(body)
                self._errors += map(unknown_field, unknown)
            elif unknown or _may_have_duplicates(body):
                self._errors += _errors_in_order(kind, body, unknown)
        if self._level == "Strict" and (self._errors or self._yaml.duplicates):
            raise bad_request(f"{subject}{self._strict_error()}")
        return document

    def decode_applied(self, body: bytes) -> None:
        """Look for duplicate keys in an applied configuration; raise StatusError (400)."""
        if self._level != "Ignore":
            self._yaml = decode_yaml(body)
        if self._level == "Strict" and self._yaml.duplicates:
            error = self._yaml.strict_error()
            raise bad_request(
                f"error strict decoding patch: error converting YAML to JSON: {error}"
            )

    def decode_patched(self, kind: ResourceInfo, document: Document) -> Document:
        """Return a patched document with the fields of its kind only; raise StatusError (422)."""
        patch_type, patch = media_type(self._request.content_type), self._request.body
        before = orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
        strategic = patch_type == _STRATEGIC
        detail = patched_type_error(kind, document, strategic=strategic)
        unknown: tuple[str, ...] = ()
        try:
            unknown = () if detail else read_document(kind, document)
        except FieldTypeError as error:
            detail = error.conversion if strategic else str(error)
        except StructDecodeError as error:
            detail = str(error)
        if self._level != "Ignore":
            self._errors += _patch_errors(patch_type, patch)
            if unknown:
                self._errors += _errors_in_order(kind, before, unknown)
        if self._level == "Strict" and self._errors:
            detail = detail or self._strict_error()
        if detail:
            text = format_as_go(read_json(patch)) if strategic else before.decode()
            raise invalid("", "", [invalid_value("patch", text, detail)])
        return document

    def _strict_error(self) -> str:
        errors = filter(None, (self._yaml.strict_error(), *self._errors))
        return f"strict decoding error: {', '.join(errors)}"


def _errors_in_order(kind: ResourceInfo, text: bytes, unknown: Sequence[str]) -> list[str]:
    """Return the errors of a JSON text as a decoder meets them.

    Unknown fields of nested schemas of a definition follow, since they decode themselves.
    """
    found = duplicate_fields(text) if kind.custom else struct_errors(schema_of(kind), text)
    return [*dict.fromkeys((*found, *map(unknown_field, unknown)))][:MAX_ERRORS]


def _patch_errors(patch_type: str, patch: bytes) -> tuple[str, ...]:
    if patch_type == JSON_PATCH:
        return operation_errors(patch)
    return duplicate_fields(patch) if _may_have_duplicates(patch) else ()


def _may_have_duplicates(body: bytes) -> bool:
    """Return whether a body may have a duplicate key: it has more keys than its document.

    This is much cheaper than a search for the key, and not necessary for a compact body. Strings
    that contain quoted colons, and bodies that are not JSON (protobuf), only cost that search.
    """
    try:
        document = orjson.loads(body)
        if orjson.dumps(document) == body:
            return False
        keys = body.count(b'":') - body.count(b'\\":')  # the latter are inside strings
        return keys != _count_keys(document)
    except orjson.JSONDecodeError:
        return False


def _count_keys(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(_count_keys(v) for v in value.values() if v.__class__ in _NESTED)
    if isinstance(value, list):
        return sum(_count_keys(v) for v in value if v.__class__ in _NESTED)
    return 0


_NESTED: Final = (dict, list)
