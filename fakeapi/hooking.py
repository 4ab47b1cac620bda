"""The webhooks of ``reprieve controllers``: what was asked for on the command line, and served."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from extender.config import ConfigError
from fakeapi.access import MissingExtraError
from fakeapi.api.podspecs import pod_spec_faults
from fakeapi.controllers.spreading.reception import Reception
from fakeapi.hookserver import (
    CertificateError,
    HookServer,
    Identity,
    made_identity,
    read_identity,
)


@dataclass(frozen=True, slots=True)
class HookPlace:
    """Where webhooks are to listen, how API servers reach them, and whence the certificate comes.

    A ``url`` of "" is the place itself; without ``certificates`` they are made.
    """

    host: str
    port: int
    url: str = ""
    certificates: Path | None = None


@dataclass(frozen=True, slots=True)
class Hooked:
    """Webhooks that are served: at which address, and how they come to answer."""

    address: str
    reception: Reception


def read_place(host: str, port: int | None, url: str, directory: Path | None) -> HookPlace | None:
    """Read the options; None if no webhooks are asked for. Raises ConfigError."""
    if port is None:
        if url or directory is not None:
            raise ConfigError("--webhook-url and --webhook-certs need --webhook-port")
        return None
    if url and not url.startswith("https://"):
        raise ConfigError(f"--webhook-url: {url!r}; expected https://HOST[:PORT]")
    return HookPlace(host, port, url, directory)


@asynccontextmanager
async def hooked(place: HookPlace) -> AsyncIterator[Hooked]:
    """Serve webhooks while the block runs. Raises ConfigError."""
    try:
        server = HookServer(_identity(place), place.url)
        address = await server.start(place.host, place.port)
    except CertificateError as error:
        raise ConfigError(f"--webhook-certs: {error}") from None
    except MissingExtraError as error:
        raise ConfigError(f"--webhook-port: {error}") from None
    except OSError as error:
        raise ConfigError(f"--webhook-port: {place.port}: {error.strerror or error}") from None
    try:
        yield Hooked(address, server.reception(pod_spec_faults))
    finally:
        await server.stop()


def _identity(place: HookPlace) -> Identity:
    if place.certificates is None:
        return made_identity(place.host, place.url)
    return read_identity(place.certificates)
