"""Topology labels: a pod has the zone and region labels of its node.

They are set when a pod is bound, or created with a node name, and replace existing labels. A
missing node has no labels.

Source: plugin/pkg/admission/podtopologylabels/admission.go, v1.37.
"""

from __future__ import annotations

from typing import Final

from fakeapi.api.rehearsing import ObjectReader
from fakeapi.kinds import ResourceInfo
from fakeapi.kinds.builtin import NODES
from fakeapi.store import Document

_LABELS: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def topology_labels(objects: ObjectReader, node: str) -> dict[str, str]:
    """Return the labels that pods take over from a node."""
    entry = objects.get(NODES, node) if node else None
    if entry is None:
        return {}
    return {label: entry.labels[label] for label in _LABELS if label in entry.labels}


def set_topology_labels(objects: ObjectReader, _kind: ResourceInfo, pod: Document) -> None:
    """Set the topology labels of a new pod from the node that it names, if any."""
    if found := topology_labels(objects, (pod.get("spec") or {}).get("nodeName") or ""):
        labels = pod["metadata"].get("labels") or {}
        pod["metadata"]["labels"] = {**labels, **found}
