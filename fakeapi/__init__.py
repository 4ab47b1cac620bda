"""An API server in one Python process, real enough for kubectl and every Python client.

The store, the table of kinds and the API are pure. A server and a transport without sockets are
thin layers around them. :class:`FakeCluster` starts all of it in one ``async with``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fakeapi.testing.fake_cluster import FakeCluster
    from fakeapi.testing.virtual_cluster import VirtualCluster

__all__ = ["FakeCluster", "VirtualCluster"]


def __getattr__(name: str) -> Any:
    """Import an exported name on first use, since pytest always loads the plugin."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from fakeapi.testing import fake_cluster, virtual_cluster

    return getattr(virtual_cluster if name == "VirtualCluster" else fake_cluster, name)
