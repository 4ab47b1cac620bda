"""The controller of CustomResourceDefinitions, and the kinds that they declare.

Definitions are ordinary objects; the store notifies the controller of every write. Upstream's
controllers run asynchronously; here their work is done after each request: names are accepted,
definitions are established, and the instances of a definition that is being deleted are deleted
before the definition itself.

Sources: pkg/controller/{status,establish,finalizer} of k8s.io/apiextensions-apiserver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from fakeapi.apiserver.kinds import ResourceInfo, ResourceRegistry
from fakeapi.apiserver.kinds.builtin import CUSTOM_RESOURCE_DEFINITIONS
from fakeapi.apiserver.objects.conditions import find_condition, set_condition
from fakeapi.apiserver.registry.generic_registry import Registry, Target
from fakeapi.apiserver.schema.crds.custom_kinds import (
    CustomResourceKinds,
    kinds_of_definition,
    with_custom_kinds,
)
from fakeapi.apiserver.schema.crds.definition_status import (
    DELETION_BEGUN,
    DELETION_DONE,
    ESTABLISHED,
    TERMINATING,
    accept_names,
    condition,
    establish,
    holds,
)
from fakeapi.apiserver.store.object_store import Document, Entry, Store
from fakeapi.apiserver.wire.request_options import DeleteOptions

MANAGER: Final = "kube-apiserver"

StatusUpdate = Callable[[Document], bool]


class DefinitionController:
    """Reconciles the definitions in a store; ``builtin`` are the kinds without any definition."""

    def __init__(self, store: Store, builtin: ResourceRegistry) -> None:
        self._store = store
        self._builtin = builtin
        self._kinds = builtin
        self._cached: dict[str, tuple[Entry, CustomResourceKinds | None]] = {}
        self._is_stale = self._needs_reconcile = True
        self._is_deleting_instances = False
        store.listen(CUSTOM_RESOURCE_DEFINITIONS, self._mark_stale)

    @property
    def kinds(self) -> ResourceRegistry:
        """All served kinds; the same object until the kinds change."""
        self._refresh()
        return self._kinds

    def stored(self, kind: ResourceInfo) -> ResourceInfo:
        """Return the kind in which objects of a kind are stored."""
        if kind.custom is None:
            return kind
        self._refresh()
        resource = self._cached.get(kind.custom.definition, (None, None))[1]
        return kind if resource is None else resource.stored

    def reconcile(self, registry: Registry, timestamp: Callable[[int], str]) -> None:
        """Reconcile all definitions until none of them can change any further."""
        if not (self._needs_reconcile or self._is_deleting_instances):
            return
        registry = registry.with_field_manager(MANAGER)
        while self._needs_reconcile or self._is_deleting_instances:
            self._needs_reconcile = self._is_deleting_instances = False
            for entry in self._store.entries(CUSTOM_RESOURCE_DEFINITIONS):
                self._reconcile_definition(registry, entry, timestamp(0))
            if not self._needs_reconcile:
                break

    def _mark_stale(self) -> None:
        self._is_stale = self._needs_reconcile = True

    def _refresh(self) -> None:
        if not self._is_stale:
            return
        self._is_stale = False
        entries = self._store.entries(CUSTOM_RESOURCE_DEFINITIONS)
        cached = self._cached
        self._cached = {
            entry.key: cached[entry.key]
            if entry.key in cached and cached[entry.key][0] is entry
            else (entry, kinds_of_definition(entry.document()))
            for entry in entries
        }
        resources = [resource for _, resource in self._cached.values() if resource is not None]
        kinds = with_custom_kinds(self._builtin, resources)
        if kinds.all != self._kinds.all:
            self._kinds = kinds

    def _reconcile_definition(self, registry: Registry, entry: Entry, now: str) -> None:
        definition = entry.document()
        if "deletionTimestamp" in definition["metadata"]:
            self._finalize(registry, entry.key, definition, now)
            return
        group = definition["spec"]["group"]
        _update_status(registry, entry.key, lambda d: accept_names(d, self._in_group(group), now))
        _update_status(registry, entry.key, lambda d: establish(d, now))

    def _in_group(self, group: str) -> Iterable[Document]:
        entries = self._store.entries(CUSTOM_RESOURCE_DEFINITIONS)
        documents = [entry.document() for entry in entries]
        return [document for document in documents if document["spec"]["group"] == group]

    def _finalize(self, registry: Registry, name: str, definition: Document, now: str) -> None:
        """Delete the instances of a definition; when there are none, remove its finalizer."""
        finalizer = CUSTOM_RESOURCE_DEFINITIONS.deletion_finalizer
        if finalizer not in (definition["metadata"].get("finalizers") or ()):
            return
        self._refresh()
        resource = self._cached[name][1]
        if resource is None or not holds(definition, ESTABLISHED):
            never = condition(
                TERMINATING,
                holds=False,
                reason="NeverEstablished",
                message="resource was never established",
            )
            _update_status(registry, name, lambda d: _remove_finalizer(d, never, finalizer, now))
            return
        _update_status(registry, name, lambda d: _mark_terminating(d, now))
        stored = self._cached[name][1]
        self._delete_instances(registry, resource.stored if stored is None else stored.stored)
        if self._store.entries(resource.stored):
            self._is_deleting_instances = True
        else:
            _update_status(
                registry, name, lambda d: _remove_finalizer(d, DELETION_DONE, finalizer, now)
            )

    def _delete_instances(self, registry: Registry, kind: ResourceInfo) -> None:
        for entry in list(self._store.entries(kind)):
            if b'"deletionTimestamp"' not in entry.raw:
                namespace, _, name = entry.key.rpartition("/")
                registry.delete(Target(kind, namespace, name), DeleteOptions())


def _update_status(registry: Registry, name: str, step: StatusUpdate) -> None:
    """Apply a step to a definition's status, and write the status if the step changes it."""
    target = Target(CUSTOM_RESOURCE_DEFINITIONS, "", name, "status")
    if step(registry.get(target).document()):

        def change(document: Document) -> Document:
            step(document)
            return document

        registry.change(target, change)


def _mark_terminating(definition: Document, now: str) -> bool:
    before = find_condition(definition["status"], TERMINATING)
    if before.get("reason") == DELETION_BEGUN["reason"]:
        return False
    set_condition(definition["status"], DELETION_BEGUN, now)
    return True


def _remove_finalizer(
    definition: Document, updated: dict[str, str], finalizer: str, now: str
) -> bool:
    set_condition(definition["status"], updated, now)
    metadata = definition["metadata"]
    left = [each for each in metadata.get("finalizers") or () if each != finalizer]
    metadata.pop("finalizers", None)
    metadata |= {"finalizers": left} if left else {}
    return True
