"""Validation of a configuration before it is served: fields together, and the files they name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from extender.config import (
    Config,
    ConfigError,
    ReadConfig,
    Tracing,
    filter_faults,
    find_policy,
    read_config,
)
from extender.front.certificates import CertificateError, identity
from extender.kube.clock import Clock
from policies.upstream import UnknownReleaseError, release

_PREFIX: Final = re.compile(r"/?[\w.~-]+(/[\w.~-]+)*/?", re.ASCII)


def served_config(path: Path | None, given: Mapping[str, Any], clock: Clock) -> Config:
    """Return the configuration from ``path``, overridden by ``overrides``, the fields set by flags.

    Raise ConfigError with all errors. Certificates are validated at the clock's time.
    """
    read = ReadConfig(Config()) if path is None else read_config(path)
    config = msgspec.structs.replace(read.value, **given)

    def place(field: str) -> str:
        if field.partition(".")[0] in given:
            return f"--{field}"
        return field if path is None else f"{path}: {field}"

    faults = (*read.faults, *served_faults(config, clock.now_ns() / 1e9, place))
    if "tls" not in read.lost:
        faults = (*faults, *plain_faults(config, place))
    if faults:
        raise ConfigError(*faults)
    return config


def served_faults(config: Config, now: float, place: Callable[[str], str]) -> Iterator[str]:
    """Yield one line for each error that keeps a configuration from being served.

    ``locate`` returns a field with its source, a file or a flag. ``now`` is in epoch seconds.
    """
    yield from (place(fault) for fault in (*_host_faults(config.host), *filter_faults(config)))
    try:
        release(config.upstream)
    except UnknownReleaseError as error:
        yield f"{place('upstream')}: {error}"
    try:
        find_policy(config.policy)
    except ConfigError as error:
        yield from (f"{place('policy')}: {fault}" for fault in error.faults)
    yield from (place(fault) for fault in _prefix_faults(config.path_prefixes))
    yield from _certificate_faults(config, now, place)
    yield from (place(fault) for fault in _tracing_faults(config.tracing))


def _host_faults(host: str) -> Iterator[str]:
    if not _is_host(host):
        yield f"host: {host!r} names no host; expected an address or a name"


def _is_host(host: str) -> bool:
    try:
        return b"\0" not in host.encode("idna")
    except UnicodeError:  # a label is empty, too long, or has invalid characters
        return False


def plain_faults(config: Config, place: Callable[[str], str]) -> Iterator[str]:
    """Yield an error if plain HTTP is served beyond loopback without ``allowPlainHTTP``."""
    if config.tls is None and not config.allow_plain_http and not is_loopback(config.host):
        yield (
            f"{place('host')}: {config.host} is no loopback address, and there is no tls; expected "
            "tls, a loopback address, or allowPlainHTTP: true"
        )


def is_loopback(host: str) -> bool:
    """Return whether a host is a loopback address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _prefix_faults(prefixes: Iterable[str]) -> Iterator[str]:
    served: set[str] = set()
    for index, prefix in enumerate(prefixes):
        place, path = f"pathPrefixes[{index}]", prefix.strip("/")
        if not _PREFIX.fullmatch(prefix):
            yield f"{place}: {prefix!r}; expected a path such as /scheduler, of plain characters"
        elif path in served:
            yield f"{place}: {prefix!r} is served already; expected each only once"
        served.add(path)


def _tracing_faults(tracing: Tracing | None) -> Iterator[str]:
    if tracing is None:
        return
    if not _is_collector(tracing.endpoint):
        yield (
            "tracing.endpoint: expected a URL such as http://127.0.0.1:4318/v1/traces, without a "
            "user or password"
        )
    try:
        import extender.telemetry  # noqa: F401 - loaded only if tracing is configured
    except ImportError:
        yield (
            "tracing: needs OpenTelemetry, which is not installed; expected "
            "pip install 'reprieve[otel]', or no tracing"
        )


def _is_collector(url: str) -> bool:
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        return False
    return bool(known) and "@" not in parts.netloc


def _certificate_faults(config: Config, now: float, place: Callable[[str], str]) -> Iterator[str]:
    tls = config.tls
    if tls is None:
        return
    if tls.allowed_client_names and not tls.client_ca:
        yield f"{place('tls.allowedClientNames')}: nobody can be told by name without tls.clientCA"
    try:
        identity(tls, now)
    except CertificateError as error:
        yield place(str(error))
