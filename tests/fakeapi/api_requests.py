"""Asking an API without sockets, in one line."""

from __future__ import annotations

from typing import Any

import orjson

from extender.kube.rest.transport import Request, Response
from fakeapi.apiserver.serving.local_transport import LocalTransport

MAPS = "/api/v1/namespaces/default/configmaps"
NAME = "a.example.com"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def named(name: str, **data: str) -> dict[str, Any]:
    """Build a config map."""
    return {"metadata": {"name": name}, "data": data}


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
