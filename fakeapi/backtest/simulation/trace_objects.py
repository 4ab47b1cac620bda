"""The objects of the API server that a trace becomes: nodes, priority classes and Jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fakeapi.backtest.traces.trace import TraceJob, TraceNode, TracePriorityClass

_MAX_PODS: Final = 110
_UNLIMITED: Final = 2**31 - 1


def node_document(node: TraceNode) -> dict[str, Any]:
    """Return a Node; without a number of pods it takes 110, as a kubelet by default."""
    amounts = _quantities({"pods": _MAX_PODS, **node.allocatable})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": dict(node.labels)},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def priority_class_document(priority_class: TracePriorityClass) -> dict[str, Any]:
    """Return a PriorityClass."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": priority_class.name},
        "value": priority_class.value,
    }


def job_document(job: TraceJob, class_name: str) -> dict[str, Any]:
    """Return an indexed Job whose pods start again as often as they are stopped."""
    requests = _quantities(job.requests)
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "priorityClassName": class_name,
        "containers": [
            {
                "name": "work",
                "image": "work",
                "resources": {"requests": requests, "limits": _extended(requests)},
            }
        ],
    }
    if job.node_labels:
        pod["affinity"] = {"nodeAffinity": _required_labels(job.node_labels)}
    return {
        "metadata": {"name": job.name},
        "spec": {
            "completionMode": "Indexed",
            "completions": job.pods,
            "parallelism": job.pods,
            "backoffLimit": _UNLIMITED,
            "template": {"spec": pod},
        },
    }


def _quantities(amounts: Mapping[str, int]) -> dict[str, str]:
    return {
        name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in amounts.items()
    }


def _extended(requests: Mapping[str, str]) -> dict[str, str]:
    """Return the extended resources, whose limits must equal the requests."""
    return {name: amount for name, amount in requests.items() if "/" in name}


def _required_labels(labels: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    expressions = [
        {"key": key, "operator": "In", "values": list(values)} for key, values in labels.items()
    ]
    terms = [{"matchExpressions": expressions}]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
