"""Topology labels: a pod bears the zone and the region of the node that it runs on.

They are written when a pod is bound, or created with its node named, over labels that it had. A
node that is not there gives none.

Source: plugin/pkg/admission/podtopologylabels/admission.go, v1.37.
"""

from __future__ import annotations

from typing import Final

from fakeapi.api.rehearsing import Objects
from fakeapi.kinds import Kind
from fakeapi.kinds.builtin import NODES
from fakeapi.store import Document

_LABELS: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def topology_labels(objects: Objects, node: str) -> dict[str, str]:
    """Return the labels of a node that its pods bear, too."""
    entry = objects.get(NODES, node) if node else None
    if entry is None:
        return {}
    return {label: entry.labels[label] for label in _LABELS if label in entry.labels}


def label_by_node(objects: Objects, _kind: Kind, pod: Document) -> None:
    """Write the labels of its node, if it names one, over those of a new pod."""
    if found := topology_labels(objects, (pod.get("spec") or {}).get("nodeName") or ""):
        labels = pod["metadata"].get("labels") or {}
        pod["metadata"]["labels"] = {**labels, **found}
