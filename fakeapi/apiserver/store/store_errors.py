"""The errors of the object store: writes and reads that its current state does not allow."""

from __future__ import annotations


class StoreError(Exception):
    """The current state does not allow a write or a read."""


class AlreadyExistsError(StoreError):
    """The key of a create is in use."""


class VersionSetError(StoreError):
    """A document to be created has a version already."""


class ConflictError(StoreError):
    """A write is based on a version that is not the newest."""


class NotFoundError(StoreError):
    """There is no object with the key."""


class ExpiredError(StoreError):
    """A version is older than the history; ``floor`` is the oldest that can be replayed."""

    def __init__(self, version: int, floor: int) -> None:
        super().__init__(f"too old resource version: {version} ({floor})")
        self.version = version
        self.floor = floor


class HistoryOverflowError(ExpiredError):
    """The events after a version were discarded because the resource has had too many since."""
