"""A registry that does not record who has written which fields."""

from __future__ import annotations

from fakeapi.apiserver.registry.generic_registry import DocumentChange, Registry, Target
from fakeapi.apiserver.store.object_store import Document, Entry


class UnattributedRegistry(Registry):
    """A registry that sets managed fields only when a configuration is applied.

    In a simulation of a trace, the others took a tenth of the processor time.
    """

    __slots__ = ()

    def draft(self, target: Target, document: Document) -> Document:
        """Return a new object in the state before admission; raise StatusError."""
        return Registry.draft(self.with_field_manager(None), target, document)

    def change(self, target: Target, change: DocumentChange) -> Entry:
        """Replace the present document by the result of ``change``; raise StatusError."""
        return Registry.change(self.with_field_manager(None), target, change)
