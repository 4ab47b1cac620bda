"""A webhook over HTTPS, with a certificate of an authority of its own."""

from __future__ import annotations

import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from extender.secure_serving.pem import load_chain
from extender.secure_serving.self_signed import CertificateAuthority

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class WebhookServer:
    """The address of a webhook, and the authority of its certificate."""

    url: str
    ca_bundle: str

    def client(self, path: str = "") -> dict[str, str]:
        """Return the client configuration that leads to a path."""
        return {"url": f"{self.url}{path}", "caBundle": self.ca_bundle}


@asynccontextmanager
async def serving(handler: Handler, *hosts: str) -> AsyncIterator[WebhookServer]:
    """Serve webhooks on a free port, with a certificate for hosts (127.0.0.1)."""
    authority = CertificateAuthority()
    pair = authority.issue_server(hosts or ("127.0.0.1",))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    load_chain(context, pair.key + pair.certificate)
    runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0)  # type: ignore[arg-type]
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        port = runner.addresses[0][1]
        bundle = b64encode(authority.certificate).decode()
        yield WebhookServer(f"https://127.0.0.1:{port}", bundle)
    finally:
        await runner.cleanup()


def replying(answer: Callable[[Any], Any]) -> Handler:
    """Return a handler that answers reviews by a function."""

    async def handler(request: web.Request) -> web.Response:
        return web.json_response(answer(await request.json()))

    return handler
