"""Match conditions of webhooks: expressions that must be true for a webhook to be called.

If none is false and one cannot be evaluated, the request fails, or, with the failure policy Ignore,
the webhook is not called. They see the variables of a policy, except params and variables.

Source: k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions/matcher.go.
"""

from __future__ import annotations

from functools import lru_cache

from fakeapi.apiserver.admission.policies.compilation import CompiledPolicy, compile_policy
from fakeapi.apiserver.admission.policies.evaluation import EvaluationError, PolicyInput
from fakeapi.apiserver.admission.webhooks.attributes import AdmissionAttributes, VersionedObjects
from fakeapi.apiserver.admission.webhooks.rule_matcher import WebhookInvocation
from fakeapi.apiserver.auth.authorization import Authorizer
from fakeapi.apiserver.store.dry_run import ObjectReader
from fakeapi.apiserver.wire.errors import forbidden


def match_conditions_hold(
    invocation: WebhookInvocation,
    attributes: AdmissionAttributes,
    versioned_objects: VersionedObjects,
    objects: ObjectReader,
    authorizer: Authorizer,
) -> bool:
    """Return whether all match conditions of a webhook are true. Raise StatusError (403)."""
    webhook = invocation.webhook
    compiled = _compile(webhook.conditions)
    given = PolicyInput(
        invocation.resource, attributes, versioned_objects, objects, authorizer, compiled.fields
    )
    try:
        return given.matches(compiled, fails_open=webhook.fails_open)
    except EvaluationError as error:
        resource = attributes.requested.resource
        raise forbidden(resource, attributes.name, str(error)) from None


@lru_cache(maxsize=1024)
def _compile(conditions: tuple[str, ...]) -> CompiledPolicy:
    return compile_policy({"matchConditions": [{"expression": each} for each in conditions]})
