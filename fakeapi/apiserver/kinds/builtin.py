"""The built-in kinds: the generated table with the overrides of upstream's strategies.

Scope, names, verbs, subresources and schemas come from the archive
(:mod:`fakeapi.apiserver.kinds.schemas`). This module has a row for each kind whose strategy differs
from the default, and the kinds of documents that are sent to subresources and never stored.

Source: upstream's ``pkg/registry/*/*/strategy.go`` and ``storage/storage.go`` (``Generation = 1``,
``Status =`` in PrepareForCreate, ``AllowUnconditionalUpdate``, ``AllowCreateOnUpdate``,
``ReturnDeletedObject``), and the field label conversions of ``pkg/apis/*/*/conversion.go``, v1.37.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Literal, TypedDict

from fakeapi.apiserver.kinds.resource_info import (
    ResourceInfo,
    ResourceRegistry,
    SelectableField,
    Subresource,
)
from fakeapi.apiserver.kinds.schemas import read_kinds, struct_of


class StrategyOverrides(TypedDict, total=False):
    """The fields of :class:`ResourceInfo` that a row may set."""

    first_status: Mapping[str, Any] | None
    first_spec_finalizers: tuple[str, ...]
    finalizing_phase: str
    deletion_finalizer: str
    deletion_condition: Mapping[str, str]
    name_label: str
    deprecation: str
    graceful: bool
    undeletable: tuple[str, ...]
    undeletable_why: str
    dependents: Literal["delete", "orphan", "ignore"]
    selectable: tuple[SelectableField, ...]


def _field(label: str, absent: str = "") -> SelectableField:
    return SelectableField(label, (tuple(label.split(".")),), absent)


def _frozen(**status: Any) -> Mapping[str, Any]:
    return MappingProxyType(status)


_OBJECT_REFERENCE_FIELDS: Final = (
    "kind",
    "namespace",
    "name",
    "uid",
    "apiVersion",
    "resourceVersion",
    "fieldPath",
)

_STRATEGY_OVERRIDES: Final[Mapping[str, StrategyOverrides]] = {
    "certificatesigningrequests.certificates.k8s.io": {"selectable": (_field("spec.signerName"),)},
    "clustertrustbundles.certificates.k8s.io": {"selectable": (_field("spec.signerName"),)},
    "customresourcedefinitions.apiextensions.k8s.io": {
        "deletion_finalizer": "customresourcecleanup.apiextensions.k8s.io",
        "deletion_condition": _frozen(
            type="Terminating",
            status="True",
            reason="InstanceDeletionPending",
            message=(
                "CustomResourceDefinition marked for deletion; CustomResource deletion will begin "
                "soon"
            ),
        ),
    },
    "daemonsets.apps": {
        "first_status": _frozen(
            currentNumberScheduled=0,
            numberMisscheduled=0,
            desiredNumberScheduled=0,
            numberReady=0,
        ),
    },
    "componentstatuses": {"deprecation": "v1 ComponentStatus is deprecated in v1.19+"},
    "endpoints": {
        "deprecation": (
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
        ),
    },
    "events": {
        "dependents": "ignore",
        "selectable": (
            *(_field(f"involvedObject.{name}") for name in _OBJECT_REFERENCE_FIELDS),
            _field("reason"),
            _field("reportingComponent"),
            SelectableField("source", (("source", "component"), ("reportingComponent",))),
            _field("type"),
        ),
    },
    "events.events.k8s.io": {
        "dependents": "ignore",
        "selectable": (
            *(_field(f"regarding.{name}") for name in _OBJECT_REFERENCE_FIELDS),
            _field("reason"),
            _field("reportingController"),
            _field("type"),
        ),
    },
    "horizontalpodautoscalers.autoscaling/v1": {
        "first_status": _frozen(currentReplicas=0, desiredReplicas=0),
    },
    "horizontalpodautoscalers.autoscaling/v2": {
        "first_status": _frozen(desiredReplicas=0, currentMetrics=None),
    },
    "ingresses.networking.k8s.io": {"first_status": _frozen(loadBalancer={})},
    "jobs.batch": {
        "dependents": "orphan",
        "selectable": (SelectableField("status.successful", (("status", "succeeded"),), "0"),),
    },
    "namespaces": {
        "first_status": _frozen(phase="Active"),
        "first_spec_finalizers": ("kubernetes",),
        "finalizing_phase": "Terminating",
        "name_label": "kubernetes.io/metadata.name",
        "undeletable": ("default", "kube-system", "kube-public"),
        "undeletable_why": "this namespace may not be deleted",
        "selectable": (
            SelectableField("name", (("metadata", "name"),)),
            _field("status.phase"),
        ),
    },
    "nodes": {
        "first_status": None,
        "selectable": (_field("spec.unschedulable", absent="false"),),
    },
    "persistentvolumeclaims": {"first_status": _frozen(phase="Pending")},
    "persistentvolumes": {"first_status": _frozen(phase="Pending")},
    "podcertificaterequests.certificates.k8s.io": {
        "selectable": (_field("spec.signerName"), _field("spec.podName"), _field("spec.nodeName")),
    },
    "poddisruptionbudgets.policy": {
        "first_status": _frozen(
            disruptionsAllowed=0, currentHealthy=0, desiredHealthy=0, expectedPods=0
        ),
    },
    "pods": {
        "first_status": _frozen(phase="Pending"),
        "graceful": True,
        "selectable": (
            _field("spec.nodeName"),
            _field("spec.restartPolicy"),
            _field("spec.schedulerName"),
            _field("spec.serviceAccountName"),
            _field("spec.hostNetwork", absent="false"),
            _field("status.phase"),
            _field("status.podIP"),
            _field("status.nominatedNodeName"),
        ),
    },
    "priorityclasses.scheduling.k8s.io": {
        "undeletable": ("system-cluster-critical", "system-node-critical"),
        "undeletable_why": "this is a system priority class and cannot be deleted",
    },
    "replicasets.apps": {
        "first_status": _frozen(replicas=0),
        "selectable": (_field("status.replicas", absent="0"),),
    },
    "replicationcontrollers": {
        "dependents": "orphan",
        "first_status": _frozen(replicas=0),
        "selectable": (_field("status.replicas", absent="0"),),
    },
    "resourceslices.resource.k8s.io": {
        "selectable": (_field("spec.nodeName"), _field("spec.driver"), _field("spec.pool.name")),
    },
    "secrets": {"selectable": (_field("type"),)},
    "services": {
        "first_status": _frozen(loadBalancer={}),
        "selectable": (_field("spec.clusterIP"), _field("spec.type")),
    },
    "statefulsets.apps": {"first_status": _frozen(replicas=0, availableReplicas=0)},
    "volumeattachments.storage.k8s.io": {"first_status": _frozen(attached=False)},
}

_GENERATIONS: Final = frozenset(
    (
        "customresourcedefinitions",
        "cronjobs",
        "daemonsets",
        "deployments",
        "deviceclasses",
        "devicetaintrules",
        "endpointslices",
        "flowschemas",
        "horizontalpodautoscalers",
        "ingressclasses",
        "ingresses",
        "jobs",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
        "networkpolicies",
        "poddisruptionbudgets",
        "pods",
        "podtemplates",
        "priorityclasses",
        "prioritylevelconfigurations",
        "replicasets",
        "replicationcontrollers",
        "resourceslices",
        "statefulsets",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    )
)
_CONDITIONAL_UPDATE: Final = frozenset(
    (
        "clustertrustbundles",
        "compositepodgroups",
        "csidrivers",
        "csinodes",
        "csistoragecapacities",
        "customresourcedefinitions",
        "leases",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
        "podcertificaterequests",
        "poddisruptionbudgets",
        "podgroups",
        "runtimeclasses",
        "storageversionmigrations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
        "volumeattachments",
        "workloads",
    )
)
_CREATED_BY_UPDATE: Final = frozenset(
    (
        "clusterrolebindings",
        "clusterroles",
        "endpoints",
        "events",
        "leases",
        "limitranges",
        "rolebindings",
        "roles",
        "runtimeclasses",
        "services",
    )
)
_RETURNED_WHEN_DELETED: Final = frozenset(
    (
        "csidrivers",
        "csinodes",
        "deviceclasses",
        "namespaces",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "podtemplates",
        "resourceclaims",
        "resourceclaimtemplates",
        "resourcequotas",
        "resourceslices",
        "serviceaccounts",
        "services",
        "storageclasses",
        "volumeattachments",
        "volumeattributesclasses",
    )
)


def _kind(row: Mapping[str, Any]) -> ResourceInfo:
    plural, group, version = row["plural"], row["group"], row["version"]
    resource = f"{plural}.{group}" if group else plural
    return ResourceInfo(
        group=group,
        version=version,
        kind=row["kind"],
        plural=plural,
        singular=row["kind"].lower(),
        namespaced=row["namespaced"],
        short_names=tuple(row["shortNames"]),
        categories=tuple(row["categories"]),
        verbs=tuple(row["verbs"]),
        subresources=MappingProxyType(
            {name: Subresource(name, *rest) for name, rest in _subresources(row)}
        ),
        definition=row["definition"],
        structure=partial(struct_of, row["definition"]),
        generations=plural in _GENERATIONS,
        unconditional_update=plural not in _CONDITIONAL_UPDATE,
        create_on_update=plural in _CREATED_BY_UPDATE,
        returns_deleted=plural in _RETURNED_WHEN_DELETED,
        **_STRATEGY_OVERRIDES.get(resource, _STRATEGY_OVERRIDES.get(f"{resource}/{version}", {})),
    )


def _subresources(
    row: Mapping[str, Any],
) -> list[tuple[str, tuple[str, str, str, tuple[str, ...]]]]:
    return [
        (name, (group, version, kind, tuple(verbs)))
        for name, (group, version, kind, verbs) in row["subresources"].items()
    ]


BUILTIN: Final = ResourceRegistry(_kind(row) for row in read_kinds())


def _builtin(group: str, plural: str) -> ResourceInfo:
    kind = BUILTIN.at(group, "v1", plural)
    assert kind is not None, plural
    return kind


BINDINGS: Final = _builtin("", "bindings")
CLUSTER_ROLES: Final = _builtin("rbac.authorization.k8s.io", "clusterroles")
CUSTOM_RESOURCE_DEFINITIONS: Final = _builtin("apiextensions.k8s.io", "customresourcedefinitions")
EVENTS: Final = _builtin("", "events")
FLOW_SCHEMAS: Final = _builtin("flowcontrol.apiserver.k8s.io", "flowschemas")
MUTATING_POLICIES: Final = _builtin("admissionregistration.k8s.io", "mutatingadmissionpolicies")
MUTATING_POLICY_BINDINGS: Final = _builtin(
    "admissionregistration.k8s.io", "mutatingadmissionpolicybindings"
)
MUTATING_WEBHOOKS: Final = _builtin("admissionregistration.k8s.io", "mutatingwebhookconfigurations")
VALIDATING_POLICIES: Final = _builtin("admissionregistration.k8s.io", "validatingadmissionpolicies")
VALIDATING_POLICY_BINDINGS: Final = _builtin(
    "admissionregistration.k8s.io", "validatingadmissionpolicybindings"
)
VALIDATING_WEBHOOKS: Final = _builtin(
    "admissionregistration.k8s.io", "validatingwebhookconfigurations"
)
LEASES: Final = _builtin("coordination.k8s.io", "leases")
LIMIT_RANGES: Final = _builtin("", "limitranges")
CERTIFICATE_SIGNING_REQUESTS: Final = _builtin("certificates.k8s.io", "certificatesigningrequests")
NAMESPACES: Final = _builtin("", "namespaces")
NODES: Final = _builtin("", "nodes")
PERSISTENT_VOLUME_CLAIMS: Final = _builtin("", "persistentvolumeclaims")
PODS: Final = _builtin("", "pods")
POD_DISRUPTION_BUDGETS: Final = _builtin("policy", "poddisruptionbudgets")
PRIORITY_LEVELS: Final = _builtin("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations")
PRIORITY_CLASSES: Final = _builtin("scheduling.k8s.io", "priorityclasses")
REPLICA_SETS: Final = _builtin("apps", "replicasets")
RESOURCE_QUOTAS: Final = _builtin("", "resourcequotas")
RUNTIME_CLASSES: Final = _builtin("node.k8s.io", "runtimeclasses")
SERVICE_ACCOUNTS: Final = _builtin("", "serviceaccounts")
SERVICES: Final = _builtin("", "services")
STORAGE_CLASSES: Final = _builtin("storage.k8s.io", "storageclasses")


def _request(group: str, kind: str, definition: str) -> ResourceInfo:
    plural = f"{kind.lower()}s"
    return ResourceInfo(
        group=group,
        version="v1",
        kind=kind,
        plural=plural,
        singular=kind.lower(),
        namespaced=True,
        definition=definition,
        structure=partial(struct_of, definition),
    )


EVICTION: Final = _request("policy", "Eviction", "io.k8s.api.policy.v1.Eviction")
SCALE: Final = _request("autoscaling", "Scale", "io.k8s.api.autoscaling.v1.Scale")
TOKEN_REQUEST: Final = _request(
    "authentication.k8s.io", "TokenRequest", "io.k8s.api.authentication.v1.TokenRequest"
)
