"""Validation rules of single fields as data: required fields, enums and ranges.

The keys are definitions (without the prefix ``io.k8s.api.``). Rules on several fields are code
(:mod:`fakeapi.apiserver.validation`).

Source: pkg/apis/*/validation/validation.go, v1.37.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_NON_NEGATIVE: Final = (0, None)
_MAX_INT32: Final = 2**31 - 1
_REPLICAS: Final[Mapping[str, tuple[int | None, int | None]]] = {"replicas": _NON_NEGATIVE}

REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "core.v1.Container": ("name", "image"),
    "core.v1.EnvVar": ("name",),
    "core.v1.EphemeralContainer": ("name", "image"),
    "core.v1.PodSpec": ("containers",),
    "core.v1.Volume": ("name",),
    "core.v1.VolumeMount": ("name", "mountPath"),
    "storage.v1.StorageClass": ("provisioner",),
}
"""Fields that must be present and not empty."""

SUPPORTED_VALUES: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "core.v1.Container": {"imagePullPolicy": ("Always", "IfNotPresent", "Never")},
    "core.v1.ContainerPort": {"protocol": _PROTOCOLS},
    "core.v1.EphemeralContainer": {"imagePullPolicy": ("Always", "IfNotPresent", "Never")},
    "core.v1.PodSpec": {
        "dnsPolicy": ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
    },
    "core.v1.ServicePort": {"protocol": _PROTOCOLS},
    "core.v1.ServiceSpec": {
        "type": ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort"),
        "sessionAffinity": ("ClientIP", "None"),
    },
    "core.v1.Toleration": {"effect": _EFFECTS},
    "scheduling.v1.PriorityClass": {"preemptionPolicy": ("PreemptLowerPriority", "Never")},
}
"""Enum fields with their supported values, in upstream's order; an absent field is valid."""

RANGES: Final[Mapping[str, Mapping[str, tuple[int | None, int | None]]]] = {
    "apps.v1.DeploymentSpec": _REPLICAS,
    "apps.v1.ReplicaSetSpec": _REPLICAS,
    "apps.v1.StatefulSetSpec": _REPLICAS,
    "batch.v1.JobSpec": {
        "parallelism": _NON_NEGATIVE,
        "completions": _NON_NEGATIVE,
        "backoffLimit": _NON_NEGATIVE,
    },
    "core.v1.PodSpec": {"activeDeadlineSeconds": (1, _MAX_INT32)},
    "core.v1.Probe": {
        "initialDelaySeconds": _NON_NEGATIVE,
        "timeoutSeconds": _NON_NEGATIVE,
        "periodSeconds": _NON_NEGATIVE,
        "successThreshold": _NON_NEGATIVE,
        "failureThreshold": _NON_NEGATIVE,
    },
    "core.v1.ReplicationControllerSpec": _REPLICAS,
}
"""Integer fields with their minimum and maximum; None is no limit."""

UNIQUE: Final[Mapping[str, Mapping[str, str]]] = {
    "core.v1.PodSpec": {
        "volumes": "name",
        "initContainers": "name",
        "containers": "name",
        "ephemeralContainers": "name",
        "resourceClaims": "name",
    },
    "core.v1.ServiceSpec": {"ports": "name"},
}
"""Lists whose elements must have different values of one key."""

DNS_LABELS: Final[Mapping[str, tuple[str, ...]]] = {
    "core.v1.Container": ("name",),
    "core.v1.EphemeralContainer": ("name",),
    "core.v1.Volume": ("name",),
}
"""Fields whose value must be a DNS label."""

IMMUTABLE: Final[Mapping[str, tuple[str, ...]]] = {
    "daemonsets.apps": ("spec.selector",),
    "deployments.apps": ("spec.selector",),
    "jobs.batch": ("spec.completions", "spec.selector", "spec.template", "spec.completionMode"),
    "replicasets.apps": ("spec.selector",),
    "resourceclaimtemplates.resource.k8s.io": ("spec",),
    "secrets": ("type",),
    "statefulsets.apps": ("spec.selector", "spec.serviceName", "spec.podManagementPolicy"),
}
"""Immutable fields, by resource."""
