"""Workloads that a pod belongs to: its owner, its gang, its tenant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from policies.kubernetes.default_selector import PodOwner
from policies.kubernetes.snapshot import Pod

_TEMPLATE_HASH: Final = "pod-template-hash"
_GANG_LABELS: Final = (
    ("JobSet", "jobset.sigs.k8s.io/jobset-name"),
    ("LeaderWorkerSet", "leaderworkerset.sigs.k8s.io/name"),
    ("RayCluster", "ray.io/cluster"),
    ("training job", "training.kubeflow.org/job-name"),
)


@dataclass(frozen=True, slots=True)
class Grouping:
    """Puts each pod into one group, by a key; ``name`` is that of a group, in the plural."""

    name: str
    key: Callable[[Pod], str]


def workload_of(pod: Pod) -> PodOwner:
    """Return kind and name of the controller of a pod; a pod without one is its own.

    The pods of all ReplicaSets of a Deployment have the same owner.
    """
    if pod.owner is None:
        return PodOwner("Pod", pod.name)
    kind, name = pod.owner
    suffix = f"-{pod.labels.get(_TEMPLATE_HASH, '')}"
    if kind == "ReplicaSet" and len(suffix) > 1 and name.endswith(suffix):
        return PodOwner("Deployment", name.removesuffix(suffix))
    return PodOwner(kind, name)


def owner_of(pod: Pod) -> str:
    """Return ``namespace/kind/name`` of the workload of a pod; see ``workload_of``."""
    return "/".join((pod.namespace, *workload_of(pod)))


def gang_of(pod: Pod) -> str:
    """Return the key of the pods that work together, and are of no use alone.

    It is the pod's PodGroup; or the JobSet, group of a LeaderWorkerSet, RayCluster or training job
    that its labels name; or the Job that owns it. Any other pod is a gang of its own.
    """
    if pod.group:
        return f"{pod.namespace}/PodGroup/{pod.group}"
    for kind, label in _GANG_LABELS:
        name = pod.labels.get(label)
        if name:
            index = pod.labels.get("leaderworkerset.sigs.k8s.io/group-index", "")
            return f"{pod.namespace}/{kind}/{name}" + (f"/{index}" if index else "")
    if pod.owner is not None and pod.owner.kind == "Job":
        return f"{pod.namespace}/Job/{pod.owner.name}"
    return f"{pod.namespace}/Pod/{pod.name}"


OWNERS: Final = Grouping("owners", owner_of)
GANGS: Final = Grouping("gangs", gang_of)
CLUSTER: Final = Grouping("cluster", lambda _: "cluster")
PRIORITY_CLASSES: Final = Grouping("priority classes", lambda pod: pod.priority_class or "(none)")
NAMESPACES: Final = Grouping("namespaces", lambda pod: pod.namespace)
