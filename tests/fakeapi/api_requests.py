"""Asking an API without sockets, in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from extender.kube.rest.transport import Request, Response
from fakeapi.apiserver import endpoints
from fakeapi.apiserver.endpoints import Api
from fakeapi.apiserver.serving.local_transport import LocalTransport

Ask = Callable[..., tuple[int, Any]]
Define = Callable[..., Any]
OpenWatch = Callable[..., Callable[[], list[tuple[str, Any]]]]

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
TABLE = f"{JSON};as=Table;v=v1;g=meta.k8s.io"
PARTIAL = f"{JSON};as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"

NAMESPACES = "/api/v1/namespaces"
NODES = "/api/v1/nodes"
DEFAULT = f"{NAMESPACES}/default"
ACCOUNTS = f"{DEFAULT}/serviceaccounts"
MAPS = f"{DEFAULT}/configmaps"
PODS = f"{DEFAULT}/pods"
SERVICES = f"{DEFAULT}/services"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SETS = "/apis/apps/v1/namespaces/default/replicasets"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
NAME = "a.example.com"


def named(name: str, **data: str) -> dict[str, Any]:
    """Build a config map."""
    return {"metadata": {"name": name}, "data": data}


def fixed_sources() -> endpoints.IdAndTimeSources:
    """Return sources of equal times, UIDs and names."""
    return endpoints.IdAndTimeSources(
        lambda _: "2026-01-01T00:00:00Z", lambda: "uid", lambda: "abcde", lambda: 0
    )


def send(
    api: Api,
    method: str,
    path: str,
    body: Any = None,
    content_type: str | None = None,
    **fields: Any,
) -> endpoints.Response:
    """Send a request, its body as JSON unless it is bytes; ``fields`` are others of the request.

    Patches are merge patches by default.
    """
    raw = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)
    if content_type is None:
        content_type = MERGE if method == "PATCH" else JSON
    answer = api.handle(
        endpoints.Request(method, path, body=raw, content_type=content_type, **fields)
    )
    assert isinstance(answer, endpoints.Response)
    return answer


class Answer:
    """An answer, its body decoded."""

    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.body = orjson.loads(response.body)


async def ask(transport: LocalTransport, method: str, path: str, body: Any = None) -> Answer:
    """Ask; a patch is a merge patch."""
    raw = b"" if body is None else orjson.dumps(body)
    kind = MERGE if method == "PATCH" else "application/json"
    return Answer(await transport.request(Request(method, path, body=raw, content_type=kind)))
