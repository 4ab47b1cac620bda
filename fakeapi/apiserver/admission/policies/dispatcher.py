"""The dispatcher of policies for one request: mutations, denials and warnings.

Every binding of every matching policy is evaluated. Mutating policies change the object one after
the other (:mod:`mutation`). The first failed validation is the error of the request; its reason
decides the code: Forbidden 403, Unauthorized 401, RequestEntityTooLarge 413, and 422 otherwise.

Source: k8s.io/apiserver/pkg/admission/plugin/policy/validating/{dispatcher,policy_decision}.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from fakeapi.apiserver.admission.policies.configured_policies import Policy, PolicyBinding
from fakeapi.apiserver.admission.policies.invocations import PolicyInvocation, PolicyMatcher
from fakeapi.apiserver.admission.webhooks.attributes import AdmissionAttributes, VersionedObjects
from fakeapi.apiserver.admission.webhooks.reinvocation import ReinvocationContext
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
    """Evaluates the mutating and the validating policies that may match one request."""

    def __init__(
        self,
        mutating: Sequence[Policy],
        validating: Sequence[Policy],
        objects: ObjectReader,
        versioned_objects: VersionedObjects,
        authorizer: Authorizer,
    ) -> None:
        self._mutating, self._validating = mutating, validating
        self._objects = objects
        self._versioned_objects = versioned_objects
        self._authorizer = authorizer

    @property
    def may_mutate(self) -> bool:
        """Whether there are mutating policies to evaluate."""
        return bool(self._mutating)

    @property
    def may_deny(self) -> bool:
        """Whether there are validating policies to evaluate."""
        return bool(self._validating)

    def mutate(
        self, attributes: AdmissionAttributes, invoked: ReinvocationContext
    ) -> AdmissionAttributes:
        """Return the attributes after the mutating policies. Raise StatusError."""
        # imports the CEL library
        from fakeapi.apiserver.admission.policies.mutation import mutate

        return mutate(
            self._mutating,
            attributes,
            invoked,
            self._objects,
            self._versioned_objects,
            self._authorizer,
        )

    def validate(self, attributes: AdmissionAttributes, warn: Callable[[str], None]) -> None:
        """Evaluate the validating policies, and pass on warnings. Raise StatusError."""
        fields = frozenset[str]().union(*(policy.program.fields for policy in self._validating))
        run = _Validation(
            attributes, self._objects, self._versioned_objects, self._authorizer, warn, fields
        )
        for policy in self._validating:
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


class _Validation:
    """The evaluation of validating policies for one request, and the first denial."""

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
        self._matcher = PolicyMatcher(attributes, objects, versioned_objects, self._report)
        self._inputs: dict[ResourceInfo, PolicyInput] = {}
        self._denial: tuple[str, str] | None = None

    def apply(self, policy: Policy) -> None:
        """Evaluate one policy for all its bindings."""
        for invocation in self._matcher.invocations(policy):
            self._evaluate(invocation)

    def _report(self, policy: Policy, binding: PolicyBinding | None, error: str) -> None:
        if not policy.fails_open:
            named = f"'{policy.name}'" if binding is None else _named(policy, binding)
            self._deny(f"{named} denied request: {error}")

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

    def _evaluate(self, invocation: PolicyInvocation) -> None:
        policy, binding = invocation.policy, invocation.binding
        result = self._input(invocation.resource).evaluate(
            policy.program, invocation.params, fails_open=policy.fails_open
        )
        for failure in result.failures:
            named = _named(policy, binding)
            if "Warn" in binding.actions:
                self._warn(f"Validation failed for {_KIND} {named}: {failure.message}")
            if "Deny" in binding.actions:
                self._deny(f"{named} denied request: {failure.message}", failure.reason)
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
