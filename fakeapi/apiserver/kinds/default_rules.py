"""Default values as data: what the server writes into fields that a client omits.

The keys are definitions (without the prefix ``io.k8s.api.``). Fields are set in the order of a row,
before the defaults of nested objects. A row has one of three sources:

- upstream's defaulting functions (``SetDefaults_…``);
- fields that Go always encodes, even if they are empty: structs that are not pointers
  (``resources: {}``) and scalars without ``omitempty`` (``serviceName: ""``);
- required lists, which Go encodes as ``null`` if they are empty.

A field of :data:`VALUE_FIELDS` that is zero is missing, too.

Defaults that depend on other fields are code (:mod:`fakeapi.apiserver.defaulting.field_defaults`).

Sources: pkg/apis/*/v1/defaults.go; ``json:`` tags and ``+default`` markers of k8s.io/api, v1.37.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_PROBE: Final = {
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
}
_CONTAINER: Final = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_RBD: Final = {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}
_EVERY_QUARTER_MINUTE: Final = 15
_WEBHOOK: Final = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "timeoutSeconds": 10,
}
_LOAD_BALANCER: Final[Mapping[str, Any]] = {"loadBalancer": {}}
_GROUP_SPEC: Final[Mapping[str, Any]] = {"schedulingPolicy": {}, "disruptionMode": {"single": {}}}

DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "admissionregistration.v1.MatchResources": {
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
    },
    "admissionregistration.v1.MutatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
    "admissionregistration.v1.MutatingWebhook": _WEBHOOK | {"reinvocationPolicy": "Never"},
    "admissionregistration.v1.NamedRuleWithOperations": {"scope": "*"},
    "admissionregistration.v1.RuleWithOperations": {"scope": "*"},
    "admissionregistration.v1.ServiceReference": {"port": 443},
    "admissionregistration.v1.ValidatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
    "admissionregistration.v1.ValidatingWebhook": _WEBHOOK,
    "apps.v1.DaemonSet": {"spec": {}},
    "apps.v1.DaemonSetSpec": {
        "template": {},
        "updateStrategy": {},
        "revisionHistoryLimit": 10,
    },
    "apps.v1.DaemonSetUpdateStrategy": {"type": "RollingUpdate"},
    "apps.v1.Deployment": {"spec": {}},
    "apps.v1.DeploymentSpec": {
        "replicas": 1,
        "template": {},
        "strategy": {},
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    },
    "apps.v1.DeploymentStrategy": {"type": "RollingUpdate"},
    "apps.v1.ReplicaSet": {"spec": {}},
    "apps.v1.ReplicaSetSpec": {"replicas": 1, "template": {}},
    "apps.v1.RollingUpdateDaemonSet": {"maxUnavailable": 1, "maxSurge": 0},
    "apps.v1.RollingUpdateDeployment": {"maxUnavailable": "25%", "maxSurge": "25%"},
    "apps.v1.RollingUpdateStatefulSetStrategy": {"partition": 0, "maxUnavailable": 1},
    "apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy": {
        "whenDeleted": "Retain",
        "whenScaled": "Retain",
    },
    "apps.v1.StatefulSet": {"spec": {}},
    "apps.v1.StatefulSetSpec": {
        "replicas": 1,
        "template": {},
        "serviceName": "",
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {},
        "revisionHistoryLimit": 10,
        "persistentVolumeClaimRetentionPolicy": {},
    },
    "apps.v1.StatefulSetUpdateStrategy": {"type": "RollingUpdate"},
    "autoscaling.v1.HorizontalPodAutoscalerSpec": {
        "minReplicas": 1,
        "targetCPUUtilizationPercentage": 80,
    },
    "autoscaling.v2.HorizontalPodAutoscalerBehavior": {"scaleUp": {}, "scaleDown": {}},
    "autoscaling.v2.HorizontalPodAutoscaler": {"spec": {}},
    "autoscaling.v2.HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    "batch.v1.CronJobSpec": {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    },
    "batch.v1.JobTemplateSpec": {"metadata": {}, "spec": {}},
    "coordination.v1.Lease": {"spec": {}},
    "core.v1.AzureDiskVolumeSource": {
        "cachingMode": "ReadWrite",
        "fsType": "ext4",
        "readOnly": False,
        "kind": "Shared",
    },
    "core.v1.ConfigMapVolumeSource": {"defaultMode": 420},
    "core.v1.Container": _CONTAINER,
    "core.v1.ContainerPort": {"protocol": "TCP"},
    "core.v1.ContainerStatus": {"state": {}, "lastState": {}},
    "core.v1.DownwardAPIVolumeSource": {"defaultMode": 420},
    "core.v1.EndpointPort": {"protocol": "TCP"},
    "core.v1.EphemeralContainer": _CONTAINER,
    "core.v1.Event": {
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "eventTime": None,
        "reportingComponent": "",
        "reportingInstance": "",
    },
    "core.v1.GRPCAction": {"service": ""},
    "core.v1.HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "core.v1.HostPathVolumeSource": {"type": ""},
    "core.v1.ISCSIPersistentVolumeSource": {"iscsiInterface": "default"},
    "core.v1.ISCSIVolumeSource": {"iscsiInterface": "default"},
    "core.v1.LimitRangeSpec": {"limits": None},
    "core.v1.Node": {"spec": {}, "status": {}},
    "core.v1.NodeDaemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
    "core.v1.NodeStatus": {"daemonEndpoints": {}, "nodeInfo": {}},
    "core.v1.NodeSystemInfo": {
        "machineID": "",
        "systemUUID": "",
        "bootID": "",
        "kernelVersion": "",
        "osImage": "",
        "containerRuntimeVersion": "",
        "kubeletVersion": "",
        "kubeProxyVersion": "",
        "operatingSystem": "",
        "architecture": "",
    },
    "core.v1.ObjectFieldSelector": {"apiVersion": "v1"},
    "core.v1.PersistentVolumeClaim": {"spec": {}},
    "core.v1.PersistentVolumeClaimSpec": {"resources": {}, "volumeMode": "Filesystem"},
    "core.v1.PersistentVolumeClaimTemplate": {"metadata": {}},
    "core.v1.PersistentVolumeSpec": {
        "persistentVolumeReclaimPolicy": "Retain",
        "volumeMode": "Filesystem",
    },
    "core.v1.PodSpec": {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
    },
    "core.v1.PodTemplateSpec": {"metadata": {}, "spec": {}},
    "core.v1.Probe": _PROBE,
    "core.v1.ProjectedVolumeSource": {"sources": None, "defaultMode": 420},
    "core.v1.RBDPersistentVolumeSource": _RBD,
    "core.v1.RBDVolumeSource": _RBD,
    "core.v1.ReplicationControllerSpec": {"replicas": 1},
    "core.v1.ScaleIOPersistentVolumeSource": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
    "core.v1.ScaleIOVolumeSource": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
    "core.v1.Secret": {"type": "Opaque"},
    "core.v1.SecretVolumeSource": {"defaultMode": 420},
    "core.v1.Service": {"spec": {}},
    "core.v1.ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    "core.v1.ServicePort": {"protocol": "TCP"},
    "core.v1.ServiceSpec": {"sessionAffinity": "None", "type": "ClusterIP"},
    "core.v1.ServiceStatus": _LOAD_BALANCER,
    "discovery.v1.Endpoint": {"conditions": {}},
    "discovery.v1.EndpointSlice": {"endpoints": None, "ports": None},
    "discovery.v1.EndpointPort": {"name": "", "protocol": "TCP"},
    "events.v1.Event": {
        "eventTime": None,
        "regarding": {},
        "deprecatedSource": {},
        "deprecatedFirstTimestamp": None,
        "deprecatedLastTimestamp": None,
    },
    "flowcontrol.v1.FlowSchemaSpec": {"matchingPrecedence": 1000},
    "flowcontrol.v1.LimitedPriorityLevelConfiguration": {
        "nominalConcurrencyShares": 30,
        "lendablePercent": 0,
        "limitResponse": {},
    },
    "flowcontrol.v1.QueuingConfiguration": {"queues": 64, "handSize": 8, "queueLengthLimit": 50},
    "networking.v1.IngressServiceBackend": {"port": {}},
    "networking.v1.IngressStatus": _LOAD_BALANCER,
    "networking.v1.NetworkPolicyPort": {"protocol": "TCP"},
    "networking.v1.NetworkPolicySpec": {"podSelector": {}},
    "rbac.v1.ClusterRole": {"rules": None},
    "rbac.v1.Role": {"rules": None},
    "resource.v1.DeviceClaim": {"requests": None},
    "resource.v1.ExactDeviceRequest": {"allocationMode": "ExactCount"},
    "resource.v1.DeviceSubRequest": {"allocationMode": "ExactCount"},
    "resource.v1.DeviceToleration": {"operator": "Equal"},
    "resource.v1.ResourceClaimTemplateSpec": {"metadata": {}},
    "resource.v1.ResourceClaimSpec": {"devices": {}},
    "scheduling.v1alpha3.CompositePodGroup": {"spec": {}},
    "scheduling.v1alpha3.CompositePodGroupSpec": _GROUP_SPEC,
    "scheduling.v1beta1.CompositePodGroupTemplate": {"schedulingPolicy": {}},
    "scheduling.v1beta1.PodGroup": {"spec": {}},
    "scheduling.v1beta1.PodGroupSpec": _GROUP_SPEC,
    "scheduling.v1beta1.PodGroupTemplate": {"schedulingPolicy": {}, "schedulingConstraints": None},
    "scheduling.v1beta1.Workload": {"spec": {}},
    "scheduling.v1beta1.WorkloadSpec": {"podGroupTemplates": None},
    "scheduling.v1.PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"},
    "storage.v1.CSIDriver": {"spec": {}},
    "storage.v1.CSIDriverSpec": {
        "attachRequired": True,
        "podInfoOnMount": False,
        "storageCapacity": False,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "requiresRepublish": False,
        "seLinuxMount": False,
        "preventPodSchedulingIfMissing": False,
        "volumeLifecycleModes": ["Persistent"],
    },
    "storage.v1.CSINodeSpec": {"drivers": None},
    "storage.v1.StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
}

_POOL: Final = ("pool", "user", "keyring")
_STORAGE_MODE: Final = ("storageMode", "fsType")
_TERMINATION: Final = ("terminationMessagePath", "terminationMessagePolicy")
_TYPE: Final = ("type",)

VALUE_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "apps.v1.DaemonSetUpdateStrategy": _TYPE,
    "apps.v1.DeploymentStrategy": _TYPE,
    "apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy": ("whenDeleted", "whenScaled"),
    "apps.v1.StatefulSetSpec": ("podManagementPolicy",),
    "apps.v1.StatefulSetUpdateStrategy": _TYPE,
    "batch.v1.CronJobSpec": ("concurrencyPolicy",),
    "core.v1.Container": _TERMINATION,
    "core.v1.ContainerPort": ("protocol",),
    "core.v1.EndpointPort": ("protocol",),
    "core.v1.EphemeralContainer": _TERMINATION,
    "core.v1.HTTPGetAction": ("path", "scheme"),
    "core.v1.ISCSIPersistentVolumeSource": ("iscsiInterface",),
    "core.v1.ISCSIVolumeSource": ("iscsiInterface",),
    "core.v1.ObjectFieldSelector": ("apiVersion",),
    "core.v1.PersistentVolumeSpec": ("persistentVolumeReclaimPolicy",),
    "core.v1.PodSpec": ("restartPolicy", "dnsPolicy", "schedulerName"),
    "core.v1.Probe": tuple(_PROBE),
    "core.v1.RBDPersistentVolumeSource": _POOL,
    "core.v1.RBDVolumeSource": _POOL,
    "core.v1.ScaleIOPersistentVolumeSource": _STORAGE_MODE,
    "core.v1.ScaleIOVolumeSource": _STORAGE_MODE,
    "core.v1.Secret": _TYPE,
    "core.v1.ServicePort": ("protocol",),
    "core.v1.ServiceSpec": ("sessionAffinity", "type"),
    "flowcontrol.v1.FlowSchemaSpec": ("matchingPrecedence",),
    "flowcontrol.v1.QueuingConfiguration": ("queues", "handSize", "queueLengthLimit"),
    "resource.v1.DeviceSubRequest": ("allocationMode",),
    "resource.v1.DeviceToleration": ("operator",),
    "resource.v1.ExactDeviceRequest": ("allocationMode",),
}
"""Fields with defaults that are values in Go, not pointers: ``""`` or 0 is a missing field."""

SCALE_UP: Final[Mapping[str, Any]] = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": _EVERY_QUARTER_MINUTE},
        {"type": "Percent", "value": 100, "periodSeconds": _EVERY_QUARTER_MINUTE},
    ],
}
SCALE_DOWN: Final[Mapping[str, Any]] = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": _EVERY_QUARTER_MINUTE}],
}
"""The default scaling rules of a HorizontalPodAutoscaler's behavior, field by field."""
