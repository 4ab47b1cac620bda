"""The dispatcher of policies for one request: denials and warnings.

Every binding of every matching policy is evaluated; the first failed validation is the error of
the request. Its reason decides the code: Forbidden 403, Unauthorized 401, RequestEntityTooLarge
413, and 422 otherwise.

Source: k8s.io/apiserver/pkg/admission/plugin/policy/validating/{dispatcher,policy_decision}.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

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
from fakeapi.apiserver.admission.webhooks.rule_matcher import WebhookInvocation
from fakeapi.apiserver.auth.authorization import Authorizer
from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.store.dry_run import ObjectReader
from fakeapi.apiserver.wire.errors import Cause, forbidden

if TYPE_CHECKING:
    from fakeapi.apiserver.admission.policies.evaluation import PolicyInput

_KIND: Final = "ValidatingAdmissionPolicy"
_CODES: Final = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}
_INVALID: Final = 422


class PolicyDispatcher:
    """Evaluates policies for one request."""

    def __init__(
        self,
        policies: Sequence[Policy],
        objects: ObjectReader,
        versioned_objects: VersionedObjects,
        authorizer: Authorizer,
    ) -> None:
        self._policies = policies
        self._objects = objects
        self._versioned_objects = versioned_objects
        self._authorizer = authorizer

    @property
    def has_policies(self) -> bool:
        """Whether there are policies to evaluate."""
        return bool(self._policies)

    def validate(self, attributes: AdmissionAttributes, warn: Callable[[str], None]) -> None:
        """Evaluate the policies for a request, and pass on warnings; raise StatusError."""
        fields = frozenset[str]().union(*(policy.program.fields for policy in self._policies))
        run = _Run(
            attributes, self._objects, self._versioned_objects, self._authorizer, warn, fields
        )
        for policy in self._policies:
            run.apply(policy)
        run.finish()

    def conditions_hold(
        self, invocation: WebhookInvocation, attributes: AdmissionAttributes
    ) -> bool:
        """Return whether all match conditions of a webhook are true. Raise StatusError (403)."""
        if not invocation.webhook.conditions:
            return True
        # imports the CEL library
        from fakeapi.apiserver.admission.policies.webhook_conditions import match_conditions_hold

        return match_conditions_hold(
            invocation, attributes, self._versioned_objects, self._objects, self._authorizer
        )


class _Run:
    """The evaluation of all policies for one request, and the first denial."""

    def __init__(
        self,
        attributes: AdmissionAttributes,
        objects: ObjectReader,
        versioned_objects: VersionedObjects,
        authorizer: Authorizer,
        warn: Callable[[str], None],
        fields: frozenset[str],
    ) -> None:
        self._fields = fields
        self._attributes = attributes
        self._objects = objects
        self._versioned_objects = versioned_objects
        self._authorizer = authorizer
        self._warn = warn
        self._matched: dict[MatchResources, ResourceInfo | None] = {}
        self._inputs: dict[ResourceInfo, PolicyInput] = {}
        self._denial: tuple[str, str] | None = None

    def apply(self, policy: Policy) -> None:
        """Evaluate one policy for all its bindings."""
        try:
            resource = self._match(policy.match)
            if resource is not None:
                param_kind(policy, self._versioned_objects)
        except PolicyConfigurationError as error:
            self._deny_configuration(policy, f"'{policy.name}'", f"policy: {error}")
            return
        if resource is None:
            return
        for binding in policy.bindings:
            try:
                self._apply_binding(policy, binding, resource)
            except PolicyConfigurationError as error:
                self._deny_configuration(policy, _named(policy, binding), f"binding: {error}")

    def _match(self, resources: MatchResources) -> ResourceInfo | None:
        """Return the resource that matches; policies with equal constraints share the result."""
        if resources not in self._matched:
            found = match(resources, self._attributes, self._objects, self._versioned_objects)
            self._matched[resources] = found
        return self._matched[resources]

    def _deny_configuration(self, policy: Policy, named: str, error: str) -> None:
        if not policy.fails_open:
            self._deny(f"{named} denied request: failed to configure {error}")

    def finish(self) -> None:
        """Raise StatusError if a policy has denied the request."""
        if self._denial is None:
            return
        message, reason = self._denial
        attributes = self._attributes
        metadata = (attributes.object or {}).get("metadata") or {}
        name = attributes.name or metadata.get("generateName") or "Unknown"
        resource = attributes.requested.resource
        error = forbidden(resource, name, message, [Cause("", message)])
        error.reason, error.code = reason, _CODES.get(reason, _INVALID)
        raise error

    def _apply_binding(
        self, policy: Policy, binding: PolicyBinding, resource: ResourceInfo
    ) -> None:
        """Evaluate one policy for one binding; raise PolicyConfigurationError."""
        objects, versioned_objects = self._objects, self._versioned_objects
        attributes = self._attributes
        if binding.match is not None and (
            match(binding.match, attributes, objects, versioned_objects) is None
        ):
            return
        namespace = attributes.namespace
        for params in collect_params(policy, binding, namespace, objects, versioned_objects):
            result = self._input(resource).evaluate(
                policy.program, params, fails_open=policy.fails_open
            )
            for failure in result.failures:
                if "Warn" in binding.actions:
                    named = _named(policy, binding)
                    self._warn(f"Validation failed for {_KIND} {named}: {failure.message}")
                if "Deny" in binding.actions:
                    message = f"{_named(policy, binding)} denied request: {failure.message}"
                    self._deny(message, failure.reason)
            for error in result.annotation_errors:
                self._deny(f"{_named(policy, binding)} denied request: {error}")

    def _input(self, resource: ResourceInfo) -> PolicyInput:
        found = self._inputs.get(resource)
        if found is None:
            # imports the CEL library
            from fakeapi.apiserver.admission.policies.evaluation import PolicyInput

            found = self._inputs[resource] = PolicyInput(
                resource,
                self._attributes,
                self._versioned_objects,
                self._objects,
                self._authorizer,
                self._fields,
            )
        return found

    def _deny(self, message: str, reason: str = "") -> None:
        if self._denial is None:
            self._denial = f"{_KIND} {message}", reason or "Invalid"


def _named(policy: Policy, binding: PolicyBinding) -> str:
    return f"'{policy.name}' with binding '{binding.name}'"
