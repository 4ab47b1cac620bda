"""The endpoint of a URL, and the proxy that the environment names for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from extender.kube.rest.api_errors import ConnectionConfigError
from extender.kube.rest.http_transport import Endpoint


def server_endpoint(url: str, environ: Mapping[str, str] = os.environ) -> Endpoint:
    """Return a server without credentials, e.g. `http://127.0.0.1:8001`.

    Raise ConnectionConfigError.
    """
    checked = checked_url(url, "--server")
    return Endpoint(checked, proxy=proxy_for(checked, environ))


def checked_url(url: str, where: str) -> str:
    """Return a URL without a final slash. Raise ConnectionConfigError if it is none of HTTP."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that are no IPv6 address, or a port that is no number
        is_valid = False
    if not is_valid:
        raise ConnectionConfigError(f"{where}: server {url!r}: expected http(s)://HOST[:PORT]")
    return url.rstrip("/")


def proxy_for(url: str, environ: Mapping[str, str]) -> str | None:
    """Return the URL of the proxy for requests to `url`, or None to connect directly.

    It is HTTPS_PROXY or HTTP_PROXY by the URL's scheme, in upper or lower case. There is none for
    `localhost`, for loopback addresses, and for the entries of NO_PROXY, separated by commas: `*`,
    an address, a network (`10.0.0.0/8`), or a domain (`example.com`, `.example.com`), with its
    subdomains.
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    proxy = _either_case(environ, f"{parts.scheme}_proxy")
    exceptions = _either_case(environ, "no_proxy").lower().split(",")
    direct = _is_local(host) or any(_covers(entry.strip(), host) for entry in exceptions)
    return None if direct else proxy or None


def _either_case(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name.upper()) or environ.get(name) or ""


def _is_local(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _covers(entry: str, host: str) -> bool:
    address = _address(host)
    if address is not None:
        return entry == "*" or _contains(entry, address)
    domain = entry.removeprefix(".")
    return entry == "*" or (domain != "" and f".{host}".endswith(f".{domain}"))


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _contains(entry: str, address: IPv4Address | IPv6Address) -> bool:
    try:
        return address in ip_network(entry, strict=False)
    except ValueError:  # an exception that names a domain
        return False
