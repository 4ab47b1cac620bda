"""The objects that kube-apiserver creates for itself and for its clients.

- the Service ``default/kubernetes``, with Endpoints and an EndpointSlice that lead to this server;
- the ServiceCIDR of the cluster, and the IPAddress of that Service;
- one APIService for each group and version;
- the ConfigMaps ``kube-system/extension-apiserver-authentication``, which extension API servers
  read, and ``kube-apiserver-legacy-service-account-token-tracking``;
- the roles and bindings of :mod:`fakeapi.apiserver.auth.bootstrap_policy`;
- the FlowSchemas and PriorityLevelConfigurations of
  :mod:`fakeapi.apiserver.registry.flow_control_objects`.

Like kube-apiserver, the server creates those of networks, APIServices and flow control again when
they are deleted.

Sources: pkg/controlplane/controller (kubernetesservice, defaultservicecidr, legacytokentracking,
clusterauthenticationtrust), pkg/controlplane/reconcilers, cmd/kube-apiserver/app/aggregator.go,
v1.37.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from fakeapi.apiserver.auth.bootstrap_policy import read_bootstrap_policy
from fakeapi.apiserver.defaulting.service_allocator import CLUSTER_IP_RANGE
from fakeapi.apiserver.registry.flow_control_objects import flow_control_objects
from fakeapi.apiserver.store.object_store import Document

RESTORED_KINDS: Final = (
    "APIService",
    "EndpointSlice",
    "Endpoints",
    "FlowSchema",
    "IPAddress",
    "PriorityLevelConfiguration",
    "Service",
    "ServiceCIDR",
)
"""The kinds of the objects that the server creates again."""

_KUBERNETES: Final = "kubernetes"
_CLUSTER_IP: Final = str(CLUSTER_IP_RANGE[1])

_GROUP_PRIORITIES: Final = {
    "": 18000,
    "apps": 17800,
    "events.k8s.io": 17750,
    "authentication.k8s.io": 17700,
    "authorization.k8s.io": 17600,
    "autoscaling": 17500,
    "batch": 17400,
    "certificates.k8s.io": 17300,
    "networking.k8s.io": 17200,
    "policy": 17100,
    "rbac.authorization.k8s.io": 17000,
    "storage.k8s.io": 16800,
    "apiextensions.k8s.io": 16700,
    "admissionregistration.k8s.io": 16700,
    "scheduling.k8s.io": 16600,
    "coordination.k8s.io": 16500,
    "node.k8s.io": 16300,
    "resource.k8s.io": 16200,
    "discovery.k8s.io": 16200,
    "flowcontrol.apiserver.k8s.io": 16100,
    "internal.apiserver.k8s.io": 16000,
    "storagemigration.k8s.io": 15800,
}
_VERSION_PRIORITIES: Final = {("", "v1"): 1, ("autoscaling", "v2"): 30}
_STAGE_PRIORITIES: Final = {"alpha": 1, "beta": 9, "": 15}


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a server listens; ``certificate`` is the CA of its clients in PEM, or ""."""

    host: str
    port: int
    certificate: str = ""


def system_objects(
    address: ServerAddress, versions: Iterable[tuple[str, str]], now: str
) -> list[Document]:
    """Return the objects; ``versions`` are the served groups and versions, ``now`` a timestamp."""
    return [
        *_kubernetes_service(address),
        *_service_addresses(now),
        *_config_maps(address, now),
        *(_api_service(group, version, now) for group, version in versions if _has_priority(group)),
        *read_bootstrap_policy(),
        *flow_control_objects(),
    ]


def _kubernetes_service(address: ServerAddress) -> Iterator[Document]:
    ip = _ip_of(address.host)
    family = f"IPv{ip_address(ip).version}"
    port = {"name": "https", "port": address.port, "protocol": "TCP"}
    labels = {"component": "apiserver", "provider": _KUBERNETES}
    spec = {
        "clusterIP": _CLUSTER_IP,
        "clusterIPs": [_CLUSTER_IP],
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [{**port, "port": 443, "targetPort": address.port}],
        "sessionAffinity": "None",
        "type": "ClusterIP",
    }
    service = _document("v1", "Service", _KUBERNETES, "default", labels)
    yield {**service, "spec": spec, "status": {"loadBalancer": {}}}
    labels = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    endpoints = _document("v1", "Endpoints", _KUBERNETES, "default", labels)
    yield {**endpoints, "subsets": [{"addresses": [{"ip": ip}], "ports": [port]}]}
    labels = {"kubernetes.io/service-name": _KUBERNETES}
    endpoint_slice = _document(
        "discovery.k8s.io/v1", "EndpointSlice", _KUBERNETES, "default", labels
    )
    endpoint = {"addresses": [ip], "conditions": {"ready": True}}
    yield {**endpoint_slice, "addressType": family, "endpoints": [endpoint], "ports": [port]}


def _ip_of(host: str) -> str:
    try:
        return str(ip_address(host))
    except ValueError:
        return "127.0.0.1"


def _service_addresses(now: str) -> Iterator[Document]:
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "",
        "message": "Kubernetes default Service CIDR is ready",
        "lastTransitionTime": now,
    }
    cidr = _document("networking.k8s.io/v1", "ServiceCIDR", _KUBERNETES)
    yield {**cidr, "spec": {"cidrs": [str(CLUSTER_IP_RANGE)]}, "status": {"conditions": [ready]}}
    labels = {
        "ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    }
    parent = {"group": "", "resource": "services", "namespace": "default", "name": _KUBERNETES}
    address = _document("networking.k8s.io/v1", "IPAddress", _CLUSTER_IP, "", labels)
    yield {**address, "spec": {"parentRef": parent}}


def _config_maps(address: ServerAddress, now: str) -> Iterator[Document]:
    tracking = "kube-apiserver-legacy-service-account-token-tracking"
    since = {"since": now.partition("T")[0]}
    yield {**_document("v1", "ConfigMap", tracking, "kube-system"), "data": since}
    authentication = _document(
        "v1", "ConfigMap", "extension-apiserver-authentication", "kube-system"
    )
    data = {"client-ca-file": address.certificate} if address.certificate else {}
    yield {**authentication, "data": data}


def _has_priority(group: str) -> bool:
    return group in _GROUP_PRIORITIES


def _api_service(group: str, version: str, now: str) -> Document:
    stage = next((stage for stage in ("alpha", "beta") if stage in version), "")
    priority = _VERSION_PRIORITIES.get((group, version), _STAGE_PRIORITIES[stage])
    spec = {
        **({"group": group} if group else {}),
        "version": version,
        "groupPriorityMinimum": _GROUP_PRIORITIES[group],
        "versionPriority": priority,
    }
    available = {
        "type": "Available",
        "status": "True",
        "reason": "Local",
        "message": "Local APIServices are always available",
        "lastTransitionTime": now,
    }
    labels = {"kube-aggregator.kubernetes.io/automanaged": "onstart"}
    document = _document(
        "apiregistration.k8s.io/v1", "APIService", f"{version}.{group}", "", labels
    )
    return {**document, "spec": spec, "status": {"conditions": [available]}}


def _document(
    api_version: str, kind: str, name: str, namespace: str = "", labels: Document | None = None
) -> Document:
    metadata: Document = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
