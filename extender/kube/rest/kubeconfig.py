"""Endpoints of kubeconfigs and of the service account of a pod.

kubernetes_asyncio reads the files, within the bounds of `yaml_loader`, and runs the credential
plugins; the resulting `Configuration` becomes an `Endpoint`. Tokens are refreshed: a service
account's is read again every minute, a credential plugin's is renewed before it expires, and after
any 401 the next request reloads everything. Client certificates and the CA are read once. A proxy
that the kubeconfig does not name is taken from the environment, as Go's ProxyFromEnvironment does.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

import aiohttp
import yaml
from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import ConfigException
from kubernetes_asyncio.config.incluster_config import (
    SERVICE_CERT_FILENAME,
    SERVICE_HOST_ENV_NAME,
    SERVICE_PORT_ENV_NAME,
    SERVICE_TOKEN_FILENAME,
    InClusterConfigLoader,
)
from kubernetes_asyncio.config.kube_config import KubeConfigLoader, KubeConfigMerger

from extender.kube.decoders.yaml_loader import load_document
from extender.kube.rest.api_errors import ConnectionConfigError
from extender.kube.rest.http_transport import (
    Endpoint,
    client_tls,
    describe_error,
    skip_verification,
)
from extender.kube.rest.server_url import checked_url, proxy_for
from extender.kube.rest.transport import TransportError

_MAX_BYTES: Final = 2**22
"""kubernetes_asyncio reads a kubeconfig by a parser in Python, some 200 KiB a second."""

# The errors that kubernetes_asyncio raises. It validates little before it reads, so a malformed
# file raises one of the second row.
_CONFIG_ERRORS = (ConfigException, aiohttp.ClientError, yaml.YAMLError, OSError, RuntimeError)
_FORMAT_ERRORS = (AssertionError, AttributeError, LookupError, TypeError, ValueError)


async def kubeconfig_endpoint(
    path: Path | None, context: str | None = None, environ: Mapping[str, str] = os.environ
) -> Endpoint:
    """Return the cluster and user of a kubeconfig; the default one if there is no path.

    Raise ConnectionConfigError.
    """
    paths = str(path) if path is not None else _default_kubeconfig(environ)
    configuration = _blank_configuration()

    async def load() -> None:
        await _load_kubeconfig(paths, context, configuration)

    where = f"kubeconfig {paths}"
    await _load_or_raise(load, where)
    return _endpoint(configuration, load, where, environ)


async def in_cluster_endpoint(
    environ: Mapping[str, str] = os.environ,
    token_file: Path = Path(SERVICE_TOKEN_FILENAME),
    ca_file: Path = Path(SERVICE_CERT_FILENAME),
) -> Endpoint:
    """Return the cluster this pod runs in, with the pod's service account.

    Raise ConnectionConfigError.
    """
    configuration = _blank_configuration()

    async def load() -> None:
        loader = InClusterConfigLoader(str(token_file), str(ca_file), environ=dict(environ))
        await asyncio.to_thread(loader.load_and_set, configuration)

    where = f"service account ({SERVICE_HOST_ENV_NAME}, {SERVICE_PORT_ENV_NAME}, {token_file})"
    await _load_or_raise(load, where)
    return _endpoint(configuration, load, where, environ)


class _ConfiguredCredentials:
    """The token of a Configuration, renewed by its hook and reloaded after a 401."""

    def __init__(
        self, configuration: Configuration, load: Callable[[], Awaitable[None]], where: str
    ) -> None:
        self._configuration = configuration
        self._load = load
        self._where = where
        self._stale = False
        self._renewing = asyncio.Lock()

    async def authorization(self) -> str | None:
        """Return the Authorization header. Raise TransportError if the token cannot be renewed."""
        async with self._renewing:  # one run of a credential plugin serves all waiting requests
            try:
                return await self._current()
            except (*_CONFIG_ERRORS, *_FORMAT_ERRORS) as error:
                raise TransportError(
                    f"{self._where}: no credentials: {_error_line(error)}"
                ) from error

    def refused(self) -> None:
        """Reload everything before the next request."""
        self._stale = True

    async def _current(self) -> str | None:
        if self._stale:
            await self._load()
            self._stale = False
        token = await self._configuration.get_api_key_with_prefix("BearerToken")
        # A token file ends in a newline, which must not be part of a header.
        return token.strip() if token else None


class _BoundedMerger(KubeConfigMerger):
    """Merges kubeconfigs that are within the bounds of YAML files."""

    def load_config(self, path: str) -> None:
        """Add a file. Raise YAMLError or ConfigException for one that is beyond the bounds."""
        content = Path(path).read_bytes()
        if len(content) > _MAX_BYTES:
            raise ConfigException(f"{len(content)} bytes; expected at most {_MAX_BYTES}")
        load_document(content)
        super().load_config(path)


async def _load_kubeconfig(paths: str, context: str | None, configuration: Configuration) -> None:
    await asyncio.to_thread(_require_a_file, paths)
    merger = await asyncio.to_thread(_BoundedMerger, paths)
    loader = KubeConfigLoader(
        config_dict=merger.config,
        active_context=context,
        config_base_path=None,  # certificate paths are relative to the file that names them
        config_persister=merger.save_changes,  # an OIDC refresh token is used up by refreshing
    )
    if not _user_of(loader):
        raise ConfigException("expected the context to name a user (its fields may be empty)")
    await loader.load_and_set(configuration)
    if not configuration.host:
        raise ConfigException("expected the context's cluster to have a server")

    async def renew(configuration: Configuration) -> None:
        if hasattr(loader, "exec_plugin_expiry"):  # otherwise the plugin would run every time
            await loader.load_from_exec_plugin()
            configuration.api_key["BearerToken"] = loader.token

    configuration.refresh_api_key_hook = renew


async def _load_or_raise(load: Callable[[], Awaitable[None]], where: str) -> None:
    try:
        await load()
    except (*_CONFIG_ERRORS, *_FORMAT_ERRORS) as error:
        raise ConnectionConfigError(f"{where}: {_error_line(error)}") from error


def _endpoint(
    configuration: Configuration,
    load: Callable[[], Awaitable[None]],
    where: str,
    environ: Mapping[str, str],
) -> Endpoint:
    url = checked_url(configuration.host or "", where)
    return Endpoint(
        url=url,
        credentials=_ConfiguredCredentials(configuration, load, where),
        tls=_tls(configuration, where) if url.startswith("https:") else None,
        tls_server_name=configuration.tls_server_name,
        proxy=configuration.proxy or proxy_for(url, environ),
    )


def _user_of(loader: KubeConfigLoader) -> str | None:
    current = loader.current_context
    return current["context"].get("user") if current else None


def _blank_configuration() -> Configuration:
    configuration = Configuration()
    configuration.host = ""  # an unset server must not fall back to a default
    return configuration


def _default_kubeconfig(environ: Mapping[str, str]) -> str:
    return environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")


def _require_a_file(paths: str) -> None:
    if not any(Path(path).expanduser().is_file() for path in paths.split(os.pathsep) if path):
        raise ConfigException(
            "no such file; expected a kubeconfig (name it with --kubeconfig or KUBECONFIG, "
            "or give the server with --server)"
        )


def _tls(configuration: Configuration, where: str) -> ssl.SSLContext:
    try:
        context = client_tls(ca_file=configuration.ssl_ca_cert)
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, configuration.key_file)
    except OSError as error:
        raise ConnectionConfigError(f"{where}: certificates: {_error_line(error)}") from error
    if not configuration.verify_ssl:
        skip_verification(context)
    return context


def _error_line(error: Exception) -> str:
    """Return an error's message on one line."""
    line = describe_error(error)
    return f"not a valid kubeconfig: {line}" if isinstance(error, _FORMAT_ERRORS) else line
