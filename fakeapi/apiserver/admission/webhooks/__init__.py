"""Admission webhooks: they mutate and validate a request before its object is stored.

The configurations are ordinary objects (``admissionregistration.k8s.io/v1``). For each write, the
webhooks that match it are found (:mod:`rule_matcher`); each receives an AdmissionReview, and its
response is decoded (:mod:`admission_review`). Mutating webhooks are called one after the other,
each with the object that the previous one has patched (:mod:`object_patches`); validating webhooks
are called in parallel (:mod:`dispatcher`):

    admission plugins → mutating webhooks (→ both again) → defaulting, validation → validating ones

A pure function cannot make HTTPS calls. The request is suspended, and repeated when the responses
are there: :mod:`fakeapi.apiserver.webhooks.calls` has the mechanism and its reasons.

Source: k8s.io/apiserver/pkg/admission/plugin/webhook, v1.37.
"""

from __future__ import annotations

from fakeapi.apiserver.admission.webhooks.attributes import RequestedOperation, VersionedObjects
from fakeapi.apiserver.admission.webhooks.dispatcher import WebhookDispatcher
from fakeapi.apiserver.admission.webhooks.invocation import Webhooks

__all__ = ["RequestedOperation", "VersionedObjects", "WebhookDispatcher", "Webhooks"]
