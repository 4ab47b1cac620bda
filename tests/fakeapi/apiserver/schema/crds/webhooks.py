"""A webhook that converts widgets: ``size`` in v1 is ``length`` in v2."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from tests.builders import Document
from tests.builders.definitions import INTEGER, TEXT, definition, record, version

OLD = record(spec=record(size=INTEGER))
NEW = record(spec=record(length=INTEGER, color={**TEXT, "default": "red"}))


def converted(**client_config: Any) -> Document:
    """Return a definition of two versions; ``client_config`` is that of the webhook."""
    hook = {"clientConfig": client_config, "conversionReviewVersions": ["v1"]}
    return definition(
        versions=[version(schema=OLD), version("v2", NEW)],
        conversion={"strategy": "Webhook", "webhook": hook},
    )


def renamed(review: Document) -> Document:
    """Answer a review."""
    request = review["request"]
    found = []
    for thing in request["objects"]:
        names = {"size": "length"} if request["desiredAPIVersion"].endswith("v2") else {}
        names = names or {"length": "size"}
        spec = {names.get(name, name): value for name, value in thing["spec"].items()}
        found.append({**thing, "apiVersion": request["desiredAPIVersion"], "spec": spec})
    response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": found}
    return {**review, "response": response}


@asynccontextmanager
async def serving(context: ssl.SSLContext) -> AsyncIterator[int]:
    """Answer reviews over HTTPS, at /convert; return the port."""

    async def answer(request: web.Request) -> web.Response:
        return web.json_response(renamed(await request.json()))

    app = web.Application()
    app.router.add_post("/convert", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
