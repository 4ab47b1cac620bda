"""Admission webhooks: whom a request must pass before what it writes is stored.

The configurations are ordinary objects (``admissionregistration.k8s.io/v1``). For each write those
webhooks are found that want to see it (:mod:`matching`), an AdmissionReview is made for each and
their answers are read (:mod:`reviewing`), mutating ones one after the other, each seeing what the
last has made of the object (:mod:`patches`), validating ones all at once (:mod:`reviewers`):

    in-tree admission → mutating webhooks (→ both once more) → defaults, rules → validating ones

Asking over HTTPS is no matter of a pure function. The request is suspended and done again when the
answers are there: see :mod:`fakeapi.api.outcalls` for how, and why.

Source: k8s.io/apiserver/pkg/admission/plugin/webhook, v1.37.
"""

from __future__ import annotations

from fakeapi.api.hooks.asking import Webhooks
from fakeapi.api.hooks.attributes import Asked
from fakeapi.api.hooks.forms import Shapes
from fakeapi.api.hooks.reviewers import Reviewers

__all__ = ["Asked", "Reviewers", "Shapes", "Webhooks"]
