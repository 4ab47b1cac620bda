"""The invocations of policies for a request: each policy once for each binding and parameter.

Source: Dispatch in k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

from fakeapi.apiserver.admission.policies.configured_policies import (
    MatchResources,
    Policy,
    PolicyBinding,
)
from fakeapi.apiserver.admission.policies.matching import (
    PolicyConfigurationError,
    collect_params,
    match,
    param_kind,
)
from fakeapi.apiserver.admission.webhooks.attributes import AdmissionAttributes, VersionedObjects
from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.store.dry_run import ObjectReader
from fakeapi.apiserver.store.object_store import Document


@dataclass(frozen=True, slots=True)
class PolicyInvocation:
    """A policy for one binding and one parameter; ``resource`` is in the version of its rules."""

    policy: Policy
    binding: PolicyBinding
    resource: ResourceInfo
    params: Document | None

    @property
    def key(self) -> Hashable:
        """What identifies the invocation among those of a request."""
        metadata = (self.params or {}).get("metadata") or {}
        params = metadata.get("namespace"), metadata.get("name")
        return self.policy.name, self.binding.name, params


ReportError = Callable[[Policy, PolicyBinding | None, str], None]
"""A function for the errors of a policy, or of one of its bindings."""


class PolicyMatcher:
    """Finds the invocations of policies for a request; policies share results of constraints."""

    def __init__(
        self,
        attributes: AdmissionAttributes,
        objects: ObjectReader,
        versioned_objects: VersionedObjects,
        report: ReportError,
    ) -> None:
        self._attributes, self._objects = attributes, objects
        self._versioned_objects = versioned_objects
        self._report = report
        self._matched: dict[MatchResources, ResourceInfo | None] = {}

    def invocations(self, policy: Policy) -> Iterator[PolicyInvocation]:
        """Yield the invocations of a policy, and report errors of its configuration."""
        try:
            resource = self._match(policy.match)
            if resource is not None:
                param_kind(policy, self._versioned_objects)
        except PolicyConfigurationError as error:
            self._report(policy, None, f"failed to configure policy: {error}")
            return
        for binding in policy.bindings if resource is not None else ():
            assert resource is not None
            try:
                found = self._params(policy, binding)
            except PolicyConfigurationError as error:
                self._report(policy, binding, f"failed to configure binding: {error}")
                continue
            for params in found:
                yield PolicyInvocation(policy, binding, resource, params)

    def _match(self, resources: MatchResources) -> ResourceInfo | None:
        if resources not in self._matched:
            found = match(resources, self._attributes, self._objects, self._versioned_objects)
            self._matched[resources] = found
        return self._matched[resources]

    def _params(self, policy: Policy, binding: PolicyBinding) -> Sequence[Document | None]:
        """Return the parameters of a binding, if it matches. Raise PolicyConfigurationError."""
        attributes, objects = self._attributes, self._objects
        matched = binding.match is None or (
            match(binding.match, attributes, objects, self._versioned_objects) is not None
        )
        if not matched:
            return ()
        namespace = attributes.namespace
        return collect_params(policy, binding, namespace, objects, self._versioned_objects)
