"""A server that returns the JSON that it receives, to measure the cost of HTTP and JSON alone.

A process that prints its URL.
"""

from __future__ import annotations

import asyncio

import orjson
from aiohttp import web


async def _echo(request: web.Request) -> web.Response:
    document = orjson.loads(await request.read())
    return web.Response(body=orjson.dumps(document), content_type="application/json")


async def _main() -> None:
    app = web.Application(client_max_size=2**30)
    app.router.add_post("/{verb:.*}", _echo)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"listening on http://127.0.0.1:{runner.addresses[0][1]}", flush=True)  # noqa: T201
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main())
