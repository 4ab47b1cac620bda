"""The EndpointSlice controller: the addresses of the pods that a service selects.

There are slices for each IP family of the service and for each set of port numbers, because a named
target port may have another number in each pod. A slice has up to 100 endpoints. An endpoint stays
in its slice. A service without pods has one slice without endpoints.

Source: k8s.io/endpointslice (reconciler.go, utils.go), kubernetes/pkg/controller/endpointslice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_address
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

from extender.controllers.context import ControllerContext
from extender.controllers.replicaset.controller_ref_manager import selects
from extender.controllers.replicaset.types import controller_reference
from extender.kube.controller_runtime.controller import Controller
from extender.kube.controller_runtime.event_recorder import ObjectReference
from extender.kube.decoders.object_meta import ObjectMeta
from extender.kube.informers.indexer import BY_NAMESPACE, namespace_of
from extender.kube.rest.resources import NODES, PODS, SERVICES, Resource
from fakeapi.controlplane.controllers.types import decode_node, decode_tolerantly
from fakeapi.controlplane.workloads.types import (
    WORKLOAD_PODS,
    ObjectKind,
    WorkloadPod,
    canonical,
)
from fakeapi.controlplane.workloads.workload_caches import WorkloadCaches
from policies.kubernetes.selectors import LabelSelector, equals_all

MAX_ENDPOINTS: Final = 100

_SERVICE_NAME: Final = "kubernetes.io/service-name"
_MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
_MANAGER: Final = "endpointslice-controller.k8s.io"
_HEADLESS: Final = "service.kubernetes.io/headless"
_ZONE: Final = "topology.kubernetes.io/zone"


class ServicePort(Struct, rename="camel"):
    """v1.ServicePort."""

    name: str = ""
    port: int = 0
    protocol: str = "TCP"
    target_port: int | str = 0
    app_protocol: str | None = None


class ServiceSpec(Struct, rename="camel"):
    """v1.ServiceSpec."""

    type: str = "ClusterIP"
    selector: dict[str, str] | None = None
    ports: list[ServicePort] | None = None
    ip_families: list[str] | None = None
    publish_not_ready_addresses: bool = False
    cluster_ip: str = field(default="", name="clusterIP")


class Service(Struct):
    """v1.Service."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: ServiceSpec = field(default_factory=ServiceSpec)

    @property
    def selector(self) -> LabelSelector | None:
        """The selector of its pods; None if it has no endpoints of its own."""
        if not self.spec.selector or self.spec.type == "ExternalName":
            return None
        return LabelSelector(equals_all(self.spec.selector))

    @property
    def reference(self) -> ObjectReference:
        """The object reference of Events about it."""
        meta = self.metadata
        return ObjectReference("v1", "Service", meta.namespace, meta.name, meta.uid)

    @property
    def slice_labels(self) -> dict[str, str]:
        """The labels of its slices."""
        own = {
            key: value
            for key, value in (self.metadata.labels or {}).items()
            if key not in (_SERVICE_NAME, _MANAGED_BY, _HEADLESS)
        }
        headless = {_HEADLESS: ""} if self.spec.cluster_ip in ("", "None") else {}
        return {**own, **headless, _SERVICE_NAME: self.metadata.name, _MANAGED_BY: _MANAGER}


class EndpointConditions(Struct):
    """discovery/v1.EndpointConditions."""

    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class TargetReference(Struct, omit_defaults=True):
    """The pod of an endpoint."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class Endpoint(Struct, rename="camel", omit_defaults=True):
    """discovery/v1.Endpoint."""

    addresses: list[str]
    conditions: EndpointConditions = field(default_factory=EndpointConditions)
    hostname: str | None = None
    node_name: str | None = None
    zone: str | None = None
    target_ref: TargetReference = field(default_factory=TargetReference)


class EndpointPort(Struct, rename="camel", omit_defaults=True):
    """discovery/v1.EndpointPort."""

    name: str
    port: int
    protocol: str
    app_protocol: str | None = None


class EndpointSlice(Struct, rename="camel"):
    """discovery/v1.EndpointSlice."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    address_type: str = ""
    endpoints: list[Endpoint] | None = None
    ports: list[EndpointPort] | None = None


