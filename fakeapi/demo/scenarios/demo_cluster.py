"""The demo cluster: 40 nodes in three zones, nearly full of web, batch and training pods.

Twenty-seven general nodes run a shop (web frontends, an API, a checkout whose budget allows no
disruption) and batch jobs; nine tainted GPU nodes run training jobs and notebooks; one node is
cordoned. On the three small nodes the shipped kube-scheduler requests were captured. All pods and
numbers are generated from one seed, so the demo is the same each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

Document = dict[str, Any]

ZONES = ("zone-a", "zone-b", "zone-c")
PRIORITIES = {"critical": 10_000, "production": 1_000, "research": 500, "batch": 100}

_SEED = 7
_GENERAL = {"cpu": "16", "memory": "64Gi", "pods": "110"}
_GPU = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": "8"}
_SMALL = {"cpu": "4", "memory": "8Gi", "pods": "110"}
_GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}

# namespace, app, class, requests
_SHOP = (
    ("shop", "web", "production", {"cpu": "2", "memory": "4Gi"}),
    ("shop", "api", "production", {"cpu": "1", "memory": "2Gi"}),
    ("shop", "checkout", "production", {"cpu": "1500m", "memory": "3Gi"}),
    ("data", "report", "batch", {"cpu": "2", "memory": "6Gi"}),
    ("data", "import", "batch", {"cpu": "3", "memory": "8Gi"}),
)
_TRAINING = (
    ("research", "llm", "research", {"cpu": "24", "memory": "160Gi", "nvidia.com/gpu": "4"}),
    ("research", "vision", "research", {"cpu": "12", "memory": "80Gi", "nvidia.com/gpu": "2"}),
    ("research", "notebook", "batch", {"cpu": "4", "memory": "32Gi", "nvidia.com/gpu": "1"}),
)
# namespace, app, disruptionsAllowed
_BUDGETS = (
    ("shop", "web", 2),
    ("shop", "checkout", 0),
    ("data", "import", 1),
    ("research", "llm", 0),
)

# Name, node, UID and start of the pods on the nodes of the captured requests.
_CAPTURED_PODS = (
    ("fill-ct-0", "node-a", "11b3c1de-7f0e-4b7c-9a55-1f5a3f3f0a01", 10),
    ("fill-ct-5", "node-a", "e1098cba-6318-459e-ade2-477a1f884070", 12),
    ("fill-ct-1", "node-b", "11b3c1de-7f0e-4b7c-9a55-1f5a3f3f0a02", 10),
    ("fill-ct-3", "node-b", "1f760a21-ecee-4ce8-bb5d-51d401c2dd1a", 11),
    ("fill-ct-2", "node-c", "11b3c1de-7f0e-4b7c-9a55-1f5a3f3f0a03", 10),
    ("fill-ct-4", "node-c", "a1795189-6cc8-46cd-b5b5-a99f65decb5c", 11),
)


def demo_cluster() -> list[Document]:
    """Return the cluster's objects as an API server would list them."""
    rng = Random(_SEED)  # noqa: S311 - repeatable, and not secret
    return [
        *(_object("v1", "Namespace", name) for name in ("shop", "data", "research", "kube-system")),
        *(
            _object("scheduling.k8s.io/v1", "PriorityClass", name) | {"value": value}
            for name, value in PRIORITIES.items()
        ),
        *(_budget(*budget) for budget in _BUDGETS),
        *_general_nodes(rng),
        *_gpu_nodes(rng),
        _node("general-retired", _GENERAL, "zone-a", unschedulable=True),
        *_captured_corner(),
        *_replica_sets(),
    ]


def pending_pod(
    namespace: str, name: str, priority_class: str, requests: dict[str, str]
) -> Document:
    """Return a pending pod as it is after admission."""
    pod = _pod(namespace, name, f"pending-{name}", name, priority_class, requests)
    if "nvidia.com/gpu" in requests:
        pod["spec"]["tolerations"] = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    pod["status"] = {"phase": "Pending"}
    return pod


