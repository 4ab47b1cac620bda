"""An API server in one Python process, real enough for kubectl and every Python client.

The store, the kinds and the API are pure; a server and a transport without sockets are thin shells
around them, and :class:`FakeCluster` is the whole in one ``async with``.
"""

from __future__ import annotations

from fakeapi.harness import FakeCluster

__all__ = ["FakeCluster"]
