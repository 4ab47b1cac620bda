"""Users, roles and bindings."""

from __future__ import annotations

from fakeapi.apiserver.wire.http_messages import User
from tests.builders import Document, manifest

AUTHENTICATED = "system:authenticated"
JANE = User("jane", groups=("devs", AUTHENTICATED))
BOB = User(
    "system:serviceaccount:default:bob",
    groups=("system:serviceaccounts", "system:serviceaccounts:default", AUTHENTICATED),
)
ROOT = User("root", groups=("system:masters", AUTHENTICATED))
NOBODY = User("system:anonymous", groups=("system:unauthenticated",))

RBAC = "rbac.authorization.k8s.io/v1"
READ_PODS = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}


def role(rules: list[Document], namespace: str = "") -> Document:
    kind = "Role" if namespace else "ClusterRole"
    return manifest(kind, "r", version=RBAC, namespace=namespace, rules=rules)


def binding(kind: str, name: str, namespace: str = "", to: str = "", of: str = "") -> Document:
    subject = {"kind": kind, "name": name} | ({"namespace": of} if of else {})
    reference = to or ("Role" if namespace else "ClusterRole")
    return manifest(
        "RoleBinding" if namespace else "ClusterRoleBinding",
        "b",
        version=RBAC,
        namespace=namespace,
        subjects=[subject],
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": reference, "name": "r"},
    )
