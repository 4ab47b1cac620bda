"""Bootstrap policy: the roles that a cluster with RBAC has from the start.

Only those that clients rely on: ``cluster-admin`` for ``system:masters``, and the roles for
discovery, the health endpoints and self reviews of access.

Source: kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go.
"""

from __future__ import annotations

from typing import Any, Final

from fakeapi.store import Document

_GROUP: Final = "rbac.authorization.k8s.io"
_PUBLIC_INFO_PATHS: Final = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DISCOVERY_PATHS: Final = [
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    *_PUBLIC_INFO_PATHS,
    "/openapi",
    "/openapi/*",
]
_REVIEWS: Final = (
    ("authorization.k8s.io", ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
    ("authentication.k8s.io", ["selfsubjectreviews"]),
)

_ROLES: Final[dict[str, tuple[list[dict[str, Any]], tuple[str, ...]]]] = {
    "cluster-admin": (
        [
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
            {"verbs": ["*"], "nonResourceURLs": ["*"]},
        ],
        ("system:masters",),
    ),
    "system:basic-user": (
        [
            {"verbs": ["create"], "apiGroups": [group], "resources": resources}
            for group, resources in _REVIEWS
        ],
        ("system:authenticated",),
    ),
    "system:discovery": (
        [{"verbs": ["get"], "nonResourceURLs": _DISCOVERY_PATHS}],
        ("system:authenticated",),
    ),
    "system:public-info-viewer": (
        [{"verbs": ["get"], "nonResourceURLs": _PUBLIC_INFO_PATHS}],
        ("system:authenticated", "system:unauthenticated"),
    ),
}


def bootstrap_roles() -> list[Document]:
    """Return the roles and their bindings."""
    documents = []
    for name, (rules, groups) in _ROLES.items():
        documents.append(_bootstrap_document("ClusterRole", name) | {"rules": rules})
        documents.append(
            _bootstrap_document("ClusterRoleBinding", name)
            | {
                "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": name},
                "subjects": [
                    {"apiGroup": _GROUP, "kind": "Group", "name": group} for group in groups
                ],
            }
        )
    return documents


def _bootstrap_document(kind: str, name: str) -> Document:
    labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    annotations = {"rbac.authorization.kubernetes.io/autoupdate": "true"}
    metadata = {"name": name, "labels": labels, "annotations": annotations}
    return {"kind": kind, "apiVersion": f"{_GROUP}/v1", "metadata": metadata}
