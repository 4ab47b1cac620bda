"""Builders for scenes: requests and documents in one line each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"

NAMESPACE = "/api/v1/namespaces/scene"
PODS = f"{NAMESPACE}/pods"
MAPS = f"{NAMESPACE}/configmaps"
ACCOUNTS = f"{NAMESPACE}/serviceaccounts"
CLAIMS = f"{NAMESPACE}/persistentvolumeclaims"
QUOTAS = f"{NAMESPACE}/resourcequotas"
RANGES = f"{NAMESPACE}/limitranges"
SERVICES = f"{NAMESPACE}/services"
STORAGE_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
DEPLOYMENTS = "/apis/apps/v1/namespaces/scene/deployments"
BUDGETS = "/apis/policy/v1/namespaces/scene/poddisruptionbudgets"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
MUTATING_POLICIES = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
MUTATING_BINDINGS = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings"
REVIEWS = "/apis/authorization.k8s.io/v1"
IDENTITY = "/apis/authentication.k8s.io/v1"


@dataclass(frozen=True)
class Step:
    """One request."""

    method: str
    path: str
    body: Any = None
    content_type: str = JSON
    query: dict[str, str] = field(default_factory=dict)
    headers: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.query or ''} {self.body or ''}"


def get(path: str, **query: str) -> Step:
    return Step("GET", path, query=query)


def post(path: str, body: Any = None, **query: str) -> Step:
    return Step("POST", path, body, query=query)


def put(path: str, body: Any, **query: str) -> Step:
    return Step("PUT", path, body, query=query)


def delete(path: str, body: Any = None, **query: str) -> Step:
    return Step("DELETE", path, body, query=query)


def patch(path: str, body: Any, content_type: str = MERGE, **query: str) -> Step:
    return Step("PATCH", path, body, content_type, query=query)


def config_map(name: str = "a", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, "data": {"x": "1"}}


def pod(name: str = "p", spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i"}]
    return {
        "metadata": {"name": name, **metadata},
        "spec": {"containers": containers} | (spec or {}),
    }


TEMPLATE = {
    "metadata": {"labels": {"app": "w"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