def _general_nodes(rng: Random) -> Iterator[Document]:
    for index in range(27):
        name = f"general-{index + 1:02}"
        yield _node(name, _GENERAL, ZONES[index % 3])
        free = 16_000
        while free >= 1_000:
            app = rng.choices(_SHOP, weights=(4, 3, 2, 5, 3))[0]
            cost = _millis(app[3]["cpu"])
            if cost <= free:
                free -= cost
                yield _running(rng, name, *app)


def _gpu_nodes(rng: Random) -> Iterator[Document]:
    for index in range(9):
        name = f"gpu-{index + 1}"
        yield _node(name, _GPU, ZONES[index % 3], taints=[_GPU_TAINT])
        free = 8
        while free:
            app = rng.choices(_TRAINING, weights=(2, 2, 5))[0]
            cost = int(app[3]["nvidia.com/gpu"])
            if cost <= free:
                free -= cost
                yield _running(rng, name, *app)


def _captured_corner() -> Iterator[Document]:
    for name, zone in (("node-a", "z1"), ("node-b", "z1"), ("node-c", "z2")):
        yield _node(name, _SMALL, zone)
    for name, node, uid, second in _CAPTURED_PODS:
        app = "web" if second == 10 else "batch"
        pod = _pod("default", name, uid, app, "", {"cpu": "2", "memory": "1Gi"})
        pod["spec"] |= {"nodeName": node, "priority": 10}
        pod["status"] = {"phase": "Running", "startTime": f"2026-11-21T02:14:{second}Z"}
        yield pod


def _replica_sets() -> Iterator[Document]:
    for namespace, app, *_ in _SHOP[:3]:
        labels = {"app": app}
        yield _object("apps/v1", "ReplicaSet", app, namespace) | {
            "spec": {
                "replicas": 40,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": []}},
            }
        }


def _running(
    rng: Random, node: str, namespace: str, app: str, priority_class: str, requests: dict[str, str]
) -> Document:
    suffix = f"{rng.getrandbits(20):05x}"
    uid = f"{rng.getrandbits(32):08x}-{app}-{suffix}"
    pod = _pod(namespace, f"{app}-{suffix}", uid, app, priority_class, requests)
    pod["spec"]["nodeName"] = node
    if "nvidia.com/gpu" in requests:
        pod["spec"]["tolerations"] = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    day, hour, minute = rng.randint(1, 20), rng.randint(0, 23), rng.randint(0, 59)
    started = f"2026-11-{day:02}T{hour:02}:{minute:02}:00Z"
    pod["status"] = {"phase": "Running", "startTime": started}
    return pod


def _pod(
    namespace: str, name: str, uid: str, app: str, priority_class: str, requests: dict[str, str]
) -> Document:
    pod = _object("v1", "Pod", name, namespace)
    pod["metadata"] |= {"uid": uid, "labels": {"app": app}}
    # Extended resources cannot be overcommitted, so limits must equal requests.
    limits = {name: amount for name, amount in requests.items() if "/" in name}
    resources = {"requests": requests, **({"limits": limits} if limits else {})}
    container = {"name": app, "image": f"example/{app}", "resources": resources}
    pod["spec"] = {"containers": [container], "schedulerName": "default-scheduler"}
    if priority_class:
        pod["spec"] |= {
            "priorityClassName": priority_class,
            "priority": PRIORITIES[priority_class],
            "preemptionPolicy": "PreemptLowerPriority",
        }
    return pod


def _node(name: str, allocatable: dict[str, str], zone: str, **spec: object) -> Document:
    node = _object("v1", "Node", name)
    node["metadata"]["labels"] = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": zone,
    }
    node["spec"] = spec
    node["status"] = {
        "capacity": allocatable,
        "allocatable": allocatable,
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
    }
    return node


def _budget(namespace: str, app: str, allowed: int) -> Document:
    return _object("policy/v1", "PodDisruptionBudget", app, namespace) | {
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed},
    }


def _object(api_version: str, kind: str, name: str, namespace: str | None = None) -> Document:
    metadata = {"name": name} if namespace is None else {"name": name, "namespace": namespace}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _millis(cpu: str) -> int:
    return int(cpu.removesuffix("m")) if cpu.endswith("m") else int(cpu) * 1000
