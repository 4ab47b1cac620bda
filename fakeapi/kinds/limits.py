"""Simple rules of validation as data: which fields must be set, and to what.

By definition (without the prefix ``io.k8s.api.``). Rules that look at several fields at once are
code (:mod:`fakeapi.api.validating`).

Source: pkg/apis/*/validation/validation.go, v1.37.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_NATURAL: Final = (0, None)
_LARGEST: Final = 2**31 - 1
_REPLICAS: Final[Mapping[str, tuple[int | None, int | None]]] = {"replicas": _NATURAL}

REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "core.v1.Container": ("name", "image"),
    "core.v1.EnvVar": ("name",),
    "core.v1.EphemeralContainer": ("name", "image"),
    "core.v1.PodSpec": ("containers",),
    "core.v1.Volume": ("name",),
    "core.v1.VolumeMount": ("name", "mountPath"),
    "storage.v1.StorageClass": ("provisioner",),
}
"""Fields that may be neither absent nor empty."""

CHOICES: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
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
"""Fields that, if they are set, have one of a few values; in upstream's order."""

RANGES: Final[Mapping[str, Mapping[str, tuple[int | None, int | None]]]] = {
    "apps.v1.DeploymentSpec": _REPLICAS,
    "apps.v1.ReplicaSetSpec": _REPLICAS,
    "apps.v1.StatefulSetSpec": _REPLICAS,
    "batch.v1.JobSpec": {
        "parallelism": _NATURAL,
        "completions": _NATURAL,
        "backoffLimit": _NATURAL,
    },
    "core.v1.PodSpec": {"activeDeadlineSeconds": (1, _LARGEST)},
    "core.v1.Probe": {
        "initialDelaySeconds": _NATURAL,
        "timeoutSeconds": _NATURAL,
        "periodSeconds": _NATURAL,
        "successThreshold": _NATURAL,
        "failureThreshold": _NATURAL,
    },
    "core.v1.ReplicationControllerSpec": _REPLICAS,
}
"""Integers with a least value, and often a greatest."""

UNIQUE: Final[Mapping[str, Mapping[str, str]]] = {
    "core.v1.PodSpec": {
        "volumes": "name",
        "initContainers": "name",
        "containers": "name",
        "ephemeralContainers": "name",
    },
    "core.v1.ServiceSpec": {"ports": "name"},
}
"""Lists whose elements differ in one key."""

DNS_LABELS: Final[Mapping[str, tuple[str, ...]]] = {
    "core.v1.Container": ("name",),
    "core.v1.EphemeralContainer": ("name",),
    "core.v1.Volume": ("name",),
}
"""Fields that hold a DNS label."""

IMMUTABLE: Final[Mapping[str, tuple[str, ...]]] = {
    "daemonsets.apps": ("spec.selector",),
    "deployments.apps": ("spec.selector",),
    "jobs.batch": ("spec.completions", "spec.selector", "spec.template", "spec.completionMode"),
    "replicasets.apps": ("spec.selector",),
    "secrets": ("type",),
    "statefulsets.apps": ("spec.selector", "spec.serviceName", "spec.podManagementPolicy"),
}
"""By resource, fields that never change once they are set."""