SERVICE_KIND: Final = ObjectKind("Service", SERVICES, decode_tolerantly(Service))
ENDPOINT_SLICES: Final = ObjectKind(
    "EndpointSlice",
    Resource("discovery.k8s.io", "v1", "endpointslices", namespaced=True),
    decode_tolerantly(EndpointSlice),
)


class SliceContent(NamedTuple):
    """What the reconciler decides about a slice."""

    address_type: str
    endpoints: list[Endpoint]
    ports: list[EndpointPort]


def endpoint_ports(service: Service, pod: WorkloadPod) -> list[EndpointPort]:
    """Return the ports of a service at a pod, without those that the pod does not name."""
    found = ((each, _target(each, pod)) for each in service.spec.ports or ())
    return [
        EndpointPort(each.name, number, each.protocol, each.app_protocol)
        for each, number in found
        if number is not None
    ]


def _target(port: ServicePort, pod: WorkloadPod) -> int | None:
    if isinstance(port.target_port, int):
        return port.target_port or port.port
    for container in pod.spec.containers or ():
        for each in container.ports or ():
            if (each.name, each.protocol) == (port.target_port, port.protocol):
                return each.container_port
    return None


def make_endpoint(
    service: Service, pod: WorkloadPod, family: str, zones: Mapping[str, str]
) -> Endpoint | None:
    """Return the endpoint of a pod in an IP family; None if it has finished or has no address."""
    version = 6 if family == "IPv6" else 4
    addresses = [each.ip for each in pod.status.pod_ips or () if ip_version(each.ip) == version]
    if pod.finished or not addresses:
        return None
    meta, terminating = pod.metadata, pod.metadata.deleting
    ready = service.spec.publish_not_ready_addresses or (pod.ready and not terminating)
    named = pod.spec.hostname and pod.spec.subdomain == service.metadata.name
    return Endpoint(
        addresses,
        EndpointConditions(ready, pod.ready, terminating),
        pod.spec.hostname if named else None,
        pod.spec.node_name or None,
        zones.get(pod.spec.node_name),
        TargetReference("Pod", meta.namespace, meta.name, meta.uid),
    )


def ip_version(text: str) -> int | None:
    """Return the version of an IP address; None if it is malformed."""
    try:
        return ip_address(text).version
    except ValueError:
        return None


def plan_slices(
    service: Service,
    pods: Iterable[WorkloadPod],
    zones: Mapping[str, str],
    present: Sequence[EndpointSlice],
) -> tuple[dict[str, SliceContent], list[SliceContent]]:
    """Return the content of present slices by name, and of new ones; others are deleted."""
    changed: dict[str, SliceContent] = {}
    new: list[SliceContent] = []
    members = list(pods)
    for family in service.spec.ip_families or ["IPv4"]:
        contents = list(_group(service, members, family, zones))
        slices = [each for each in present if each.address_type == family]
        kept, left = _fill(contents, slices)
        spare = [each.metadata.name for each in slices if each.metadata.name not in kept]
        if not kept and not left:
            left = [SliceContent(family, [], [])]
        changed |= {**kept, **dict(zip(spare, left, strict=False))}
        new += left[len(spare) :]
    return changed, new


def _group(
    service: Service, pods: Iterable[WorkloadPod], family: str, zones: Mapping[str, str]
) -> Iterable[SliceContent]:
    """Return the endpoints of a family, grouped by their ports."""
    groups: dict[bytes, SliceContent] = {}
    for pod in pods:
        endpoint = make_endpoint(service, pod, family, zones)
        if endpoint is not None:
            ports = endpoint_ports(service, pod)
            content = SliceContent(family, [], ports)
            groups.setdefault(canonical(ports), content).endpoints.append(endpoint)
    return groups.values()


