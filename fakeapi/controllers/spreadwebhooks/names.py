"""Names, paths and rules of the webhooks.

    create-pod     /mutate-pod                                a pod is created
    delete-pod     /validate-pod                              a pod is deleted
    evict-pod      /validate-pod                              a pod is evicted
    validate       /validate-apps-kruise-io-workloadspread    a WorkloadSpread is created or updated
    (definition)   /convert                                   a version other than the stored one

Each name ends in ``.workloadspread.apps.kruise.io``.

A pod is rejected while the webhooks cannot be called (``failurePolicy: Fail``), since it would not
be counted. Namespaces labelled ``control-plane`` are excluded, so that system components never
depend on the webhooks. Upstream's webhooks have other names, because they serve several APIs; they
are also called for updates of pods, for which WorkloadSpreads have no rules.

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
"""The path of each webhook, by its name."""

REVIEWS: Final = ("v1",)

Document = dict[str, Any]
ClientConfig = Callable[[str], Document]
"""Returns the clientConfig for a path."""

_ELSEWHERE: Final = {"matchExpressions": [{"key": "control-plane", "operator": "DoesNotExist"}]}


def mutating_webhooks(leads_to: ClientConfig) -> list[Document]:
    """Return the mutating webhooks."""
    return [_of_pods(CREATE_POD, "CREATE", "pods", leads_to)]


def validating_webhooks(leads_to: ClientConfig) -> list[Document]:
    """Return the validating webhooks."""
    spreads = _rule(SPREADS.group, ["v1alpha1", "v1beta1"], ["CREATE", "UPDATE"], SPREADS.plural)
    return [
        _of_pods(DELETE_POD, "DELETE", "pods", leads_to),
        _of_pods(EVICT_POD, "CREATE", "pods/eviction", leads_to),
        _webhook(VALIDATE, spreads, {}, leads_to),
    ]


def conversion(leads_to: ClientConfig) -> Document:
    """Return the conversion of the CustomResourceDefinition."""
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
    """Return a webhook with all fields set, so that it can be compared with the stored one."""
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
