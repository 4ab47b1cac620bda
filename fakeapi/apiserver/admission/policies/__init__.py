"""Admission policies: CEL expressions that mutate and validate a write before it is stored.

Policies and bindings are ordinary objects (``admissionregistration.k8s.io/v1``). For each write,
the policies and then the bindings that match it are found, and the parameters of each binding are
read (:mod:`matching`, :mod:`invocations`). The policy is evaluated for each parameter
(:mod:`evaluation`). A mutating policy patches the object (:mod:`mutation`, :mod:`patches`). A
failed validation denies the request, or warns (:mod:`dispatcher`):

    mutating policies → mutating webhooks → defaulting, validation → validating policies → webhooks

The match conditions of webhooks are evaluated in the same way (:mod:`webhook_conditions`).

Policies and webhook configurations are themselves exempt. There is no audit log, so ``Audit`` has
no effect; audit annotations are evaluated only for their errors.

Source: k8s.io/apiserver/pkg/admission/plugin/policy, v1.37.
"""

from __future__ import annotations

from fakeapi.apiserver.admission.policies.configured_policies import ConfiguredPolicies
from fakeapi.apiserver.admission.policies.dispatcher import PolicyDispatcher

__all__ = ["ConfiguredPolicies", "PolicyDispatcher"]
