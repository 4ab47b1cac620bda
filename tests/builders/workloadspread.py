"""Builders of WorkloadSpreads, their workloads and pods.

Values that decisions read::

    spread(subset("a", 2), subset("b"), target=CLONE_SET)
    member("web-1", "a", node="node-1", phase="Running")

and the same things as Kubernetes writes them::

    files(spread_json({"name": "a", "maxReplicas": 2}), clone_set_json(), pod_of("web-1"))

Times are seconds before or after NOW.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from extender.explain.cluster_objects import ClusterObjects
from extender.explain.workloadspread_files import WorkloadSpreadFiles
from extender.kube.decoders.manifests import Manifest
from extender.kube.decoders.pods import epoch_ns
from extender.kube.workloadspread.spread_pods import MATCHED_WORKLOADSPREAD, write_injection
from policies.kubernetes.snapshot import Node
from policies.workloadspread.model import (
    SECOND,
    AdaptiveStrategy,
    Expression,
    MaxReplicas,
    NodeTerm,
    ScheduleStrategy,
    SpreadPod,
    Subset,
    SubsetCondition,
    SubsetInjection,
    SubsetStatus,
    WorkloadSpread,
    WorkloadSpreadStatus,
)
from policies.workloadspread.object_references import ObjectKey, WorkloadReference
from policies.workloadspread.pod_groups import GroupingContext
from policies.workloadspread.quirks import FIXED, Quirks
from policies.workloadspread.reconcile import SpreadRules
from policies.workloadspread.workload_versions import DEFAULT_VERSIONED_KINDS
from policies.workloadspread.workloads import TargetWorkload
from tests.builders import encoded, manifest, owner

Document = dict[str, Any]

NOW = "2026-01-01T12:00:00Z"
NOW_NS = epoch_ns(datetime.fromisoformat(NOW))
CLONE_SET = WorkloadReference("apps.kruise.io/v1alpha1", "CloneSet", "web", "web-uid")
DEPLOYMENT = WorkloadReference("apps/v1", "Deployment", "web", "web-uid")
REPLICA_SET = WorkloadReference("apps/v1", "ReplicaSet", "web", "web-uid")
STATEFUL_SET = WorkloadReference("apps/v1", "StatefulSet", "web", "web-uid")
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
JOB = WorkloadReference("batch/v1", "Job", "web", "web-uid")


def moment(text: str) -> int:
    """Return a time in nanoseconds since the epoch."""
    return epoch_ns(datetime.fromisoformat(text))


def at(seconds: float) -> int:
    """Return the time so many seconds after NOW."""
    return NOW_NS + int(seconds * SECOND)


def rules(quirks: Quirks = FIXED, kinds: frozenset[str] = DEFAULT_VERSIONED_KINDS) -> SpreadRules:
    """Return the rules of a reconcile."""
    return SpreadRules(kinds, quirks)


def subset(name: str, limit: MaxReplicas = None, **fields: Any) -> Subset:
    """Build a subset."""
    return Subset(name, limit, **fields)


def spread(
    *subsets: Subset,
    target: WorkloadReference | None = CLONE_SET,
    adaptive: int | None = None,
    name: str = "web",
    **fields: Any,
) -> WorkloadSpread:
    """Build a WorkloadSpread; ``adaptive`` is its rescheduleCriticalSeconds."""
    if adaptive is not None:
        fields["strategy"] = ScheduleStrategy(
            "Adaptive", AdaptiveStrategy(reschedule_critical_seconds=adaptive)
        )
    return WorkloadSpread("default", name, target, subsets, **fields)


def status(*subsets: SubsetStatus, **versions: tuple[SubsetStatus, ...]) -> WorkloadSpreadStatus:
    """Build a status: the overall list, and those of versions."""
    return WorkloadSpreadStatus(subsets=subsets, versions=versions)


def member(name: str, put_into: str | None = None, **fields: Any) -> SpreadPod:
    """Build a pod of CLONE_SET in a subset of the WorkloadSpread web."""
    injection = None if put_into is None else SubsetInjection("web", put_into)
    own: dict[str, Any] = {
        "controller": CLONE_SET,
        "owners": frozenset(["web-uid"]),
        "phase": "Running",
        "node": "node-1",
        "injection": injection,
    }
    return SpreadPod("default", name, **{**own, **fields})


def stuck(name: str, put_into: str, since: float) -> SpreadPod:
    """Build an unschedulable pod that was created some seconds ago."""
    return member(
        name, put_into, node="", phase="Pending", unschedulable=True, created_ns=at(-since)
    )


def workload(reference: WorkloadReference = CLONE_SET, **fields: Any) -> TargetWorkload:
    """Build the object that a reference refers to."""
    return TargetWorkload(reference.identity, "default", uid=reference.uid, **fields)


def replica_set(template_hash: str, **fields: Any) -> TargetWorkload:
    """Build a ReplicaSet of DEPLOYMENT."""
    labels = {"app": "web", "pod-template-hash": template_hash}
    identity = ObjectKey("apps", "ReplicaSet", f"web-{template_hash}")
    own = {"uid": f"{template_hash}-uid", "labels": labels, "controller": DEPLOYMENT}
    return TargetWorkload(identity, "default", **{**own, **fields})


def condition(status: str, since: float, reason: str = "", message: str = "") -> SubsetCondition:
    """Build a condition whose last transition was some seconds after NOW."""
    usual = {"True": "Sufficient", "False": "PodUnschedulable"}
    return SubsetCondition("Schedulable", status, reason or usual[status], message, at(since))


def term(key: str, *values: str) -> NodeTerm:
    """Build a node selector term for a label with one of these values."""
    return NodeTerm((Expression(key, "In", values),))


def around(*nodes: Node, patched: Iterable[str] = ()) -> GroupingContext:
    """Build a grouping context; ``patched`` are the names of pods that match the patch."""
    names = frozenset(patched)
    return GroupingContext({node.name: node for node in nodes}, lambda pod, _: pod.name in names)


def files(*documents: Mapping[str, Any]) -> WorkloadSpreadFiles:
    """Return documents as they are read from files."""
    manifests = [Manifest(each["kind"], encoded(each), "cluster.json") for each in documents]
    return WorkloadSpreadFiles(ClusterObjects(manifests, "cluster.json"))


def spread_json(*subsets: Document, name: str = "web", **spec: Any) -> Document:
    """Build a WorkloadSpread for the CloneSet web; ``spec`` adds or overrides fields."""
    target = target_json("CloneSet", CLONE_SET.api_version)
    fields = {"targetRef": target, "subsets": list(subsets), **spec}
    return manifest("WorkloadSpread", name, metadata={"uid": f"{name}-spread"}, spec=fields)


def in_zone(name: str, limit: MaxReplicas = None) -> Document:
    """Build a subset whose pods run in the zone of the same name."""
    selects = {"key": "zone", "operator": "In", "values": [name]}
    limited = {} if limit is None else {"maxReplicas": limit}
    return {"name": name, "requiredNodeSelector": {"matchExpressions": [selects]}, **limited}


def injected(subset: str, spread: str = "web") -> dict[str, str]:
    """Build the annotation of a pod that has been put into a subset."""
    return {MATCHED_WORKLOADSPREAD: write_injection(SubsetInjection(spread, subset))}


def target_json(kind: str, version: str = "apps/v1", name: str = "web") -> Document:
    """Build the reference to the target of a WorkloadSpread."""
    return {"apiVersion": version, "kind": kind, "name": name}


def allowed_kinds(*kinds: Document) -> Document:
    """Build OpenKruise's configuration, which lists further kinds that may be targets."""
    text = encoded({"workloads": list(kinds)}).decode()
    data = {"WorkloadSpread_Watch_Custom_Workload_WhiteList": text}
    return manifest("ConfigMap", "kruise-configuration", namespace="kruise-system", data=data)


def clone_set_json(replicas: int = 3, **spec: Any) -> Document:
    """Build the CloneSet web."""
    return manifest(
        "CloneSet", "web", metadata={"uid": "web-uid"}, spec={"replicas": replicas, **spec}
    )


def pod_of(name: str, put_into: str | None = None, **parts: Document) -> Document:
    """Build a pod of the CloneSet web; ``parts`` are added to metadata, spec or status."""
    controller = owner("web", "CloneSet", CLONE_SET.api_version, uid="web-uid", controller=True)
    metadata: Document = {"ownerReferences": [controller]}
    if put_into is not None:
        metadata["annotations"] = injected(put_into)
    return manifest(
        "Pod",
        name,
        metadata=metadata | parts.get("metadata", {}),
        spec={"containers": [{"name": "main", "image": "web:1"}]} | parts.get("spec", {}),
        status={"phase": "Running"} | parts.get("status", {}),
    )


def decoded(document: object) -> Any:
    """Return a document as it is after encoding and decoding."""
    return msgspec.json.decode(encoded(document))
