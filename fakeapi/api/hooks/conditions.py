"""Match conditions: CEL expressions that must all be true for a webhook to be called.

If any of them is false, the webhook is not called. If none is false and one cannot be evaluated,
the request fails, or, with the failure policy Ignore, the webhook is not called. Their variables
are ``object``, ``oldObject`` and ``request``.

Source: k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions/matcher.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fakeapi.api.cel.engine import MISSING, is_installed
from fakeapi.api.cel.expressions import ExpressionError, compile_expression
from fakeapi.api.errors import forbidden
from fakeapi.api.hooks.attributes import AdmissionAttributes
from fakeapi.api.hooks.forms import VersionedObjects
from fakeapi.api.hooks.matching import WebhookInvocation
from fakeapi.api.hooks.reviewing import admission_request


def match_conditions_hold(
    invocation: WebhookInvocation,
    attributes: AdmissionAttributes,
    versioned_objects: VersionedObjects,
) -> bool:
    """Return whether all match conditions of a webhook are true. Raise StatusError (403)."""
    webhook = invocation.webhook
    if not webhook.conditions:
        return True
    request = admission_request(invocation, attributes, versioned_objects)
    objects = {name: request.pop(name) for name in ("object", "oldObject")}
    faults = []
    for expression in webhook.conditions:
        try:
            if _evaluate(expression, {**objects, "request": request}) is False:
                return False
        except ExpressionError as error:
            faults.append(f"expression '{expression}' resulted in error: {error}")
    if faults and not webhook.fails_open:
        why = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
        raise forbidden(attributes.requested.resource, attributes.name, why)
    return not faults


def _evaluate(expression: str, variables: Mapping[str, Any]) -> Any:
    if not is_installed():
        raise ExpressionError(MISSING)
    return compile_expression(expression).evaluate(variables)
