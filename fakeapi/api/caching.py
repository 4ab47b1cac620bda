"""ETags: conditional requests for responses that clients cache.

Discovery and OpenAPI documents are large and rarely change. Each response has the hash of its bytes
as its ETag; a client that sends the hash back (``If-None-Match``) gets 304 and no body.

Source: k8s.io/apiserver/pkg/endpoints/discovery/aggregated/etag.go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from fakeapi.api.messages import Request, Response

_NOT_MODIFIED: Final = 304


def etag_of(body: bytes) -> str:
    """Return the ETag of a response's bytes, in quotes."""
    return f'"{hashlib.sha512(body).hexdigest().upper()}"'


def conditional_response(
    request: Request, body: bytes, content_type: str, etag: str = "", **headers: str
) -> Response:
    """Return the response, or 304 if the client has it already.

    ``etag`` avoids hashing the body again; ``headers`` are added to both responses.
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
