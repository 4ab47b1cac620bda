"""The registry: reads and writes of objects by name; each write is defaulted and validated.

A write either changes the store by exactly one event, or changes nothing and raises
:class:`StatusError`. An update that changes nothing is not written, as upstream.

A registry over a :class:`DryRunStore` returns the same answers and writes nothing.

Source: k8s.io/apiserver/pkg/registry/generic/registry/store.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from fakeapi.apiserver.admission.builtin_plugins import (
    AdmissionPlugin,
    admit_create,
    admit_update,
    check_limits,
    quota_charges,
)
from fakeapi.apiserver.admission.webhooks import WebhookDispatcher
from fakeapi.apiserver.auth.escalation import WriteAuthorization
from fakeapi.apiserver.defaulting.derived_fields import derive_create_fields, derive_update_fields
from fakeapi.apiserver.defaulting.field_defaults import apply_defaults
from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.builtin import RESOURCE_QUOTAS
from fakeapi.apiserver.managedfields import (
    AppliedConfiguration,
    FieldManager,
    apply,
    conversion_failure,
    track_create,
    track_update,
)
from fakeapi.apiserver.managedfields.update import ignore_managed_fields_timestamps
from fakeapi.apiserver.objects.metadata import (
    IdAndTimeSources,
    check_document,
    check_url_name,
    generated_name,
)
from fakeapi.apiserver.objects.object_names import require_name
from fakeapi.apiserver.registry.deletion import (
    DeletionStep,
    can_be_removed,
    check_delete,
    check_finalizers,
    mark_deleted,
)
from fakeapi.apiserver.registry.strategy import PREPARE_UPDATE, prepare_create, set_name_label
from fakeapi.apiserver.registry.update_checks import check_namespace, check_uid, check_update
from fakeapi.apiserver.schema.crds.custom_resource_strategy import validate_custom_resource
from fakeapi.apiserver.schema.typed_document import read_document
from fakeapi.apiserver.store.dry_run import DryRunStore, ObjectReader
from fakeapi.apiserver.store.object_store import Document, Entry
from fakeapi.apiserver.store.store_errors import AlreadyExistsError, VersionSetError
from fakeapi.apiserver.validation.immutable_fields import immutable_field_changes
from fakeapi.apiserver.validation.object_validation import validate_object, validate_subresource
from fakeapi.apiserver.wire.errors import (
    StatusError,
    already_exists,
    generated_name_conflict,
    not_found,
)
from fakeapi.apiserver.wire.http_messages import User
from fakeapi.apiserver.wire.raw_json import json_equal
from fakeapi.apiserver.wire.request_options import DeleteOptions
from fakeapi.apiserver.wire.struct_decoder import StructDecodeError

if TYPE_CHECKING:
    from fakeapi.apiserver.admission.resource_quota import QuotaCharge

DocumentChange = Callable[[Document], Document]

_NAME_ATTEMPTS: Final = 8


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a path: a collection (no name), an object, or a subresource of one.

    ``namespace`` is "" for cluster-scoped kinds, and for a collection over all namespaces.
    """

    kind: ResourceInfo
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> str:
        """Return the object's key in the store."""
        return f"{self.namespace}/{self.name}" if self.kind.namespaced else self.name


@dataclass(frozen=True, slots=True)
class DeletionResult:
    """The result of a delete: the object's last or present state, and whether it is removed."""

    entry: Entry
    removed: bool


