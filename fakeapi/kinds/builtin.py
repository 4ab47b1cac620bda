"""The built-in kinds that this server knows, one value each.

Sources: upstream's ``pkg/registry/*/*/strategy.go`` and the ``patchMergeKey`` tags in
``k8s.io/api``; both read at v1.37.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from fakeapi.kinds.kind import Kind, Kinds, Path, SelectableField


def _paths(table: Mapping[str, str]) -> Mapping[Path, str]:
    return MappingProxyType({tuple(path.split(".")): key for path, key in table.items()})


def _field(label: str, absent: str = "") -> SelectableField:
    return SelectableField(label, (tuple(label.split(".")),), absent)


_OWNERS = {"metadata.ownerReferences": "uid"}

_CONTAINER = {
    "ports": "containerPort",
    "env": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
}

_POD_SPEC = {
    "volumes": "name",
    "initContainers": "name",
    "containers": "name",
    "ephemeralContainers": "name",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "schedulingGates": "name",
    "resourceClaims": "name",
    **{
        f"{containers}.{path}": key
        for containers in ("containers", "initContainers", "ephemeralContainers")
        for path, key in _CONTAINER.items()
    },
}

_POD_STATUS = {
    "conditions": "type",
    "hostIPs": "ip",
    "podIPs": "ip",
    "resourceClaimStatuses": "name",
}

PODS = Kind(
    group="",
    version="v1",
    kind="Pod",
    plural="pods",
    singular="pod",
    namespaced=True,
    short_names=("po",),
    categories=("all",),
    subresources=("status",),
    first_status=MappingProxyType({"phase": "Pending"}),
    generations=True,
    graceful=True,
    returns_deleted=True,
    selectable=(
        _field("spec.nodeName"),
        _field("spec.restartPolicy"),
        _field("spec.schedulerName"),
        _field("spec.serviceAccountName"),
        _field("spec.hostNetwork", absent="false"),
        _field("status.phase"),
        _field("status.podIP"),
        _field("status.nominatedNodeName"),
    ),
    merge_keys=_paths(
        _OWNERS
        | {f"spec.{path}": key for path, key in _POD_SPEC.items()}
        | {f"status.{path}": key for path, key in _POD_STATUS.items()}
    ),
)

NODES = Kind(
    group="",
    version="v1",
    kind="Node",
    plural="nodes",
    singular="node",
    namespaced=False,
    short_names=("no",),
    subresources=("status",),
    first_status=None,
    selectable=(_field("spec.unschedulable", absent="false"),),
    merge_keys=_paths(_OWNERS | {"status.conditions": "type", "status.addresses": "type"}),
    merge_sets=(("metadata", "finalizers"), ("spec", "podCIDRs")),
)

NAMESPACES = Kind(
    group="",
    version="v1",
    kind="Namespace",
    plural="namespaces",
    singular="namespace",
    namespaced=False,
    short_names=("ns",),
    subresources=("status",),
    first_status=MappingProxyType({"phase": "Active"}),
    first_spec_finalizers=("kubernetes",),
    finalizing_phase="Terminating",
    name_label="kubernetes.io/metadata.name",
    returns_deleted=True,
    undeletable=("default", "kube-system", "kube-public"),
    selectable=(SelectableField("name", (("metadata", "name"),)), _field("status.phase")),
    merge_keys=_paths(_OWNERS | {"status.conditions": "type"}),
)

_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")

EVENTS = Kind(
    group="",
    version="v1",
    kind="Event",
    plural="events",
    singular="event",
    namespaced=True,
    short_names=("ev",),
    create_on_update=True,
    selectable=(
        *(_field(f"involvedObject.{name}") for name in _INVOLVED),
        _field("reason"),
        _field("reportingComponent"),
        SelectableField("source", (("source", "component"), ("reportingComponent",))),
        _field("type"),
    ),
    merge_keys=_paths(_OWNERS),
)

POD_DISRUPTION_BUDGETS = Kind(
    group="policy",
    version="v1",
    kind="PodDisruptionBudget",
    plural="poddisruptionbudgets",
    singular="poddisruptionbudget",
    namespaced=True,
    short_names=("pdb",),
    subresources=("status",),
    first_status=MappingProxyType(
        {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
    ),
    generations=True,
    unconditional_update=False,
    merge_keys=_paths(_OWNERS | {"status.conditions": "type"}),
)

PRIORITY_CLASSES = Kind(
    group="scheduling.k8s.io",
    version="v1",
    kind="PriorityClass",
    plural="priorityclasses",
    singular="priorityclass",
    namespaced=False,
    short_names=("pc",),
    generations=True,
    merge_keys=_paths(_OWNERS),
)

REPLICA_SETS = Kind(
    group="apps",
    version="v1",
    kind="ReplicaSet",
    plural="replicasets",
    singular="replicaset",
    namespaced=True,
    short_names=("rs",),
    categories=("all",),
    subresources=("status",),
    first_status=MappingProxyType({"replicas": 0}),
    generations=True,
    selectable=(_field("status.replicas", absent="0"),),
    merge_keys=_paths(
        _OWNERS
        | {"status.conditions": "type", "spec.template.metadata.ownerReferences": "uid"}
        | {f"spec.template.spec.{path}": key for path, key in _POD_SPEC.items()}
    ),
    merge_sets=(
        ("metadata", "finalizers"),
        ("spec", "template", "metadata", "finalizers"),
    ),
)

LEASES = Kind(
    group="coordination.k8s.io",
    version="v1",
    kind="Lease",
    plural="leases",
    singular="lease",
    namespaced=True,
    create_on_update=True,
    unconditional_update=False,
    merge_keys=_paths(_OWNERS),
)

BUILTIN = Kinds(
    (
        EVENTS,
        NAMESPACES,
        NODES,
        PODS,
        REPLICA_SETS,
        LEASES,
        POD_DISRUPTION_BUDGETS,
        PRIORITY_CLASSES,
    )
)
