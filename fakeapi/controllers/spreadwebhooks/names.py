"""What the webhooks are called, where they are asked, and about what.

    create-pod     /mutate-pod                                a pod is created
    delete-pod     /validate-pod                              a pod is deleted
    evict-pod      /validate-pod                              a pod is evicted
    validate       /validate-apps-kruise-io-workloadspread    a WorkloadSpread is made or changed
    (definition)   /convert                                   the version that is not stored is used

Each bears the name ``….workloadspread.apps.kruise.io``.

A pod is not let through while the webhooks cannot be asked (``failurePolicy: Fail``), since it
would not be counted. Namespaces that are labelled ``control-plane`` are left alone: nothing that a
cluster lives by waits for them. Upstream's have other names, since they serve several APIs; so they
look at updates of pods, too, to which spreading has nothing to say.

Source: openkruise/kruise config/webhook (manifests.yaml, patch_manifests.yaml).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fakeapi.controllers.spreading.copies import SPREADS

MUTATE_POD: Final = "/mutate-pod"
VALIDATE_POD: Final = "/validate-pod"
VALIDATE_SPREAD: Final = "/validate-apps-kruise-io-workloadspread"
CONVERT: Final = "/convert"

CREATE_POD: Final = "create-pod.workloadspread.apps.kruise.io"
DELETE_POD: Final = "delete-pod.workloadspread.apps.kruise.io"
EVICT_POD: Final = "evict-pod.workloadspread.apps.kruise.io"
VALIDATE: Final = "validate.workloadspread.apps.kruise.io"

PATHS: Final[Mapping[str, str]] = {
    CREATE_POD: MUTATE_POD,
    DELETE_POD: VALIDATE_POD,
    EVICT_POD: VALIDATE_POD,
    VALIDATE: VALIDATE_SPREAD,
}
"""Where each webhook is asked, by its name."""

REVIEWS: Final = ("v1",)

Document = dict[str, Any]
ClientConfig = Callable[[str], Document]
"""Gives the client configuration that leads to a path."""

_ELSEWHERE: Final = {"matchExpressions": [{"key": "control-plane", "operator": "DoesNotExist"}]}


def mutating_webhooks(leads_to: ClientConfig) -> list[Document]:
    """Return the webhooks that may change what they see."""
    return [_of_pods(CREATE_POD, "CREATE", "pods", leads_to)]


def validating_webhooks(leads_to: ClientConfig) -> list[Document]:
    """Return the webhooks that only look."""
    spreads = _rule(SPREADS.group, ["v1alpha1", "v1beta1"], ["CREATE", "UPDATE"], SPREADS.plural)
    return [
        _of_pods(DELETE_POD, "DELETE", "pods", leads_to),
        _of_pods(EVICT_POD, "CREATE", "pods/eviction", leads_to),
        _webhook(VALIDATE, spreads, {}, leads_to),
    ]


def conversion(leads_to: ClientConfig) -> Document:
    """Return the conversion of the definition."""
    webhook = {"clientConfig": leads_to(CONVERT), "conversionReviewVersions": list(REVIEWS)}
    return {"strategy": "Webhook", "webhook": webhook}


def _of_pods(name: str, operation: str, resource: str, leads_to: ClientConfig) -> Document:
    return _webhook(name, _rule("", ["v1"], [operation], resource), _ELSEWHERE, leads_to)


def _rule(group: str, versions: list[str], operations: list[str], resource: str) -> Document:
    return {
        "apiGroups": [group],
        "apiVersions": versions,
        "operations": operations,
        "resources": [resource],
        "scope": "*",
    }


def _webhook(name: str, rule: Document, namespaces: Document, leads_to: ClientConfig) -> Document:
    """Return a webhook with all its fields, so that it can be compared with what a server shows."""
    return {
        "admissionReviewVersions": list(REVIEWS),
        "clientConfig": leads_to(PATHS[name]),
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "name": name,
        "namespaceSelector": namespaces,
        "objectSelector": {},
        "rules": [rule],
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": 10,
    }
