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

from fakeapi.controllers.spreading.copies import WORKLOAD_SPREADS

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

REVIEW_VERSIONS: Final = ("v1",)

Document = dict[str, Any]
ClientConfig = Callable[[str], Document]
"""Returns the clientConfig for a path."""

_OUTSIDE_CONTROL_PLANE: Final = {
    "matchExpressions": [{"key": "control-plane", "operator": "DoesNotExist"}]
}


def mutating_webhooks(client_config: ClientConfig) -> list[Document]:
    """Return the mutating webhooks."""
    return [_pod_webhook(CREATE_POD, "CREATE", "pods", client_config)]


def validating_webhooks(client_config: ClientConfig) -> list[Document]:
    """Return the validating webhooks."""
    spreads = _rule(
        WORKLOAD_SPREADS.group,
        ["v1alpha1", "v1beta1"],
        ["CREATE", "UPDATE"],
        WORKLOAD_SPREADS.plural,
    )
    return [
        _pod_webhook(DELETE_POD, "DELETE", "pods", client_config),
        _pod_webhook(EVICT_POD, "CREATE", "pods/eviction", client_config),
        _webhook(VALIDATE, spreads, {}, client_config),
    ]


def conversion(client_config: ClientConfig) -> Document:
    """Return the conversion of the CustomResourceDefinition."""
    webhook = {
        "clientConfig": client_config(CONVERT),
        "conversionReviewVersions": list(REVIEW_VERSIONS),
    }
    return {"strategy": "Webhook", "webhook": webhook}


def _pod_webhook(name: str, operation: str, resource: str, client_config: ClientConfig) -> Document:
    return _webhook(
        name, _rule("", ["v1"], [operation], resource), _OUTSIDE_CONTROL_PLANE, client_config
    )


def _rule(group: str, versions: list[str], operations: list[str], resource: str) -> Document:
    return {
        "apiGroups": [group],
        "apiVersions": versions,
        "operations": operations,
        "resources": [resource],
        "scope": "*",
    }


def _webhook(
    name: str, rule: Document, namespaces: Document, client_config: ClientConfig
) -> Document:
    """Return a webhook with all fields set, so that it can be compared with the stored one."""
    return {
        "admissionReviewVersions": list(REVIEW_VERSIONS),
        "clientConfig": client_config(PATHS[name]),
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "name": name,
        "namespaceSelector": namespaces,
        "objectSelector": {},
        "rules": [rule],
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": 10,
    }
