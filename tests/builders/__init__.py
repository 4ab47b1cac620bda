"""Builders: the objects of a test in one line each, with defaults for all other fields.

Values that decisions read::

    snapshot(
        node("node-1", cpu="4"),
        pod("web", on="node-1", cpu="500m", priority=10, labels={"app": "web"}),
        budget("web", match={"app": "web"}, allowed=1),
    )

and the same things as Kubernetes writes them, for decoders, servers and files::

    pod_json("web", on="node-1", cpu="500m"), node_json("node-1", cpu="4"), pdb_json("web", ...)

Amounts are Kubernetes quantities; resources beyond cpu, memory and storage go into ``others``. A
pod's UID is its name unless a test says otherwise, and times are whole seconds after the epoch
(``started=7``), since only their order matters. ``pod_json`` takes ``metadata``, ``spec`` and
``status`` to add or override any field; ``pod_request`` builds a pod as clients create it. Builders
of definitions of custom resources are in ``tests.builders.definitions``.
"""

from __future__ import annotations

from policies.testing.values import (
    LATE,
    MEASURED,
    NO_LABELS,
    SECOND,
    amounts,
    budget,
    claim,
    holding,
    host_port,
    late_claim,
    node,
    on_nodes,
    pod,
    pod_group,
    snapshot,
    taint,
    toleration,
    volume,
    without_causes,
    workload,
)
from tests.builders.manifests import (
    Document,
    blocking,
    container_json,
    controller_spec,
    encoded,
    event_json,
    manifest,
    node_json,
    owner,
    pdb_json,
    pod_json,
    pod_request,
    pod_spec,
    rfc3339,
    running_pod,
    thing,
    without_none,
    workload_json,
)

__all__ = [
    "LATE",
    "MEASURED",
    "NO_LABELS",
    "SECOND",
    "Document",
    "amounts",
    "blocking",
    "budget",
    "claim",
    "container_json",
    "controller_spec",
    "encoded",
    "event_json",
    "holding",
    "host_port",
    "late_claim",
    "manifest",
    "node",
    "node_json",
    "on_nodes",
    "owner",
    "pdb_json",
    "pod",
    "pod_group",
    "pod_json",
    "pod_request",
    "pod_spec",
    "rfc3339",
    "running_pod",
    "snapshot",
    "taint",
    "thing",
    "toleration",
    "volume",
    "without_causes",
    "without_none",
    "workload",
    "workload_json",
]
