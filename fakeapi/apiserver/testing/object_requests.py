"""Requests for objects in the words of kubectl, for the tests of a client.

    GET    /_fakeapi/objects?kind=po&name=web      a pod; without a name a list
    PATCH  /_fakeapi/objects?kind=Widget&name=one  server-side apply
    DELETE /_fakeapi/objects?kind=deploy&name=web

``kind`` is a kind, plural, singular or short name, also with its group (``deployments.apps``);
``namespace`` is that of the object (default: ``default``) or of a list (default: all). With
``apiVersion``, ``kind`` is a kind of that version. All other parameters are those of the API. These
requests are neither recorded nor subject to faults.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fakeapi.apiserver.kinds import ResourceInfo, ResourceRegistry
from fakeapi.apiserver.testing.object_history import find_kind
from fakeapi.apiserver.wire.errors import bad_request
from fakeapi.apiserver.wire.http_messages import Request

OBJECTS_PATH: Final = "/_fakeapi/objects"
_DEFAULT_NAMESPACE: Final = "default"


def object_request(kinds: ResourceRegistry, request: Request) -> Request:
    """Return the request to the API for a request in words; raise StatusError (400)."""
    query = dict(request.query)
    api_version, word, namespace, name = (
        query.pop(each, "") for each in ("apiVersion", "kind", "namespace", "name")
    )
    kind = kinds.of(api_version, word) if api_version else find_kind(kinds, word)
    if kind is None:
        raise bad_request(f"no kind {word!r} in version {api_version!r} is served here")
    return replace(request, path=_path(kind, namespace, name), query=query)


def _path(kind: ResourceInfo, namespace: str, name: str) -> str:
    namespace = namespace or (_DEFAULT_NAMESPACE if name else "")
    place = f"/namespaces/{namespace}" if kind.namespaced and namespace else ""
    return f"{kind.root}{place}/{kind.plural}" + (f"/{name}" if name else "")
