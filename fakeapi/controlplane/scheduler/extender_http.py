"""Calls to extenders over HTTP, and to extenders in this process.

With HTTPS and no CA of its own, an extender's certificate is not verified, as upstream. Redirects
are followed, as Go's client does.
"""

from __future__ import annotations

import ssl
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from inspect import isawaitable
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp

from fakeapi.controlplane.scheduler.configuration import (
    Call,
    ExtenderConfig,
    ExtenderFunction,
    Reply,
    TlsConfig,
    UnansweredError,
)

_HEADERS = {"Content-Type": "application/json", "User-Agent": "Go-http-client/1.1"}


class ExtenderPost:
    """Makes calls; ``in_process`` are extenders in this process, by their urlPrefix."""

    def __init__(self, in_process: Mapping[str, ExtenderFunction]) -> None:
        self._insiders = {prefix.rstrip("/"): extend for prefix, extend in in_process.items()}
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[str, ssl.SSLContext | bool] = {}

    async def __call__(self, extender: ExtenderConfig, call: Call) -> Reply:
        """Make a call. Raises UnansweredError."""
        insider = self._insiders.get(call.prefix.rstrip("/"))
        if insider is not None:
            reply = insider(call)
            return await reply if isawaitable(reply) else reply
        return await self._post(extender, call)

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def _post(self, extender: ExtenderConfig, call: Call) -> Reply:
        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=None)
            self._session = aiohttp.ClientSession(timeout=timeout, headers=_HEADERS)
        tls = extender.tls_config or TlsConfig()
        try:
            async with self._session.post(
                call.url,
                data=call.body,
                ssl=self._context(extender, tls),
                server_hostname=tls.server_name or None,
            ) as answer:
                return Reply(answer.status, await answer.read())
        except (aiohttp.ClientError, ValueError, OSError) as error:
            raise UnansweredError(_go_error_text(error)) from None

    def _context(self, extender: ExtenderConfig, tls: TlsConfig) -> ssl.SSLContext | bool:
        if extender.url_prefix not in self._contexts:
            self._contexts[extender.url_prefix] = tls_context(extender, tls)
        return self._contexts[extender.url_prefix]


def tls_context(extender: ExtenderConfig, tls: TlsConfig) -> ssl.SSLContext | bool:
    """Return the TLS context of a connection. Raises UnansweredError."""
    if extender.tls_config is None and not extender.enable_https:
        return True
    try:
        authority = b64decode(tls.ca_data).decode() if tls.ca_data else None
        context = ssl.create_default_context(cafile=tls.ca_file or None, cadata=authority)
        has_authority = bool(authority or tls.ca_file)
        if tls.insecure or (extender.enable_https and not has_authority):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if tls.cert_file or tls.cert_data:
            _load_client_certificate(context, tls)
    except (OSError, ssl.SSLError, Base64Error, ValueError) as error:
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


def _go_error_text(error: Exception) -> str:
    """Return an error's text as Go's HTTP client words it."""
    if isinstance(error, aiohttp.InvalidURL):
        return "unsupported protocol scheme"
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
        return f"tls: failed to verify certificate: x509: {error}"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"dial tcp: lookup {error.host}: no such host"
    if isinstance(error, aiohttp.ClientConnectorError):
        place = f"{error.host}:{error.port}"
        if isinstance(error.os_error, ConnectionRefusedError):
            return f"dial tcp {place}: connect: connection refused"
        return f"dial tcp {place}: {error.os_error.strerror or error.os_error}"
    if isinstance(error, aiohttp.ServerDisconnectedError | ConnectionResetError):
        return "EOF"
    return str(error) or type(error).__name__
