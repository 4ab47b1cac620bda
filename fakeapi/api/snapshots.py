"""Snapshots: saved worlds by name, to restore or to fork.

A snapshot is a fork of the store (:mod:`fakeapi.apiserver.store.object_store`), so saving costs
next to nothing, and a snapshot holds only what has changed since.
"""

from __future__ import annotations

from fakeapi.api.dispatch import Api
from fakeapi.api.errors import StatusError
from fakeapi.store import Store


class Snapshots:
    """The snapshots of one API's store."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._saved: dict[str, Store] = {}
        self._unnamed = 0

    def save(self, name: str = "") -> str:
        """Save the present state under ``name`` (or a new one), and return the name.

        An existing snapshot of that name is replaced.
        """
        if not name:
            self._unnamed += 1
            name = f"snapshot-{self._unnamed}"
        self._saved[name] = self._api.store.fork()
        return name

    def restore(self, name: str) -> None:
        """Restore the objects of a snapshot; raise StatusError (404)."""
        self._api.store.restore(self._find(name))

    def fork(self, name: str = "") -> Store:
        """Return a store that continues from a snapshot, or from now; raise StatusError (404)."""
        return self._find(name).fork() if name else self._api.store.fork()

    def _find(self, name: str) -> Store:
        saved = self._saved.get(name)
        if saved is None:
            known = ", ".join(self._saved) or "none"
            raise StatusError(404, "NotFound", f"no snapshot {name!r}; there are: {known}")
        return saved
