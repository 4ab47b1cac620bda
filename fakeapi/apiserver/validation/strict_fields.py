"""Field validation: unknown and duplicate fields of a body.

``fieldValidation=Ignore`` drops them, ``Warn`` (the default) drops them with a warning for each,
``Strict`` rejects the request. Values of a wrong type are always rejected. A body is rejected with
400. A patch is rejected with 422, because only its result is invalid.

Sources: k8s.io/apiserver/pkg/endpoints/handlers (create.go, patch.go), k8s.io/apimachinery/pkg/
runtime (strict decoding errors), KEP-2885.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.objects.metadata import check_named_type, check_type
from fakeapi.apiserver.schema.typed_document import read_document
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import bad_request, invalid, invalid_value, unsupported_value
from fakeapi.apiserver.wire.request_bodies import media_type, read_json
from fakeapi.apiserver.wire.struct_decoder import LinkedPath, StructDecodeError, format_path

_LEVELS: Final = ("", "Ignore", "Strict", "Warn")
_STRATEGIC: Final = "application/strategic-merge-patch+json"


class FieldValidator:
    """Decodes the documents of one request, and collects the warnings of its answer."""

    def __init__(self, query: Mapping[str, str], options: str) -> None:
        """Read the level from a query; ``options`` is the options kind of the verb.

        Raise StatusError (422).
        """
        level = query.get("fieldValidation", "")
        if level not in _LEVELS:
            cause = unsupported_value("fieldValidation", level, _LEVELS)
            raise invalid(f"{options}.meta.k8s.io", "", [cause])
        self._level = level or "Warn"
        self._errors: list[str] = []

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the texts of the answer's ``Warning`` headers."""
        return tuple(self._errors) if self._level == "Warn" else ()

    def decode_body(self, kind: ResourceInfo, document: Document, body: bytes) -> Document:
        """Return a body with the fields of its kind only; raise StatusError (400)."""
        check_named_type(kind, document, body)
        check_type(kind, document)
        subject = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
        try:
            self._decode(kind, document, body)
        except StructDecodeError as error:
            raise bad_request(f"{subject}{error}") from None
        if self._level == "Strict" and self._errors:
            raise bad_request(f"{subject}{self._strict_error()}")
        return document

    def decode_patched(
        self, kind: ResourceInfo, document: Document, content_type: str, patch: bytes
    ) -> Document:
        """Return a patched document with the fields of its kind only; raise StatusError (422)."""
        before = orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
        detail = ""
        try:
            self._decode(kind, document, patch)
        except StructDecodeError as error:
            detail = str(error)
        if self._level == "Strict" and self._errors:
            detail = detail or self._strict_error()
        if detail:
            strategic = media_type(content_type) == _STRATEGIC
            text = format_as_go(read_json(patch)) if strategic else before.decode()
            raise invalid("", "", [invalid_value("patch", text, detail)])
        return document

    def _decode(self, kind: ResourceInfo, document: Document, body: bytes) -> None:
        if self._level != "Ignore" and _may_have_duplicates(body):
            self._errors += [f'duplicate field "{name}"' for name in duplicate_fields(body)]
        unknown = read_document(kind, document)
        if self._level != "Ignore":
            self._errors += [f'unknown field "{name}"' for name in unknown]

    def _strict_error(self) -> str:
        return f"strict decoding error: {', '.join(self._errors)}"


def _may_have_duplicates(body: bytes) -> bool:
    """Return whether a body may have a duplicate key: it has more keys than its document.

    This is much cheaper than a search for the key. Strings that contain quoted colons, and bodies
    that are not JSON (protobuf), only cost that search.
    """
    try:
        keys = body.count(b'":') - body.count(b'\\":')  # the latter are inside strings
        return keys != _count_keys(orjson.loads(body))
    except orjson.JSONDecodeError:
        return False


def _count_keys(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(_count_keys(v) for v in value.values() if v.__class__ in _NESTED)
    if isinstance(value, list):
        return sum(_count_keys(v) for v in value if v.__class__ in _NESTED)
    return 0


_NESTED: Final = (dict, list)


class DuplicateTrackingDict(dict[str, Any]):
    """A JSON object that records which of its keys are duplicates."""

    duplicates: Sequence[str] = ()


def _tracking_dict(pairs: list[tuple[str, Any]]) -> DuplicateTrackingDict:
    made = DuplicateTrackingDict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        made.duplicates = [key for key in made if keys.count(key) > 1]
    return made


def duplicate_fields(body: bytes) -> tuple[str, ...]:
    """Return the paths of duplicate fields of a JSON body."""
    try:
        parsed = json.loads(body, object_pairs_hook=_tracking_dict)
    except ValueError:
        return ()
    return tuple(_duplicate_paths(parsed, None))


def _duplicate_paths(value: Any, where: LinkedPath) -> Iterator[str]:
    if isinstance(value, DuplicateTrackingDict):
        for key, item in value.items():
            yield from _duplicate_paths(item, (where, key))
            if key in value.duplicates:
                yield format_path((where, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _duplicate_paths(item, (where, f"[{index}]"))


def format_as_go(value: Any) -> str:
    """Return JSON as Go prints maps and slices: ``map[a:1 b:[x y]]``."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{k}:{format_as_go(value[k])}' for k in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(format_as_go(item) for item in value)}]"
    if value is None or isinstance(value, bool):
        return {None: "<nil>", True: "true", False: "false"}[value]
    return str(value)
