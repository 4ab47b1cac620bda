"""An API server in one Python process, real enough for kubectl and every Python client.

The store, the kinds and the API are pure; a server and a transport without sockets are thin shells
around them, and :class:`FakeCluster` is the whole in one ``async with``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fakeapi.harness import FakeCluster, VirtualCluster

__all__ = ["FakeCluster", "VirtualCluster"]


def __getattr__(name: str) -> Any:
    """Import what this package offers when it is asked for: the pytest plugin is loaded always."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from fakeapi import harness

    return getattr(harness, name)
