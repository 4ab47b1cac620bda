"""The webhooks that match a request.

    rules                operation, group, version, resource/subresource, scope; * is any
    namespaceSelector    labels of the namespace; a Namespace is matched by its own labels; requests
                         for cluster-scoped resources always match
    objectSelector       labels of the new object or of the old one
    matchPolicy          Equivalent: rules may also match another version of the same objects

No webhook is called for webhook configurations and admission policies, since a broken one could
then not be repaired.

Sources: k8s.io/apiserver/pkg/admission/plugin/webhook/{generic/webhook.go, predicates}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fakeapi.apiserver.admission.webhooks.attributes import (
    DELETE,
    AdmissionAttributes,
    VersionedObjects,
    is_namespace,
)
from fakeapi.apiserver.admission.webhooks.configured_webhooks import Webhook, WebhookRule
from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.builtin import NAMESPACES
from fakeapi.apiserver.store.dry_run import ObjectReader
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import internal_error, not_found
from policies.kubernetes.selectors import LabelSelector, SelectorError

_EXEMPT: Final = frozenset(
    (
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    )
)


@dataclass(frozen=True, slots=True)
class WebhookInvocation:
    """A webhook to call, and the version of the resource that its rules match."""

    webhook: Webhook
    resource: ResourceInfo


def is_exempt(resource: ResourceInfo) -> bool:
    """Return whether a resource is exempt from webhooks."""
    return resource.group == "admissionregistration.k8s.io" and resource.plural in _EXEMPT


def invocation_of(
    webhook: Webhook,
    attributes: AdmissionAttributes,
    objects: ObjectReader,
    versioned_objects: VersionedObjects,
) -> WebhookInvocation | None:
    """Return the invocation of a webhook, None if it does not match; StatusError (404, 500)."""
    if not matches_object(webhook.objects, attributes):
        return None
    resource = matched_resource(
        webhook.rules, attributes, versioned_objects, equivalent=webhook.equivalent
    )
    if resource is None or not matches_namespace(webhook.namespaces, attributes, objects):
        return None
    if isinstance(webhook.objects, SelectorError):
        raise internal_error(str(webhook.objects))
    return WebhookInvocation(webhook, resource)


def matched_resource(
    rules: Sequence[WebhookRule],
    attributes: AdmissionAttributes,
    versioned_objects: VersionedObjects,
    *,
    equivalent: bool,
) -> ResourceInfo | None:
    """Return the resource that rules match, in its version; None if they match none."""
    resource = attributes.requested.resource
    if any(_matches_rule(rule, attributes, resource) for rule in rules):
        return resource
    if not equivalent:
        return None
    forms = versioned_objects.equivalent_kinds(resource)
    return next((f for rule in rules for f in forms if _matches_rule(rule, attributes, f)), None)


def _matches_rule(
    rule: WebhookRule, attributes: AdmissionAttributes, resource: ResourceInfo
) -> bool:
    return (
        _names(rule.operations, attributes.operation)
        and names_resource(rule, resource, attributes.requested.subresource)
        and _in_scope(rule.scope, attributes, resource)
        and (not rule.names or attributes.name in rule.names)
    )


def names_resource(rule: WebhookRule, resource: ResourceInfo, subresource: str) -> bool:
    """Return whether a rule names a resource, whatever the operation, the scope and the name."""
    return (
        _names(rule.groups, resource.group)
        and _names(rule.versions, resource.version)
        and any(_is_named(text, resource, subresource) for text in rule.resources)
    )


def _names(items: tuple[str, ...], name: str) -> bool:
    return name in items or "*" in items


def _is_named(text: str, resource: ResourceInfo, subresource: str) -> bool:
    plural, _, below = text.partition("/")
    return plural in ("*", resource.plural) and below in ("*", subresource)


def _in_scope(scope: str, attributes: AdmissionAttributes, resource: ResourceInfo) -> bool:
    namespaced = bool(attributes.namespace) and not is_namespace(resource)
    return scope == "*" or namespaced is (scope == "Namespaced")


def matches_object(
    selector: LabelSelector | SelectorError, attributes: AdmissionAttributes
) -> bool:
    """Return whether the object or the old one is selected; a selector's error counts as yes."""
    if isinstance(selector, SelectorError) or not selector.requirements:
        return True
    documents = (attributes.object, attributes.old)
    return any(d is not None and selector.matches(_labels(d)) for d in documents)


def matches_namespace(
    selector: LabelSelector | SelectorError, attributes: AdmissionAttributes, objects: ObjectReader
) -> bool:
    """Return whether the namespace is selected. Raise StatusError (404, 500)."""
    name = attributes.namespace
    if not name and not is_namespace(attributes.requested.resource):
        return True
    if isinstance(selector, SelectorError):
        raise internal_error(str(selector))
    return not selector.requirements or selector.matches(_namespace_labels(attributes, objects))


def _namespace_labels(attributes: AdmissionAttributes, objects: ObjectReader) -> Mapping[str, str]:
    operation, document = attributes.requested, attributes.object
    own = is_namespace(operation.resource) and not operation.subresource
    if own and attributes.operation != DELETE and document is not None:
        return _labels(document)
    entry = objects.get(NAMESPACES, attributes.namespace)
    if entry is None:
        raise not_found(NAMESPACES, attributes.namespace)
    return entry.labels


def _labels(document: Document) -> Mapping[str, str]:
    return document["metadata"].get("labels") or {}
