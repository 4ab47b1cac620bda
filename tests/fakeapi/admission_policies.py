"""ValidatingAdmissionPolicies for tests: a policy and its binding in one line.

api.load([policy("small", validation("object.data.size() < 3")), binding("small")])
"""

from __future__ import annotations

from typing import Any

from tests.fakeapi.admission_webhooks import GROUP, rule

Object = dict[str, Any]

POLICIES = f"{GROUP}/validatingadmissionpolicies"
BINDINGS = f"{GROUP}/validatingadmissionpolicybindings"
_HEADER = {"apiVersion": "admissionregistration.k8s.io/v1"}


def validation(expression: str, **fields: Any) -> Object:
    """Build a validation."""
    return {"expression": expression, **fields}


def matching(*resources: str, **fields: Any) -> Object:
    """Build match constraints about every operation on resources (config maps)."""
    return {"resourceRules": [rule(*(resources or ("configmaps",)))], **fields}


def policy(name: str, *validations: Object, **spec: Any) -> Object:
    """Build a policy on config maps, unless ``spec`` has other match constraints."""
    spec = {"matchConstraints": matching(), "failurePolicy": "Fail", **spec}
    return {
        **_HEADER,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {**spec, "validations": list(validations)},
    }


def binding(name: str, *actions: str, policy_name: str = "", **spec: Any) -> Object:
    """Build a binding of a policy, by default the one of its own name; it denies by default."""
    spec = {
        "policyName": policy_name or name,
        "validationActions": list(actions or ["Deny"]),
        **spec,
    }
    return {
        **_HEADER,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": spec,
    }
