"""Mutating policies of a request: each changes the object that the previous one has left.

The mutations of a policy are applied in their order (:mod:`patches`); each sees the object that the
previous one has left. A mutation that fails denies the request, or, with the failure policy Ignore,
is skipped. A denial has the messages of all errors.

Source: k8s.io/apiserver/pkg/admission/plugin/policy/mutating/dispatcher.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from extender.cel.compilation import ExpressionError
from fakeapi.apiserver.admission.policies.configured_policies import Policy, PolicyBinding
from fakeapi.apiserver.admission.policies.evaluation import EvaluationError, PolicyInput
from fakeapi.apiserver.admission.policies.invocations import PolicyInvocation, PolicyMatcher
from fakeapi.apiserver.admission.policies.patches import patched
from fakeapi.apiserver.admission.webhooks.attributes import AdmissionAttributes, VersionedObjects
from fakeapi.apiserver.admission.webhooks.object_patches import PatchError
from fakeapi.apiserver.admission.webhooks.reinvocation import ReinvocationContext
from fakeapi.apiserver.auth.authorization import Authorizer
from fakeapi.apiserver.store.dry_run import ObjectReader
from fakeapi.apiserver.wire.errors import Cause, forbidden


def mutate(
    policies: Sequence[Policy],
    attributes: AdmissionAttributes,
    invoked: ReinvocationContext,
    objects: ObjectReader,
    versioned_objects: VersionedObjects,
    authorizer: Authorizer,
) -> AdmissionAttributes:
    """Return the attributes with the object after all mutations. Raise StatusError."""
    run = _Mutation(invoked, objects, versioned_objects, authorizer)
    matcher = PolicyMatcher(attributes, objects, versioned_objects, run.report)
    for invocation in [each for policy in policies for each in matcher.invocations(policy)]:
        attributes = run.apply(invocation, attributes)
    run.finish(attributes)
    return attributes


class _Mutation:
    """The evaluation of mutating policies for one request, and its errors."""

    def __init__(
        self,
        invoked: ReinvocationContext,
        objects: ObjectReader,
        versioned_objects: VersionedObjects,
        authorizer: Authorizer,
    ) -> None:
        self._invoked = invoked
        self._objects, self._versioned_objects = objects, versioned_objects
        self._authorizer = authorizer
        self._errors: list[tuple[str, str]] = []

    def report(
        self, policy: Policy, binding: PolicyBinding | None, error: str, reason: str = "Forbidden"
    ) -> None:
        """Record an error, unless the policy ignores failures."""
        if policy.fails_open:
            return
        named = f"'{policy.name}' with binding '{binding.name}'" if binding else f'"{policy.name}"'
        self._errors.append((f"policy {named} denied request: {error}", reason))

    def finish(self, attributes: AdmissionAttributes) -> None:
        """Raise StatusError (403) if there are errors; the first has its message and reason."""
        if self._errors:
            message, reason = self._errors[0]
            resource, name = attributes.requested.resource, attributes.name
            error = forbidden(resource, name, "", [Cause("", each) for each, _ in self._errors])
            error.message, error.reason = message, reason
            raise error

    def apply(
        self, invocation: PolicyInvocation, attributes: AdmissionAttributes
    ) -> AdmissionAttributes:
        """Return the attributes after the mutations of one invocation."""
        policy, params, before = invocation.policy, invocation.params, attributes.object
        given = self._input(invocation, attributes)
        try:
            holds = given.matches(policy.program, params, fails_open=policy.fails_open)
        except EvaluationError as error:
            self.report(policy, invocation.binding, str(error), "Invalid")
            return attributes
        if not holds or not self._invoked.has_to_call(invocation.key):
            return attributes
        for mutation in policy.program.mutations if before is not None else ():
            try:
                value = given.value_of_mutation(policy.program, params, mutation.expression)
                after = patched(
                    self._versioned_objects,
                    attributes,
                    invocation.resource,
                    mutation.patch_type,
                    value,
                )
            except (EvaluationError, ExpressionError, PatchError) as error:
                self.report(policy, invocation.binding, str(error), "Invalid")
                continue
            if after is not None:
                attributes = replace(attributes, object=after)
                given = self._input(invocation, attributes)
        if attributes.object is not before:
            self._invoked.require_reinvocation()
        if policy.reinvoked:
            self._invoked.before.add(invocation.key)
        return attributes

    def _input(self, invocation: PolicyInvocation, attributes: AdmissionAttributes) -> PolicyInput:
        return PolicyInput(
            invocation.resource,
            attributes,
            self._versioned_objects,
            self._objects,
            self._authorizer,
            invocation.policy.program.fields,
        )
