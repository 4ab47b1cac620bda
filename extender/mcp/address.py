"""Where the tools are served over HTTP."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Address:
    """The address to listen on, the token of clients, and the names by which they reach it."""

    host: str
    port: int
    token: str
    names: tuple[str, ...] = ()
