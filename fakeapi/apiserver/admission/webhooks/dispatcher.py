"""The dispatcher of admission plugins, policies and webhooks for one request, and its warnings.

    admit       admission plugins, then mutating policies and webhooks one after the other; if one
                has changed the object, admission plugins again, and then those policies and
                webhooks with ``reinvocationPolicy: IfNeeded`` that were called before a later
                change
    validate    validating policies, then validating webhooks, in parallel, with the object as it
                would be stored

Warnings have no duplicates, and are truncated if they are too long together.

Sources: k8s.io/apiserver/pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go,
pkg/admission/reinvocation.go, pkg/endpoints/handlers
(fieldmanager/admission.go for the managed fields, create.go for the fields of a new object that
webhooks receive), pkg/endpoints/filters/warning.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Final, Protocol

from fakeapi.apiserver.admission.webhooks.admission_review import (
    CallError,
    ReviewResponse,
    object_kind,
)
from fakeapi.apiserver.admission.webhooks.attributes import (
    CREATE,
    DELETE,
    UPDATE,
    AdmissionAttributes,
    RequestedOperation,
    VersionedObjects,
    options_document,
)
from fakeapi.apiserver.admission.webhooks.configured_webhooks import Role, Webhook
from fakeapi.apiserver.admission.webhooks.invocation import Webhooks, request_error
from fakeapi.apiserver.admission.webhooks.object_patches import apply_webhook_patch, decode_patch
from fakeapi.apiserver.admission.webhooks.reinvocation import ReinvocationContext
from fakeapi.apiserver.admission.webhooks.rule_matcher import (
    WebhookInvocation,
    invocation_of,
    is_exempt,
)
from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.managedfields.entries import read_client_entries
from fakeapi.apiserver.store.dry_run import ObjectReader
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import StatusError
from fakeapi.apiserver.wire.raw_json import json_equal

TRUNCATE_AT_TOTAL: Final = 4_096
"""The maximum number of characters of all warnings before each is truncated."""

TRUNCATED_LENGTH: Final = 256


def truncate_warnings(warnings: Iterable[str]) -> tuple[str, ...]:
    """Return warnings without duplicates; if they are too long, each truncated, while they fit."""
    once = tuple(dict.fromkeys(warnings))
    return once if sum(map(len, once)) <= TRUNCATE_AT_TOTAL else tuple(_truncated(once))


def _truncated(warnings: Iterable[str]) -> Iterator[str]:
    length = 0
    for warning in warnings:
        short = warning[:TRUNCATED_LENGTH]
        length += len(short)
        if length > TRUNCATE_AT_TOTAL:
            return
        yield short


AdmissionPlugins = Callable[[Document], None]
"""The admission plugins: a function that mutates a document in place, or rejects it."""

_UNREADABLE: Final = (
    ".metadata.managedFields was in an invalid state after admission; this could be caused by an "
    "outdated mutating admission controller; please fix your requests"
)
_SYSTEM_FIELDS: Final = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)


class AdmissionExpressions(Protocol):
    """The expressions of a request: admission policies, and match conditions of webhooks."""

    @property
    def may_mutate(self) -> bool:
        """Whether there are mutating policies to evaluate."""
        ...

    @property
    def may_deny(self) -> bool:
        """Whether there are validating policies to evaluate."""
        ...

    def mutate(
        self, attributes: AdmissionAttributes, invoked: ReinvocationContext
    ) -> AdmissionAttributes:
        """Return the attributes after the mutating policies. Raise StatusError."""
        ...

    def validate(self, attributes: AdmissionAttributes, warn: Callable[[str], None]) -> None:
        """Evaluate the validating policies, and pass on warnings. Raise StatusError."""
        ...

    def conditions_hold(
        self, invocation: WebhookInvocation, attributes: AdmissionAttributes
    ) -> bool:
        """Return whether the match conditions of a webhook are true. Raise StatusError."""
        ...


class WebhookDispatcher:
    """Calls the admission plugins, policies and webhooks of a request, and collects warnings."""

    def __init__(
        self,
        webhooks: Webhooks,
        requested: RequestedOperation,
        objects: ObjectReader,
        versioned_objects: VersionedObjects,
        expressions: AdmissionExpressions,
    ) -> None:
        self._expressions = expressions
        self._warnings: list[str] = []
        self._webhooks = webhooks
        self._requested = requested
        self._objects = objects
        self._versioned_objects = versioned_objects

    @property
    def calls_webhooks(self) -> bool:
        """Whether webhooks are configured, so that the request may be suspended."""
        return self._webhooks.any

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of all webhooks, truncated."""
        return truncate_warnings(self._warnings)

    def admit(
        self,
        kind: ResourceInfo,
        document: Document,
        old: Document | None,
        plugins: AdmissionPlugins,
    ) -> Document:
        """Return a document after admission plugins and mutating webhooks.

        Raise StatusError, CallsPendingError.
        """
        plugins(document)
        hooks = self._webhooks_of("mutating")
        if not hooks and not self._expressions.may_mutate:
            return document
        if old is None:
            for name in _SYSTEM_FIELDS:
                document["metadata"].pop(name, None)
        after = self._mutated(hooks, kind, document, old, plugins)
        if after is not document:
            self._restore_managed_fields(document["metadata"], after["metadata"])
        return after

    def _mutated(
        self,
        hooks: Sequence[Webhook],
        kind: ResourceInfo,
        document: Document,
        old: Document | None,
        plugins: AdmissionPlugins,
    ) -> Document:
        """Call policies and webhooks, and again those to reinvoke; return the document."""
        invoked = ReinvocationContext()
        after = self._call_mutating(hooks, kind, document, old, invoked)
        if after is None:
            return document
        before = deepcopy(after) if invoked.before else None
        plugins(after)
        if before is not None and not json_equal(after, before):
            invoked.require_reinvocation()
        if not invoked.again:
            return after
        invoked.is_reinvocation = True
        return self._call_mutating(hooks, kind, after, old, invoked) or after

    def _restore_managed_fields(self, before: Document, after: Document) -> None:
        """Restore the managed fields, and warn, if those that webhooks return are invalid."""
        if after.get("managedFields") == before.get("managedFields"):
            return
        try:
            read_client_entries(after.get("managedFields") or ())
        except ValueError as error:
            self._warnings.append(f"{_UNREADABLE}: {error}")
            after["managedFields"] = before.get("managedFields") or []

    def validate(self, kind: ResourceInfo, document: Document, old: Document | None) -> None:
        """Call policies and validating webhooks. Raise StatusError, CallsPendingError."""
        hooks = self._webhooks_of("validating")
        if hooks or self._expressions.may_deny:
            self._validate(hooks, self._attributes(kind, document, old))

    def _validate(self, hooks: Sequence[Webhook], attributes: AdmissionAttributes) -> None:
        if self._expressions.may_deny:
            self._expressions.validate(attributes, self._warnings.append)
        if hooks:
            self._call_validating(hooks, attributes)

    def admit_and_validate(
        self, kind: ResourceInfo, document: Document, old: Document | None = None
    ) -> Document:
        """Return a document that is not stored after mutating and validating webhooks.

        Raise StatusError, CallsPendingError.
        """
        admitted = self.admit(kind, document, old, _no_plugins)
        self.validate(kind, admitted, old)
        return admitted

    def check_delete(self, kind: ResourceInfo, old: Document, options: Document) -> None:
        """Call policies and webhooks for a deletion. Raise StatusError, CallsPendingError."""
        attributes = AdmissionAttributes(
            requested=self._requested,
            operation=DELETE,
            kind=kind,
            name=self._requested.name,
            object=None,
            old=old,
            options=options_document(DELETE, options),
            dry_run=bool(options.get("dryRun")),
        )
        for webhook in self._webhooks_of("mutating"):
            self._call_mutating_webhook(webhook, attributes)
        self._validate(self._webhooks_of("validating"), attributes)

    def _webhooks_of(self, role: Role) -> Sequence[Webhook]:
        if is_exempt(self._requested.resource):
            return ()
        return self._webhooks.configured.of(role)

    def _attributes(
        self, kind: ResourceInfo, document: Document, old: Document | None
    ) -> AdmissionAttributes:
        operation = CREATE if old is None else UPDATE
        name = self._requested.name or document["metadata"].get("name") or ""
        options, dry_run = self._requested.options(operation), self._requested.dry_run
        return AdmissionAttributes(
            self._requested, operation, kind, name, document, old, options, dry_run
        )

    def _call_mutating(
        self,
        hooks: Sequence[Webhook],
        kind: ResourceInfo,
        document: Document,
        old: Document | None,
        invoked: ReinvocationContext,
    ) -> Document | None:
        """Call policies and webhooks one after the other; return the document if it has changed."""
        attributes = self._attributes(kind, document, old)
        if self._expressions.may_mutate:
            attributes = self._expressions.mutate(attributes, invoked)
        for webhook in hooks:
            if not invoked.has_to_call(webhook.key):
                continue
            after = self._call_mutating_webhook(webhook, attributes, invoked)
            if after is not None:
                attributes = replace(attributes, object=after)
        return attributes.object if attributes.object is not document else None

    def _call_mutating_webhook(
        self,
        webhook: Webhook,
        attributes: AdmissionAttributes,
        invoked: ReinvocationContext | None = None,
    ) -> Document | None:
        """Call one mutating webhook; return the object if it has changed."""
        invocation = self._invocation(webhook, attributes)
        if invocation is None:
            return None
        [outcome] = self._webhooks.call_all([(invocation, attributes)], self._versioned_objects)
        self._collect_outcomes([webhook], [outcome])
        after = None
        if isinstance(outcome, ReviewResponse) and outcome.patch:
            after = self._patched(invocation, attributes, outcome)
        if invoked is not None:
            if after is not None:
                invoked.require_reinvocation()
            if webhook.reinvoked:
                invoked.before.add(webhook.key)
        return after

    def _invocation(
        self, webhook: Webhook, attributes: AdmissionAttributes
    ) -> WebhookInvocation | None:
        """Return the invocation of a webhook; None if it does not match. Raise StatusError."""
        found = invocation_of(webhook, attributes, self._objects, self._versioned_objects)
        holds = found is not None and self._expressions.conditions_hold(found, attributes)
        return found if holds else None

    def _patched(
        self,
        invocation: WebhookInvocation,
        attributes: AdmissionAttributes,
        response: ReviewResponse,
    ) -> Document | None:
        webhook, document = invocation.webhook, attributes.object
        try:
            has_object = document is not None
            patch, patch_type = response.patch, response.patch_type
            operations = decode_patch(webhook.name, patch, patch_type, has_object=has_object)
        except CallError as error:
            self._collect_outcomes([webhook], [error])
            return None
        if document is None or not operations:
            return None
        form = object_kind(invocation.resource, attributes)
        return apply_webhook_patch(
            self._versioned_objects, attributes.kind, form, document, operations
        )

    def _call_validating(self, hooks: Sequence[Webhook], attributes: AdmissionAttributes) -> None:
        found = [self._invocation(webhook, attributes) for webhook in hooks]
        invocations = [invocation for invocation in found if invocation is not None]
        pairs = [(invocation, attributes) for invocation in invocations]
        outcomes = self._webhooks.call_all(pairs, self._versioned_objects)
        self._collect_outcomes([invocation.webhook for invocation in invocations], outcomes)

    def _collect_outcomes(
        self, hooks: Sequence[Webhook], outcomes: Sequence[ReviewResponse | StatusError | CallError]
    ) -> None:
        """Collect the warnings of responses; raise the error of the first that rejects."""
        for outcome in outcomes:
            if isinstance(outcome, ReviewResponse):
                self._warnings += outcome.warnings
        rejections = map(request_error, hooks, outcomes)
        for rejection in rejections:
            if rejection is not None:
                raise rejection


def _no_plugins(_document: Document) -> None:
    """Accept a document unchanged."""
