"""PartialObjectMetadata: metadata only, for clients such as garbage collectors.

Source: k8s.io/apiserver/pkg/endpoints/handlers/response.go (asPartialObjectMetadata).
"""

from __future__ import annotations

import msgspec

from fakeapi.api.errors import StatusError
from fakeapi.api.outlines import decode_raw_event, decode_raw_object, encode_watch_line


def partial_object(body: bytes, version: str) -> bytes:
    """Return the metadata of one object; keep a Status. Raise StatusError (406) for a list."""
    whole = decode_raw_object(body)
    if whole.kind == "Status":
        return body
    if whole.is_list:
        raise _not_acceptable("PartialObjectMetadata", f"is a list ({whole.kind})")
    return metadata_document(whole.metadata, version) + b"\n"


def partial_list(body: bytes, version: str) -> bytes:
    """Return the metadata of a list's objects; keep a Status. Raise StatusError (406)."""
    whole = decode_raw_object(body)
    if whole.kind == "Status":
        return body
    if whole.items is None or not whole.is_list:
        raise _not_acceptable("PartialObjectMetadataList", f"is not a list ({whole.kind})")
    items = b",".join(
        [metadata_document(decode_raw_object(item).metadata, version) for item in whole.items]
    )
    head = _head("PartialObjectMetadataList", version)
    return b"".join((head, bytes(whole.metadata), b',"items":[', items, b"]}\n"))


def partial_event(line: bytes, version: str) -> bytes:
    """Return a line of a watch with the metadata of its object; keep a line with a Status."""
    event = decode_raw_event(line)
    return encode_watch_line(event.type, partial_object(bytes(event.object), version))


def metadata_document(metadata: msgspec.Raw, version: str) -> bytes:
    """Return the PartialObjectMetadata document of an object's metadata."""
    return b"".join((_head("PartialObjectMetadata", version), bytes(metadata), b"}"))


def _head(kind: str, version: str) -> bytes:
    return f'{{"kind":"{kind}","apiVersion":"meta.k8s.io/{version}","metadata":'.encode()


def _not_acceptable(shape: str, what: str) -> StatusError:
    message = f"you requested {shape}, but the requested object {what}"
    return StatusError(406, "NotAcceptable", message)
