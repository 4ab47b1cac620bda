"""A mutating webhook that only allows, to measure the cost of the HTTPS call alone.

A process that is started with the URL of an API server; it registers itself there for pods that
are created in namespaces labelled ``approved``, and prints its URL.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Final

import aiohttp
import orjson

from extender.controllers.process.webhook_server import WebhookServer, generate_certificate

_PATH: Final = "/approve"
_CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


async def _approve(body: bytes) -> bytes:
    review = orjson.loads(body)
    response = {"uid": review["request"]["uid"], "allowed": True}
    header = {"apiVersion": review["apiVersion"], "kind": review["kind"]}
    return orjson.dumps({**header, "response": response})


async def _main(api: str) -> None:
    server = WebhookServer(generate_certificate("127.0.0.1"))
    url = await server.start("127.0.0.1", 0)
    endpoint = server.endpoint(lambda _spec: ())
    endpoint.serve({_PATH: _approve})
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    webhook = {
        "name": "approving.bench.example",
        "admissionReviewVersions": ["v1"],
        "clientConfig": endpoint.client_config(_PATH),
        "namespaceSelector": {"matchLabels": {"approved": "yes"}},
        "rules": [{**pods, "resources": ["pods"]}],
        "sideEffects": "None",
    }
    configuration = {"metadata": {"name": "approving"}, "webhooks": [webhook]}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{api}{_CONFIGURATIONS}", json=configuration) as answer,
    ):
        assert answer.status == 201, await answer.text()
    print(f"listening on {url}", flush=True)  # noqa: T201
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1]))
