"""Whether a policy or a binding matches a request, and the parameters of a binding.

Matching is that of webhooks (:mod:`fakeapi.apiserver.admission.webhooks.rule_matcher`), with names
of objects in rules, and with rules that exclude. A parameter is an object of the ``paramKind``:

    paramKind       namespaced                                  cluster-scoped
    name            in paramRef.namespace, or in that of        the object of that name
                    the request
    selector        all of that namespace that it selects       all that it selects

Sources: k8s.io/apiserver/pkg/admission/plugin/policy (matching/matching.go,
generic/policy_dispatcher.go for the parameters).
"""

from __future__ import annotations

from collections.abc import Sequence

from fakeapi.apiserver.admission.policies.configured_policies import (
    MatchResources,
    ParamRef,
    Policy,
    PolicyBinding,
)
from fakeapi.apiserver.admission.webhooks.attributes import AdmissionAttributes, VersionedObjects
from fakeapi.apiserver.admission.webhooks.rule_matcher import (
    matched_resource,
    matches_namespace,
    matches_object,
)
from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.store.dry_run import ObjectReader
from fakeapi.apiserver.store.object_store import Document, Entry
from policies.kubernetes.selectors import SelectorError


class PolicyConfigurationError(Exception):
    """A policy or a binding cannot be applied to a request; the message is upstream's."""


def match(
    resources: MatchResources,
    attributes: AdmissionAttributes,
    objects: ObjectReader,
    versioned_objects: VersionedObjects,
) -> ResourceInfo | None:
    """Return the resource of a request that matches, in the version of the rules; None otherwise.

    Raise PolicyConfigurationError, StatusError (404).
    """
    if not matches_object(resources.objects, attributes):
        return None
    equivalent = resources.equivalent
    excluded = resources.excluded
    if excluded and matched_resource(
        excluded, attributes, versioned_objects, equivalent=equivalent
    ):
        return None
    found: ResourceInfo | None = attributes.requested.resource
    if resources.rules:
        found = matched_resource(
            resources.rules, attributes, versioned_objects, equivalent=equivalent
        )
    if found is None:
        return None
    for selector in (resources.namespaces, resources.objects):
        if isinstance(selector, SelectorError):
            raise PolicyConfigurationError(str(selector))
    return found if matches_namespace(resources.namespaces, attributes, objects) else None


def param_kind(policy: Policy, versioned_objects: VersionedObjects) -> ResourceInfo | None:
    """Return the kind of a policy's parameters, if it has any. Raise PolicyConfigurationError."""
    if policy.param_kind is None:
        return None
    api_version, name = policy.param_kind
    kind = versioned_objects.kinds.of(api_version, name)
    if kind is None:
        named = f"{'' if '/' in api_version else '/'}{api_version}, Kind={name}"
        raise PolicyConfigurationError(
            f"failed to find resource referenced by paramKind: '{named}'"
        )
    return kind


def collect_params(
    policy: Policy,
    binding: PolicyBinding,
    namespace: str,
    objects: ObjectReader,
    versioned_objects: VersionedObjects,
) -> Sequence[Document | None]:
    """Return the parameters of a binding; [None] if it has none. Raise PolicyConfigurationError."""
    kind, reference = param_kind(policy, versioned_objects), binding.params
    if kind is None or reference is None:
        return [None]
    entries = _selected(kind, reference, _params_namespace(kind, reference, namespace), objects)
    if not entries and reference.required:
        raise PolicyConfigurationError(
            "no params found for policy binding with `Deny` parameterNotFoundAction"
        )
    header = {"apiVersion": kind.api_version, "kind": kind.kind}
    return [{**header, **entry.document()} for entry in entries]


def _params_namespace(kind: ResourceInfo, reference: ParamRef, namespace: str) -> str:
    if not kind.namespaced:
        if reference.namespace:
            raise PolicyConfigurationError(
                "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
            )
        return ""
    found = reference.namespace or namespace
    if not found:
        raise PolicyConfigurationError(
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        )
    return found


def _selected(
    kind: ResourceInfo, reference: ParamRef, namespace: str, objects: ObjectReader
) -> list[Entry]:
    if reference.name:
        key = f"{namespace}/{reference.name}" if kind.namespaced else reference.name
        entry = objects.get(kind, key)
        return [] if entry is None else [entry]
    selector = reference.selector
    if selector is None:
        raise PolicyConfigurationError("one of name or selector must be provided")
    if isinstance(selector, SelectorError):
        raise PolicyConfigurationError(str(selector))
    return [e for e in objects.entries(kind, namespace) if selector.matches(e.labels)]