def _fill(
    contents: Iterable[SliceContent], slices: Sequence[EndpointSlice]
) -> tuple[dict[str, SliceContent], list[SliceContent]]:
    """Keep endpoints in their slices, and fill these up; return them, and the other endpoints."""
    kept: dict[str, SliceContent] = {}
    left: list[SliceContent] = []
    for family, endpoints, ports in contents:
        wanted = {each.target_ref.uid: each for each in endpoints}
        own = [each for each in slices if (each.ports or []) == ports]
        stay = {
            each.metadata.name: [
                wanted.pop(old.target_ref.uid)
                for old in each.endpoints or ()
                if old.target_ref.uid in wanted
            ]
            for each in own
        }
        rest = list(wanted.values())
        for name, members in stay.items():
            if members:
                room = MAX_ENDPOINTS - len(members)
                kept[name] = SliceContent(family, [*members, *rest[:room]], ports)
                rest = rest[room:]
        starts = range(0, len(rest), MAX_ENDPOINTS)
        left += [SliceContent(family, rest[i : i + MAX_ENDPOINTS], ports) for i in starts]
    return kept, left


class EndpointSliceController:
    """The component ``endpointslice``."""

    def __init__(self, context: ControllerContext) -> None:
        self._caches = WorkloadCaches(context, SERVICE_KIND, ENDPOINT_SLICES)
        self._pods = context.informers.of(PODS, WORKLOAD_PODS.decode)
        self._pods.objects.add_index(BY_NAMESPACE, namespace_of)
        self._nodes = context.informers.of(NODES, decode_node)
        self.controller = Controller("endpointslice", self._caches.queue, self._sync)

    async def run(self) -> None:
        """Reconcile the slices of services until cancelled."""
        await asyncio.gather(self._pods.wait_synced(), self._nodes.wait_synced())
        await self._caches.start()
        self._pods.objects.add_handler(_EndpointSlicePodEventHandler(self._caches))
        await self.controller.run()

    async def _sync(self, key: str) -> None:
        service = self._caches.current(key)
        if service is None or service.selector is None or service.metadata.deleting:
            return
        namespace = self._pods.objects.by(BY_NAMESPACE, service.metadata.namespace)
        pods = [each for each in namespace if selects(service, each)]
        nodes = {each.metadata.name: each for each in self._nodes.objects.values()}
        labels = {name: node.metadata.labels or {} for name, node in nodes.items()}
        zones = {name: found[_ZONE] for name, found in labels.items() if found.get(_ZONE)}
        present = [
            each
            for each in self._caches.controlled_by(service)
            if (each.metadata.labels or {}).get(_MANAGED_BY) == _MANAGER
        ]
        changed, new = plan_slices(service, pods, zones, present)
        await self._write(service, present, changed)
        for content in new:
            await self._caches.create(service, slice_document(service, content))

    async def _write(
        self,
        service: Service,
        present: Sequence[EndpointSlice],
        changed: Mapping[str, SliceContent],
    ) -> None:
        """Update the slices that differ, and delete those that are not needed."""
        labels = service.slice_labels
        for each in present:
            content = changed.get(each.metadata.name)
            if content is None:
                await self._caches.delete(each)
                continue
            before = (each.endpoints or [], each.ports or [], each.metadata.labels)
            if before != (content.endpoints, content.ports, labels):
                dropped = dict.fromkeys(each.metadata.labels or (), None)
                fields = {"endpoints": content.endpoints, "ports": content.ports}
                metadata = {"labels": {**dropped, **labels}}
                await self._caches.patch(service, each, {"metadata": metadata, **fields})


def slice_document(service: Service, content: SliceContent) -> dict[str, Any]:
    """Return a new slice of a service."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": f"{service.metadata.name}-",
            "labels": service.slice_labels,
            "ownerReferences": [controller_reference(service)],
        },
        "addressType": content.address_type,
        "endpoints": content.endpoints,
        "ports": content.ports,
    }


class _EndpointSlicePodEventHandler:
    """Enqueues the services that select a pod, or selected it before."""

    def __init__(self, caches: WorkloadCaches[Service, EndpointSlice]) -> None:
        self._caches = caches

    def added(self, item: WorkloadPod) -> None:
        self._caches.enqueue_selecting(item)

    def updated(self, old: WorkloadPod, new: WorkloadPod) -> None:
        if old.metadata.labels != new.metadata.labels:
            self.added(old)
        self.added(new)

    def removed(self, item: WorkloadPod) -> None:
        self.added(item)
