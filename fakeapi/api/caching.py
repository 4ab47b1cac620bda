"""Answers that clients keep: an ETag tells whether the copy that a client has is still good.

Discovery and OpenAPI are large and hardly ever change. Each answer bears the hash of its bytes; a
client that sends the hash back (``If-None-Match``) gets 304 and no body.

Source: k8s.io/apiserver/pkg/endpoints/discovery/aggregated/etag.go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from fakeapi.api.messages import Request, Response

_NOT_MODIFIED: Final = 304


def etag_of(body: bytes) -> str:
    """Return the ETag of an answer's bytes, in its quotes."""
    return f'"{hashlib.sha512(body).hexdigest().upper()}"'


def cached(
    request: Request, body: bytes, content_type: str, etag: str = "", **headers: str
) -> Response:
    """Return the answer, or 304 if the client has it already.

    ``etag`` spares hashing the body again; ``headers`` go with both answers.
    """
    tagged: Mapping[str, str] = {
        "ETag": etag or etag_of(body),
        "Vary": "Accept",
        "Cache-Control": "public",
        **headers,
    }
    if request.if_none_match == tagged["ETag"]:
        return Response(_NOT_MODIFIED, b"", content_type, headers=tagged)
    return Response(200, body, content_type, headers=tagged)
