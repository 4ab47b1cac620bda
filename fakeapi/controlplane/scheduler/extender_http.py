"""Calls to extenders over HTTP, and to extenders in this process.

With HTTPS and no CA of its own, an extender's certificate is not verified, as upstream. Redirects
are followed, as Go's client does.
"""

from __future__ import annotations

import ssl
from base64 import b64decode
from collections.abc import Mapping
from inspect import isawaitable
from pathlib import Path
from tempfile import TemporaryDirectory

from extender.kube.rest.http_transport import client_tls, skip_verification
from fakeapi.controlplane.scheduler.configuration import ExtenderConfig, TlsConfig
from fakeapi.controlplane.scheduler.options import Call, ExtenderFunction, Reply, UnansweredError
from fakeapi.http_client import HttpClient, HttpClientError

_HEADERS = {"User-Agent": "Go-http-client/1.1"}
_MAX_REDIRECTS = 10


class ExtenderPost:
    """Makes calls; ``in_process`` are extenders in this process, by their urlPrefix."""

    def __init__(self, in_process: Mapping[str, ExtenderFunction]) -> None:
        self._insiders = {prefix.rstrip("/"): extend for prefix, extend in in_process.items()}
        self._client = HttpClient(_HEADERS, _MAX_REDIRECTS)
        self._contexts: dict[str, ssl.SSLContext | None] = {}

    async def __call__(self, extender: ExtenderConfig, call: Call) -> Reply:
        """Make a call. Raises UnansweredError."""
        insider = self._insiders.get(call.prefix.rstrip("/"))
        if insider is not None:
            reply = insider(call)
            return await reply if isawaitable(reply) else reply
        return await self._post(extender, call)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def _post(self, extender: ExtenderConfig, call: Call) -> Reply:
        tls = extender.tls_config or TlsConfig()
        context = self._context(extender, tls)
        try:
            answer = await self._client.post(call.url, call.body, context, tls.server_name)
        except HttpClientError as error:
            raise UnansweredError(str(error)) from None
        return Reply(answer.status, answer.body)

    def _context(self, extender: ExtenderConfig, tls: TlsConfig) -> ssl.SSLContext | None:
        if extender.url_prefix not in self._contexts:
            self._contexts[extender.url_prefix] = tls_context(extender, tls)
        return self._contexts[extender.url_prefix]


def tls_context(extender: ExtenderConfig, tls: TlsConfig) -> ssl.SSLContext | None:
    """Return the TLS context of a connection, None for the default. Raises UnansweredError."""
    if extender.tls_config is None and not extender.enable_https:
        return None
    try:
        authority = b64decode(tls.ca_data) if tls.ca_data else None
        context = client_tls(tls.ca_file or None, authority)
        has_authority = bool(authority or tls.ca_file)
        if tls.insecure or (extender.enable_https and not has_authority):
            skip_verification(context)
        if tls.cert_file or tls.cert_data:
            _load_client_certificate(context, tls)
    except (OSError, ValueError) as error:
        raise UnansweredError(f"tls: {error}") from None
    return context


def _load_client_certificate(context: ssl.SSLContext, tls: TlsConfig) -> None:
    """Load the client certificate into the context (the ssl module reads only files)."""
    with TemporaryDirectory(prefix="fakeapi-") as directory:
        written = {"cert": tls.cert_data, "key": tls.key_data}
        paths = {"cert": Path(tls.cert_file), "key": Path(tls.key_file)}
        for name, data in written.items():
            if data:
                paths[name] = Path(directory) / name
                paths[name].touch(mode=0o600)
                paths[name].write_bytes(b64decode(data))
        context.load_cert_chain(paths["cert"], paths["key"])
