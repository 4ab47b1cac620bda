"""The dispatcher of admission plugins and webhooks for one request.

    admit       admission plugins, then mutating webhooks one after the other; if one has changed
                the object, admission plugins again, and then those webhooks with
                ``reinvocationPolicy: IfNeeded`` that were called before a later change
    validate    validating webhooks, in parallel, with the object as it would be stored

Sources: k8s.io/apiserver/pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go,
mutating/reinvocationcontext.go, pkg/admission/reinvocation.go, pkg/endpoints/handlers
(fieldmanager/admission.go for the managed fields, create.go for the fields of a new object that
webhooks receive).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Final

from fakeapi.api.errors import StatusError
from fakeapi.api.hooks.asking import Webhooks, refusal_of
from fakeapi.api.hooks.attributes import (
    CREATE,
    DELETE,
    UPDATE,
    Asked,
    Attributes,
    options_document,
)
from fakeapi.api.hooks.conditions import conditions_hold
from fakeapi.api.hooks.configured import Role, Webhook
from fakeapi.api.hooks.forms import Shapes
from fakeapi.api.hooks.matching import Invocation, invocation_of, is_exempt
from fakeapi.api.hooks.patches import patched, read_patch
from fakeapi.api.hooks.reviewing import CallError, Verdict, object_kind
from fakeapi.api.hooks.warning import fitting
from fakeapi.api.managedfields.entries import read_sent_entries
from fakeapi.api.rehearsing import Objects
from fakeapi.api.samejson import same_json
from fakeapi.kinds import Kind
from fakeapi.store import Document

Plugins = Callable[[Document], None]
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


@dataclass(slots=True)
class _Invoked:
    """The webhooks called since the last change (``before``), and those to call ``again``."""

    before: set[Any] = field(default_factory=set)
    again: set[Any] = field(default_factory=set)

    def changed(self) -> None:
        """Record a change of the object: the webhooks called so far must be called again."""
        self.again |= self.before
        self.before.clear()


class Reviewers:
    """Calls the admission plugins and webhooks of one request, and collects their warnings."""

    def __init__(self, webhooks: Webhooks, asked: Asked, objects: Objects, shapes: Shapes) -> None:
        self._warnings: list[str] = []
        self._webhooks = webhooks
        self._asked = asked
        self._objects = objects
        self._shapes = shapes

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of all webhooks, truncated."""
        return fitting(self._warnings)

    def admit(
        self, kind: Kind, document: Document, old: Document | None, plugins: Plugins
    ) -> Document:
        """Return a document after admission plugins and mutating webhooks.

        Raise StatusError, CallsPendingError.
        """
        plugins(document)
        hooks = self._hooks("mutating")
        if not hooks:
            return document
        if old is None:
            for name in _SYSTEM_FIELDS:
                document["metadata"].pop(name, None)
        after = self._mutated(hooks, kind, document, old, plugins)
        if after is not document:
            self._keep_owners(document["metadata"], after["metadata"])
        return after

    def _mutated(
        self,
        hooks: Sequence[Webhook],
        kind: Kind,
        document: Document,
        old: Document | None,
        plugins: Plugins,
    ) -> Document:
        """Call mutating webhooks, and again those to reinvoke; return the resulting document."""
        invoked = _Invoked()
        after = self._round(hooks, kind, document, old, invoked)
        if after is None:
            return document
        before = deepcopy(after) if invoked.before else None
        plugins(after)
        if before is not None and not same_json(after, before):
            invoked.changed()
        if not invoked.again:
            return after
        again = (webhook for webhook in hooks if webhook.place in invoked.again)  # it may grow
        return self._round(again, kind, after, old, invoked) or after

    def _keep_owners(self, before: Document, after: Document) -> None:
        """Restore the managed fields, and warn, if those that webhooks return are invalid."""
        if after.get("managedFields") == before.get("managedFields"):
            return
        try:
            read_sent_entries(after.get("managedFields") or ())
        except ValueError as error:
            self._warnings.append(f"{_UNREADABLE}: {error}")
            after["managedFields"] = before.get("managedFields") or []

    def validate(self, kind: Kind, document: Document, old: Document | None) -> None:
        """Call validating webhooks for a document. Raise StatusError, CallsPendingError."""
        hooks = self._hooks("validating")
        if hooks:
            self._judge(hooks, self._attributes(kind, document, old))

    def pass_through(self, kind: Kind, document: Document, old: Document | None = None) -> Document:
        """Return a document that is not stored after mutating and validating webhooks.

        Raise StatusError, CallsPendingError.
        """
        admitted = self.admit(kind, document, old, _no_plugins)
        self.validate(kind, admitted, old)
        return admitted

    def check_delete(self, kind: Kind, old: Document, options: Document) -> None:
        """Call the webhooks for an object to be deleted. Raise StatusError, CallsPendingError."""
        attributes = Attributes(
            asked=self._asked,
            operation=DELETE,
            kind=kind,
            name=self._asked.name,
            object=None,
            old=old,
            options=options_document(DELETE, options),
            dry_run=bool(options.get("dryRun")),
        )
        for webhook in self._hooks("mutating"):
            self._mutate(webhook, attributes)
        self._judge(self._hooks("validating"), attributes)

    def _hooks(self, role: Role) -> Sequence[Webhook]:
        if is_exempt(self._asked.resource):
            return ()
        return self._webhooks.configured.of(role)

    def _attributes(self, kind: Kind, document: Document, old: Document | None) -> Attributes:
        operation = CREATE if old is None else UPDATE
        name = self._asked.name or document["metadata"].get("name") or ""
        options, dry_run = self._asked.options(operation), self._asked.dry_run
        return Attributes(self._asked, operation, kind, name, document, old, options, dry_run)

    def _round(
        self,
        hooks: Iterable[Webhook],
        kind: Kind,
        document: Document,
        old: Document | None,
        invoked: _Invoked,
    ) -> Document | None:
        """Call mutating webhooks one after the other; return the document if it has changed."""
        attributes = self._attributes(kind, document, old)
        for webhook in hooks:
            after = self._mutate(webhook, attributes, invoked)
            if after is not None:
                attributes = replace(attributes, object=after)
        return attributes.object if attributes.object is not document else None

    def _mutate(
        self, webhook: Webhook, attributes: Attributes, invoked: _Invoked | None = None
    ) -> Document | None:
        """Call one mutating webhook; return the object if it has changed."""
        invocation = self._invocation(webhook, attributes)
        if invocation is None:
            return None
        [outcome] = self._webhooks.ask([(invocation, attributes)], self._shapes)
        self._heed([webhook], [outcome])
        after = None
        if isinstance(outcome, Verdict) and outcome.patch:
            after = self._patched(invocation, attributes, outcome)
        if invoked is not None:
            if after is not None:
                invoked.changed()
            if webhook.reinvoked:
                invoked.before.add(webhook.place)
        return after

    def _invocation(self, webhook: Webhook, attributes: Attributes) -> Invocation | None:
        """Return the invocation of a webhook; None if it does not match. Raise StatusError."""
        found = invocation_of(webhook, attributes, self._objects, self._shapes)
        if found is None or not conditions_hold(found, attributes, self._shapes):
            return None
        return found

    def _patched(
        self, invocation: Invocation, attributes: Attributes, verdict: Verdict
    ) -> Document | None:
        webhook, document = invocation.webhook, attributes.object
        try:
            has_object = document is not None
            patch, patch_type = verdict.patch, verdict.patch_type
            operations = read_patch(webhook.name, patch, patch_type, has_object=has_object)
        except CallError as error:
            self._heed([webhook], [error])
            return None
        if document is None or not operations:
            return None
        form = object_kind(invocation, attributes)
        return patched(self._shapes, attributes.kind, form, document, operations)

    def _judge(self, hooks: Sequence[Webhook], attributes: Attributes) -> None:
        found = [self._invocation(hook, attributes) for hook in hooks]
        invocations = [invocation for invocation in found if invocation is not None]
        asked = [(invocation, attributes) for invocation in invocations]
        outcomes = self._webhooks.ask(asked, self._shapes)
        self._heed([invocation.webhook for invocation in invocations], outcomes)

    def _heed(
        self, hooks: Sequence[Webhook], outcomes: Sequence[Verdict | StatusError | CallError]
    ) -> None:
        """Collect the warnings of responses; raise the error of the first that rejects."""
        for outcome in outcomes:
            if isinstance(outcome, Verdict):
                self._warnings += outcome.warnings
        refusals = map(refusal_of, hooks, outcomes)
        for refusal in refusals:
            if refusal is not None:
                raise refusal


def _no_plugins(_document: Document) -> None:
    """Accept a document unchanged."""
