"""The scenario of the loop: a full cluster, a burst of important pods, and a pod that leaks memory.

    pool       nodes                 full of
    reserved   6 of 4 CPUs           checkout 4, web 6, report 11, crawl 1, import 1 of 2 CPUs
    spot       3 of 4 CPUs, tainted  web 3, report 7, cache 1, and one CPU free

``web`` and ``report`` have a WorkloadSpread: pods beyond the reserved subset are placed on spot
nodes. No checkout pod may be disrupted, two web pods may. The burst requests eight CPUs of the
reserved nodes: the first pod preempts one pod with two CPUs, the second the one pod of priority
``leftover``, the third also a web pod. That web pod is created again and preempts a report pod.
Batch pods never preempt: one of those that are created again fits on the last free CPU of a spot
node, the others wait. Then the cache uses more memory than it requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

Document = dict[str, Any]

POOL: Final = "pool"
PRIORITIES: Final[Mapping[str, int]] = {
    "critical": 10_000,
    "production": 1_000,
    "batch": 100,
    "leftover": 10,
}
NODES: Final[Mapping[str, int]] = {"reserved": 6, "spot": 3}

_ZONES: Final = ["zone-a", "zone-b", "zone-c"]
_CAPACITY: Final = {"cpu": "4", "memory": "8Gi", "pods": "32"}
_SPOT_TAINT: Final = {"key": "spot", "value": "true", "effect": "NoSchedule"}
_LEAK: Final = "{stages: [{after: 1s, memory: 7Gi, over: 4s}]}"


@dataclass(frozen=True, slots=True)
class LoopScenario:
    """The objects of the demo in the order of their creation, and the leak.

    ``kubelet`` is the simulation script of the kubelets. ``base_objects`` are created first; then
    ``workloads`` (ReplicaSets), one after another, until the cluster is full; then the pods of the
    ``burst``, all at once. At the end a pod of ``leaking_workload`` (``namespace/name``) has the
    script ``leak_script``.
    """

    kubelet: Document
    base_objects: tuple[Document, ...]
    workloads: tuple[Document, ...]
    burst: tuple[Document, ...]
    leaking_workload: str
    leak_script: str

    @property
    def nodes(self) -> int:
        """The number of nodes that register."""
        return sum(each["count"] for each in self.kubelet["register"])

    @property
    def wanted_replicas(self) -> dict[str, int]:
        """The number of replicas of each workload, by ``namespace/name``."""
        return {key_of(each): each["spec"]["replicas"] for each in self.workloads}

    @property
    def burst_pods(self) -> tuple[str, ...]:
        """The pods of the burst, as ``namespace/name``."""
        return tuple(map(key_of, self.burst))


def loop_scenario() -> LoopScenario:
    """Return the scenario of ``reprieve demo``."""
    return LoopScenario(
        {"register": [_registration(pool) for pool in NODES]},
        (
            *(_object("v1", "Namespace", name) for name in ("shop", "data")),
            *(
                _object("scheduling.k8s.io/v1", "PriorityClass", name)
                | {"value": value, "preemptionPolicy": _policy(value)}
                for name, value in PRIORITIES.items()
            ),
            _budget("shop", "checkout", {"minAvailable": 4}),
            _budget("shop", "web", {"maxUnavailable": 2}),
            _spread("shop", "web", 6),
            _spread("data", "report", 11, adaptive={}),
        ),
        (
            _replica_set("shop", "checkout", 4, "production", nodeSelector={POOL: "reserved"}),
            _replica_set("shop", "web", 9, "production"),
            _replica_set("data", "import", 1, "batch", "2", nodeSelector={POOL: "reserved"}),
            _replica_set("data", "report", 18, "batch"),
            _replica_set("data", "crawl", 1, "leftover", nodeSelector={POOL: "reserved"}),
            _replica_set(
                "data",
                "cache",
                1,
                "batch",
                nodeSelector={POOL: "spot"},
                tolerations=[{"key": "spot", "operator": "Exists"}],
            ),
        ),
        tuple(
            _burst_pod(f"sale-{number}", cpu) for number, cpu in enumerate(("2", "1", "3", "2"), 1)
        ),
        "data/cache",
        _LEAK,
    )


def key_of(document: Document) -> str:
    """Return ``namespace/name``."""
    metadata = document["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}"


def _registration(pool: str) -> Document:
    taints = [_SPOT_TAINT] if pool == "spot" else []
    labels = {POOL: pool, "topology.kubernetes.io/zone": _ZONES}
    return {
        "name": f"{pool}-{{}}",
        "count": NODES[pool],
        "capacity": _CAPACITY,
        "labels": labels,
        "taints": taints,
    }


def _policy(priority: int) -> str:
    return "PreemptLowerPriority" if priority >= PRIORITIES["production"] else "Never"


def _budget(namespace: str, app: str, allowed: Document) -> Document:
    selector = {"matchLabels": {"app": app}}
    return _object("policy/v1", "PodDisruptionBudget", app, namespace) | {
        "spec": {"selector": selector, **allowed}
    }


def _spread(namespace: str, app: str, reserved: int, adaptive: Document | None = None) -> Document:
    strategy = {"type": "Fixed"} if adaptive is None else {"type": "Adaptive", "adaptive": adaptive}
    subsets = [
        {"name": "reserved", "maxReplicas": reserved, "requiredNodeSelector": _in("reserved")},
        {
            "name": "spot",
            "requiredNodeSelector": _in("spot"),
            "tolerations": [{"key": "spot", "operator": "Exists"}],
        },
    ]
    return _object("apps.kruise.io/v1beta1", "WorkloadSpread", app, namespace) | {
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app},
            "scheduleStrategy": strategy,
            "subsets": subsets,
        }
    }


def _in(pool: str) -> Document:
    return {"matchExpressions": [{"key": POOL, "operator": "In", "values": [pool]}]}


def _replica_set(
    namespace: str, app: str, replicas: int, priority: str, cpu: str = "1", **spec: object
) -> Document:
    labels = {"app": app}
    template = {"metadata": {"labels": labels}, "spec": {**_pod_spec(app, cpu, priority), **spec}}
    return _object("apps/v1", "ReplicaSet", app, namespace) | {
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    }


def _burst_pod(name: str, cpu: str) -> Document:
    pod = _object("v1", "Pod", name, "shop")
    pod["metadata"]["labels"] = {"app": "sale"}
    pod["spec"] = {**_pod_spec("sale", cpu, "critical"), "nodeSelector": {POOL: "reserved"}}
    return pod


def _pod_spec(app: str, cpu: str, priority: str) -> Document:
    container = {
        "name": app,
        "image": f"example/{app}",
        "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}},
    }
    return {
        "containers": [container],
        "priorityClassName": priority,
        "terminationGracePeriodSeconds": 5,
    }


def _object(api_version: str, kind: str, name: str, namespace: str = "") -> Document:
    place = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **place}}