@dataclass(slots=True, eq=False)
class Registry:
    """The objects of one store; ``sources`` returns the values that the server generates.

    ``plugins`` are admission plugins in addition to the built-in ones. Writes have the field
    manager, and must pass the webhooks of the dispatcher; None: there are none. ``authorization``
    checks what the user of a request may write; None: everything. ``user`` is who writes; None: the
    server itself.
    """

    store: ObjectReader
    sources: IdAndTimeSources
    plugins: tuple[AdmissionPlugin, ...] = ()
    field_manager: str | None = None
    dispatcher: WebhookDispatcher | None = None
    authorization: WriteAuthorization | None = None
    user: User | None = None

    def with_user(self, user: User) -> Registry:
        """Return a registry whose writes are those of a user."""
        return replace(self, user=user)

    def with_field_manager(self, manager: str | None) -> Registry:
        """Return a registry whose writes have a field manager; None: no field manager."""
        return replace(self, field_manager=manager)

    def with_webhooks(self, dispatcher: WebhookDispatcher | None) -> Registry:
        """Return a registry whose writes must pass the webhooks of a request."""
        return replace(self, dispatcher=dispatcher)

    def with_authorization(self, authorization: WriteAuthorization | None) -> Registry:
        """Return a registry whose writes must be allowed to the user of a request."""
        return replace(self, authorization=authorization)

    def dry_run(self) -> Registry:
        """Return a registry of the same objects that writes nothing."""
        return replace(self, store=DryRunStore(self.store))

    def get(self, target: Target) -> Entry:
        """Return the newest entry; raise StatusError (404)."""
        entry = self.store.get(target.kind, target.key)
        if entry is None:
            raise not_found(target.kind, target.name)
        return entry

    def create(self, target: Target, document: Document) -> Entry:
        """Create an object in the target's collection; raise StatusError."""
        return self.create_drafted(target, self.draft(target, document))

    def draft(self, target: Target, document: Document) -> Document:
        """Return a new object in the state before admission; raise StatusError.

        The result does not depend on stored objects, only on the arguments, the manager and the
        time.
        """
        kind = target.kind
        metadata = check_document(kind, document)
        check_namespace(target.kind, target.namespace, metadata)
        apply_defaults(kind, document)
        set_name_label(kind, metadata)
        if self.field_manager is not None:
            track_create(kind, document, self._writer(self.field_manager))
        return document

    def create_drafted(self, target: Target, document: Document) -> Entry:
        """Create an object that :meth:`draft` returned; raise StatusError."""
        kind = target.kind
        admitted = self._admitted(target, document, None)
        if admitted is not document:
            check_namespace(kind, target.namespace, check_document(kind, admitted))
        document, metadata = admitted, admitted["metadata"]
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = self._free_name(target, metadata["generateName"])
        require_name(kind, document)
        named = Target(kind, target.namespace, metadata["name"], target.subresource)
        prepare_create(kind, document, self.sources, self.user)
        derive_create_fields(kind, document, self.store)
        if kind.custom is not None:
            validate_custom_resource(kind, kind.custom, document)
        else:
            validate_object(kind, document)
        charges = self._validate(named, document, None)
        entry = self._create(named, document)
        self._charge(charges)
        return entry

    def update(self, target: Target, document: Document) -> Entry:
        """Replace an object, or the subresource of the target; raise StatusError.

        If the document has a resourceVersion, it must be the newest one.
        """
        metadata = check_document(target.kind, document)
        creates = target.kind.create_on_update and not target.subresource
        if creates and self.store.get(target.kind, target.key) is None:
            check_url_name(target.name, metadata)
            check_uid(target.kind, target.namespace, target.name, metadata, "")
            metadata.pop("resourceVersion", None)
            self._check_create()
            return self.create(target, document)
        if metadata.get("uid"):
            check_uid(
                target.kind,
                target.namespace,
                target.name,
                metadata,
                self.get(target).document()["metadata"]["uid"],
            )
        return self.change(target, lambda _old: document)

    def change(self, target: Target, change: DocumentChange) -> Entry:
        """Replace the present document by the result of ``change``; raise StatusError."""
        entry = self.get(target)
        old = entry.document()
        header = {"kind": target.kind.kind, "apiVersion": target.kind.api_version}
        document = change({**header, **entry.document()})
        check_update(target.kind, target.namespace, target.name, document, old)
        for each in (document, old):
            apply_defaults(target.kind, each)
        set_name_label(target.kind, document["metadata"])
        if self.field_manager is not None:
            writer = self._writer(self.field_manager, target.subresource)
            track_update(target.kind, old, document, writer)
        document = self._admitted(target, document, old)
        PREPARE_UPDATE[target.subresource](target.kind, document, old, self.sources)
        check_finalizers(target.kind, document, old)
        if target.kind.custom is not None:
            validate_custom_resource(
                target.kind, target.kind.custom, document, old, target.subresource
            )
        elif not target.subresource:
            derive_update_fields(target.kind, document, old, self.store)
            changes = immutable_field_changes(target.kind, document, old)
            validate_object(target.kind, document, changes)
        else:
            validate_subresource(target.kind, document, old)
        charges = self._validate(target, document, old)
        entry = self._write(target, document, old, entry.version)
        self._charge(charges)
        return entry

    def apply(self, target: Target, config: AppliedConfiguration) -> tuple[Entry, bool]:
        """Apply a configuration for the field manager; raise StatusError.

        Return the object, and whether it was created.
        """
        kind, unattributed = target.kind, self.with_field_manager(None)
        writer = self._writer(self.field_manager or "", target.subresource)
        if not target.subresource and self.store.get(kind, target.key) is None:
            document = apply_configuration(kind, {}, config, writer)
            document["metadata"].pop("resourceVersion", None)
            check_url_name(target.name, document["metadata"])
            self._check_create()
            return unattributed.create(target, document), True
        return unattributed.change(
            target, lambda old: apply_configuration(kind, old, config, writer)
        ), False

    def delete(self, target: Target, options: DeleteOptions) -> DeletionResult:
        """Delete an object, or mark it as being deleted; raise StatusError."""
        kind = self.store.stored(target.kind)
        target = replace(target, kind=kind)
        entry = self.get(target)
        document = entry.document()
        check_delete(kind, target.name, document, options)
        step = mark_deleted(kind, document, options, self.sources)
        if self.dispatcher is not None and step is not DeletionStep.NOTHING:
            self.dispatcher.check_delete(kind, entry.document(), options.document())
        if step.marks and not json_equal(document, entry.document()):
            entry = self.store.update(kind, target.key, document, entry.version)
        if step.ends:
            entry = self.store.delete(kind, target.key, document, entry.version)
        return DeletionResult(entry, removed=step.ends)

    def put(self, target: Target, document: Document) -> Entry:
        """Store an object as it is, status and UID included, and replace an existing one.

        ``document`` has passed ``check_document``. A missing uid or creationTimestamp is set, and
        so are the finalizers that every object of the kind has until it is deleted.
        """
        metadata = document["metadata"]
        if target.kind.first_spec_finalizers and "deletionTimestamp" not in metadata:
            spec = document.setdefault("spec", {})
            spec.setdefault("finalizers", list(target.kind.first_spec_finalizers))
        metadata["uid"] = metadata.get("uid") or self.sources.uid()
        created = metadata.get("creationTimestamp") or self.sources.timestamp(0)
        metadata["creationTimestamp"] = created
        present = self.store.get(target.kind, target.key)
        if present is None:
            return self._create(target, document)
        return self.store.update(target.kind, target.key, document, present.version)

    def _admitted(self, target: Target, document: Document, old: Document | None) -> Document:
        """Return a document after admission, webhooks included."""

        def plugins(document: Document) -> None:
            self._admit(target, document, old)

        admitted = document
        if self.dispatcher is None:
            plugins(document)
        else:
            admitted = self.dispatcher.admit(target.kind, document, old, plugins)
        if old is not None and admitted is not document:
            check_update(target.kind, target.namespace, target.name, admitted, old)
        if self.authorization is not None:
            self.authorization.check_grants(target.kind, admitted, old)
        return admitted

    def _check_create(self) -> None:
        if self.authorization is not None:
            self.authorization.check_create()

    def _admit(self, target: Target, document: Document, old: Document | None) -> None:
        if old is None:
            admit_create(self.store, target.kind, target.namespace, document)
            for admit in self.plugins:
                admit(self.store, target.kind, target.namespace, document, self.sources)
        else:
            plugins, subresource = self.plugins, target.subresource
            admit_update(self.store, target.kind, subresource, document, old, plugins)

    def _validate(
        self, target: Target, document: Document, old: Document | None
    ) -> Sequence[QuotaCharge]:
        """Return what a valid write charges to quotas; raise StatusError."""
        kind, subresource = target.kind, target.subresource
        check_limits(self.store, kind, subresource, document, old)
        if self.dispatcher is not None:
            self.dispatcher.validate(kind, document, old)
        return quota_charges(self.store, kind, subresource, document, old, self.sources)

    def _charge(self, charges: Sequence[QuotaCharge]) -> None:
        """Write the usage of quotas; no other write can come between the check and this."""
        for charge in charges:
            entry = self.get(Target(RESOURCE_QUOTAS, charge.namespace, charge.quota))
            document = charge.applied(entry.document())
            writer = self._writer("kube-apiserver", "status")
            track_update(RESOURCE_QUOTAS, entry.document(), document, writer)
            self.store.update(RESOURCE_QUOTAS, entry.key, document, entry.version)

    def _create(self, target: Target, document: Document) -> Entry:
        try:
            return self.store.create(target.kind, target.key, document)
        except VersionSetError:
            message = "resourceVersion should not be set on objects to be created"
            raise StatusError(500, "", message) from None
        except AlreadyExistsError:
            error = already_exists(target.kind, target.name)
            if "deletionTimestamp" in self.get(target).document()["metadata"]:
                error.message = f"object is being deleted: {error.message}"
            raise error from None

    def _writer(self, manager: str, subresource: str = "") -> FieldManager:
        return FieldManager(manager, self.sources.timestamp(0), subresource)

    def _free_name(self, target: Target, base: str) -> str:
        for _ in range(_NAME_ATTEMPTS):
            name = generated_name(base, self.sources)
            if self.store.get(target.kind, replace(target, name=name).key) is None:
                return name
        raise generated_name_conflict(target.kind, name)

    def _write(self, target: Target, document: Document, old: Document, base: int) -> Entry:
        header = ("kind", "apiVersion")
        document = {key: value for key, value in document.items() if key not in header}
        document["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        if json_equal(ignore_managed_fields_timestamps(document, old), old):
            return self.get(target)
        if "deletionTimestamp" in document["metadata"] and can_be_removed(target.kind, document):
            last = DryRunStore(self.store).update(target.kind, target.key, dict(document), base)
            self.store.delete(target.kind, target.key, document, base)
            return last  # unlike the event, it has the previous version
        return self.store.update(target.kind, target.key, document, base)


def apply_configuration(
    kind: ResourceInfo, live: Document, config: AppliedConfiguration, writer: FieldManager
) -> Document:
    """Return the object after an apply, decoded by its type."""
    document = apply(kind, live, config, writer)
    try:
        read_document(kind, document)
    except StructDecodeError as error:
        raise conversion_failure(kind, config.document, str(error)) from None
    return document
