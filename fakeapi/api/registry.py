"""The registry: reads and writes of objects by name, each write checked and completed.

A write either changes the store by exactly one event or changes nothing and raises
:class:`StatusError`. An update that changes nothing writes nothing, as upstream.

Sources: k8s.io/apiserver/pkg/registry/generic/registry/store.go; admission plugin
NamespaceLifecycle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fakeapi.api.deleting import (
    DeleteOptions,
    check_delete,
    mark_deleted,
    may_vanish,
    precondition_failed,
)
from fakeapi.api.errors import (
    Cause,
    StatusError,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    not_found,
)
from fakeapi.api.metadata import Sources, check_document, check_name, generated_name
from fakeapi.api.strategy import (
    prepare_create,
    prepare_status_update,
    prepare_update,
    same_json,
)
from fakeapi.kinds import Kind
from fakeapi.kinds.builtin import NAMESPACES
from fakeapi.store import AlreadyExistsError, Document, Entry, Store

Change = Callable[[Document], Document]


@dataclass(frozen=True, slots=True)
class Target:
    """What a path names: a collection (no name), an object, or a subresource of one.

    ``namespace`` is "" for cluster-wide kinds, and for a collection over all namespaces.
    """

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> str:
        """The object's key in the store."""
        return f"{self.namespace}/{self.name}" if self.kind.namespaced else self.name


@dataclass(frozen=True, slots=True)
class Deletion:
    """What became of a delete: the object's last or present state, and whether it is gone."""

    entry: Entry
    gone: bool


class Registry:
    """Objects of one store, with the server's own values taken from ``sources``."""

    def __init__(self, store: Store, sources: Sources) -> None:
        self.store = store
        self._sources = sources

    def get(self, target: Target) -> Entry:
        """Give the newest entry; raises StatusError (404)."""
        entry = self.store.get(target.kind, target.key)
        if entry is None:
            raise not_found(target.kind, target.name)
        return entry

    def create(self, target: Target, document: Document) -> Entry:
        """Create an object in the target's collection; raises StatusError."""
        kind = target.kind
        metadata = check_document(kind, document)
        if metadata.pop("resourceVersion", "").strip("0").isdecimal():
            raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
        _check_namespace(target, metadata)
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = generated_name(metadata["generateName"], self._sources)
        named = replace(target, name=metadata.get("name", ""))
        check_name(kind, named.name)
        self._admit_namespace(named)
        prepare_create(kind, document, self._sources)
        return self._create(named, document)

    def update(self, target: Target, document: Document) -> Entry:
        """Replace an object, or its status if the target says so; raises StatusError.

        The write must be based on the newest version, if it says on which it is based.
        """
        metadata = check_document(target.kind, document)
        if self.store.get(target.kind, target.key) is None and target.kind.create_on_update:
            _check_url_name(target.name, metadata)
            return self.create(target, document)
        return self.change(target, lambda _old: document)

    def change(self, target: Target, change: Change) -> Entry:
        """Write what ``change`` makes of the present document; raises StatusError."""
        entry = self.get(target)
        old = entry.document()
        header = {"kind": target.kind.kind, "apiVersion": target.kind.api_version}
        document = change({**header, **entry.document()})
        self._check_update(target, document, old)
        if target.subresource == "status":
            prepare_status_update(document, old)
        else:
            prepare_update(target.kind, document, old)
        return self._write(target, document, old, entry.version)

    def delete(self, target: Target, options: DeleteOptions) -> Deletion:
        """Delete an object, or mark it to be deleted; raises StatusError."""
        entry = self.get(target)
        document, old = entry.document(), entry.document()
        check_delete(target.kind, target.name, document, options)
        mark_deleted(target.kind, document, options, self._sources)
        if may_vanish(target.kind, document):
            final = self.store.delete(target.kind, target.key, document, entry.version)
            return Deletion(final, gone=True)
        return Deletion(self._write(target, document, old, entry.version), gone=False)

    def put(self, target: Target, document: Document) -> Entry:
        """Store an object as it is given, status, uid and all, in place of any before it.

        ``document`` has passed ``check_document``; a missing uid or creationTimestamp is filled in.
        """
        metadata = document["metadata"]
        metadata["uid"] = metadata.get("uid") or self._sources.uid()
        created = metadata.get("creationTimestamp") or self._sources.timestamp(0)
        metadata["creationTimestamp"] = created
        present = self.store.get(target.kind, target.key)
        if present is None:
            return self._create(target, document)
        return self.store.update(target.kind, target.key, document, present.version)

    def _create(self, target: Target, document: Document) -> Entry:
        try:
            return self.store.create(target.kind, target.key, document)
        except AlreadyExistsError:
            raise already_exists(target.kind, target.name) from None

    def _write(self, target: Target, document: Document, old: Document, base: int) -> Entry:
        header = ("kind", "apiVersion")
        document = {key: value for key, value in document.items() if key not in header}
        document["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        if same_json(document, old):
            return self.get(target)
        if "deletionTimestamp" in document["metadata"] and may_vanish(target.kind, document):
            return self.store.delete(target.kind, target.key, document, base)
        return self.store.update(target.kind, target.key, document, base)

    def _check_update(self, target: Target, document: Document, old: Document) -> None:
        kind, name = target.kind, target.name
        metadata = check_document(kind, document)
        _check_namespace(target, metadata)
        _check_url_name(name, metadata)
        uid = metadata.get("uid") or old["metadata"]["uid"]
        if uid != old["metadata"]["uid"]:
            why = precondition_failed("UID", uid, old["metadata"]["uid"])
            raise conflict(kind, name, why)
        version = metadata.get("resourceVersion", "")
        if version in ("", "0") and not kind.unconditional_update:
            message = "Invalid value: 0x0: must be specified for an update"
            cause = Cause("FieldValueInvalid", message, "metadata.resourceVersion")
            raise invalid(kind.qualified_kind, name, [cause])
        if version not in ("", "0", old["metadata"]["resourceVersion"]):
            raise conflict(kind, name)

    def _admit_namespace(self, target: Target) -> None:
        if not target.kind.namespaced:
            return
        namespace = self.store.get(NAMESPACES, target.namespace)
        if namespace is None:
            raise not_found(NAMESPACES, target.namespace)
        if "deletionTimestamp" in namespace.document()["metadata"]:
            name = target.namespace
            why = f"unable to create new content in namespace {name} because it is being terminated"
            message = f"namespace {name} is being terminated"
            cause = Cause("NamespaceTerminating", message, "metadata.namespace")
            raise forbidden(target.kind, target.name, why, [cause])


def _check_url_name(name: str, metadata: Mapping[str, Any]) -> None:
    given = metadata.get("name")
    if not given:
        raise bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: "
            "name must be provided"
        )
    if given != name:
        raise bad_request(
            f"the name of the object ({given}) does not match the name on the URL ({name})"
        )


def _check_namespace(target: Target, metadata: dict[str, Any]) -> None:
    if not target.kind.namespaced:
        metadata.pop("namespace", None)
    elif not metadata.get("namespace"):
        metadata["namespace"] = target.namespace
    elif metadata["namespace"] != target.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
