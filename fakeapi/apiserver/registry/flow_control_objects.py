"""The FlowSchemas and PriorityLevelConfigurations that kube-apiserver creates.

``exempt`` and ``catch-all`` are mandatory, the others are suggested.

Source: k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap/default.go, v1.37.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fakeapi.apiserver.store.object_store import Document

_ALL: Final = ["*"]
_EVERY_RESOURCE: Final[Document] = {
    "verbs": _ALL,
    "apiGroups": _ALL,
    "resources": _ALL,
    "clusterScope": True,
    "namespaces": _ALL,
}
_LEASES: Final[Document] = {
    "verbs": _ALL,
    "apiGroups": ["coordination.k8s.io"],
    "resources": ["leases"],
    "namespaces": _ALL,
}
_NODES: Final[Document] = {
    **_EVERY_RESOURCE,
    "apiGroups": [""],
    "resources": ["nodes", "nodes/status"],
}
_EVERYTHING: Final[Document] = {
    "resourceRules": [_EVERY_RESOURCE],
    "nonResourceRules": [{"verbs": _ALL, "nonResourceURLs": _ALL}],
}
_PROBES: Final[Document] = {
    "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}]
}


def _groups(*names: str) -> list[Document]:
    return [{"kind": "Group", "group": {"name": name}} for name in names]


def _user(name: str) -> Document:
    return {"kind": "User", "user": {"name": name}}


_EVERYBODY: Final = _groups("system:unauthenticated", "system:authenticated")
_SYSTEM_ACCOUNTS: Final[Document] = {
    "kind": "ServiceAccount",
    "serviceAccount": {"name": "*", "namespace": "kube-system"},
}
_CONTROLLER_MANAGER: Final = _user("system:kube-controller-manager")
_SCHEDULER: Final = _user("system:kube-scheduler")

# name, priority level, precedence, method, subjects, rules
_FLOW_SCHEMAS: Final = (
    ("exempt", "exempt", 1, "", _groups("system:masters"), _EVERYTHING),
    ("probes", "exempt", 2, "", _EVERYBODY, _PROBES),
    (
        "system-leader-election",
        "leader-election",
        100,
        "ByUser",
        [_CONTROLLER_MANAGER, _SCHEDULER, _SYSTEM_ACCOUNTS],
        {"resourceRules": [{**_LEASES, "verbs": ["get", "create", "update"]}]},
    ),
    (
        "system-node-high",
        "node-high",
        400,
        "ByUser",
        _groups("system:nodes"),
        {"resourceRules": [_NODES, _LEASES]},
    ),
    ("system-nodes", "system", 500, "ByUser", _groups("system:nodes"), _EVERYTHING),
    (
        "kube-controller-manager",
        "workload-high",
        800,
        "ByNamespace",
        [_CONTROLLER_MANAGER],
        _EVERYTHING,
    ),
    ("kube-scheduler", "workload-high", 800, "ByNamespace", [_SCHEDULER], _EVERYTHING),
    (
        "kube-system-service-accounts",
        "workload-high",
        900,
        "ByNamespace",
        [_SYSTEM_ACCOUNTS],
        _EVERYTHING,
    ),
    (
        "service-accounts",
        "workload-low",
        9000,
        "ByUser",
        _groups("system:serviceaccounts"),
        _EVERYTHING,
    ),
    ("global-default", "global-default", 9900, "ByUser", _EVERYBODY, _EVERYTHING),
    ("catch-all", "catch-all", 10000, "ByUser", _EVERYBODY, _EVERYTHING),
)

# name, shares, lendable percent, queues (0: requests are rejected), hand size
_LIMITED: Final = (
    ("catch-all", 5, 0, 0, 0),
    ("system", 30, 33, 64, 6),
    ("node-high", 40, 25, 64, 6),
    ("leader-election", 10, 0, 16, 4),
    ("workload-high", 40, 50, 128, 6),
    ("workload-low", 100, 90, 128, 6),
    ("global-default", 20, 50, 128, 6),
)


def flow_control_objects() -> Iterator[Document]:
    """Yield the objects."""
    shares = {"nominalConcurrencyShares": 0, "lendablePercent": 0}
    yield _object("PriorityLevelConfiguration", "exempt", {"type": "Exempt", "exempt": shares})
    for name, nominal, lendable, queues, hand in _LIMITED:
        response: Document = {"type": "Reject"}
        if queues:
            queuing = {"queues": queues, "handSize": hand, "queueLengthLimit": 50}
            response = {"type": "Queue", "queuing": queuing}
        limited = {
            "nominalConcurrencyShares": nominal,
            "limitResponse": response,
            "lendablePercent": lendable,
        }
        yield _object("PriorityLevelConfiguration", name, {"type": "Limited", "limited": limited})
    for name, level, precedence, method, subjects, rules in _FLOW_SCHEMAS:
        spec: Document = {
            "priorityLevelConfiguration": {"name": level},
            "matchingPrecedence": precedence,
            **({"distinguisherMethod": {"type": method}} if method else {}),
            "rules": [{"subjects": subjects, **rules}],
        }
        yield _object("FlowSchema", name, spec)


def _object(kind: str, name: str, spec: Document) -> Document:
    return {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, "annotations": {"apf.kubernetes.io/autoupdate-spec": "true"}},
        "spec": spec,
    }
