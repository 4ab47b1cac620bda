"""What an object of each kind charges to a quota, and which resource names of a quota it affects.

    kind                     charges                                       updates are charged
    pods                     pods, and until they finish what they         if resized, or if the
                             request and limit                             deadline is set or unset
    services                 services, services.nodeports and              yes
                             services.loadbalancers
    persistentvolumeclaims   persistentvolumeclaims and requests.storage,  yes, also of the status
                             and both again for the storage class
    resourceclaims           the devices of each device class              yes
    any other                its number                                    no

Each also charges ``count/RESOURCE.GROUP``. Events are not counted. A pod that has been terminating
for longer than its grace period charges its number only. Upstream also charges ResourceClaims for
extended resources that DeviceClasses back; here only the pods are charged for them.

Sources: kubernetes/pkg/quota/v1/evaluator/core, pkg/quota/v1/install;
k8s.io/apiserver/pkg/quota/v1/generic/evaluator.go, v1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from extender.kube.decoders.object_meta import parse_time
from fakeapi.quota.pod_resources import (
    charged_limits,
    charged_requests,
    container_resources,
    has_pod_level_resources,
)
from fakeapi.quota.resource_list import (
    NOTHING,
    ONE,
    ZERO,
    Object,
    ResourceList,
    ResourceQuantity,
    count,
    largest,
    objects_at,
    read_resource_list,
    section,
    total,
)
from fakeapi.quota.scopes import (
    InScope,
    claim_in_scope,
    in_no_scope,
    is_best_effort,
    is_terminating,
    pod_in_scope,
    volume_attributes_classes,
)
from policies.kubernetes.pod_requests import is_backed_by_devices
from policies.kubernetes.quantity import NANOS, units

PODS: Final = "pods"
SERVICES: Final = "services"
VOLUME_CLAIMS: Final = "persistentvolumeclaims"
RESOURCE_CLAIMS: Final = "resourceclaims.resource.k8s.io"

_ALIASES: Final = frozenset(("configmaps", "replicationcontrollers", "resourcequotas", "secrets"))
_NOT_COUNTED: Final = frozenset(("events", "events.events.k8s.io"))
_COUNT: Final = "count/"
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")

_MUST_BE_SPECIFIED: Final = frozenset(
    f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in ("cpu", "memory")
)
_POD_NAMES: Final = frozenset(
    (
        PODS,
        *_COMPUTE,
        *(f"requests.{name}" for name in _COMPUTE),
        *(f"limits.{name}" for name in _COMPUTE),
    )
)
_SERVICE_NAMES: Final = frozenset((SERVICES, "services.nodeports", "services.loadbalancers"))
_CLAIM_NAMES: Final = (VOLUME_CLAIMS, "requests.storage")
_OF_STORAGE_CLASS: Final = ".storageclass.storage.k8s.io/"
_OF_DEVICE_CLASS: Final = ".deviceclass.resource.k8s.io/devices"
_MOST_DEVICES: Final = 32

Usage = Callable[[Object, int], ResourceList]
"""Returns what an object charges at a time, in seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Evaluator:
    """What objects of one resource charge.

    ``affects`` returns whether they affect a resource name of a quota, ``on_update`` whether an
    update of them, or of a subresource, is charged.
    """

    resource: str
    usage: Usage
    affects: Callable[[str], bool]
    in_scope: InScope = in_no_scope
    on_update: Callable[[str, Object, Object], bool] = lambda _subresource, _new, _old: False
    missing: Callable[[Object, Collection[str]], str] = lambda _object, _names: ""


@cache
def evaluator_of(resource: str) -> Evaluator | None:
    """Return the evaluator of a resource such as ``deployments.apps``; None: not counted."""
    if resource in _NOT_COUNTED:
        return None
    return _SPECIAL.get(resource) or _object_count(resource)


def counted_resources(name: str) -> Iterator[str]:
    """Yield the resources whose objects affect a resource name of a quota."""
    counted = name.removeprefix(_COUNT)
    if counted != name and counted not in _SPECIAL and counted not in _NOT_COUNTED:
        yield counted
    elif name in _ALIASES:
        yield name
    for resource, evaluator in _SPECIAL.items():
        if evaluator.affects(name):
            yield resource


def charge_fingerprint(resource: str, decode: Callable[[], Object]) -> Hashable:
    """Return a value that differs when an update has changed what an object charges, and where.

    ``decode`` returns the object; it is not called for objects that only their number charges.
    """
    evaluator = _SPECIAL.get(resource)
    if evaluator is None:
        return None
    item = decode()
    usage = sorted((name, amount.nanos) for name, amount in evaluator.usage(item, 0).items())
    scopes = is_terminating(item), is_best_effort(item), volume_attributes_classes(item)
    return *usage, *scopes


def _object_count(resource: str) -> Evaluator:
    names = {_COUNT + resource, *_ALIASES.intersection((resource,))}
    charge = dict.fromkeys(names, ONE)
    return Evaluator(resource, lambda _object, _now: charge, names.__contains__)


def _affects_pods(name: str) -> bool:
    extended = name.startswith("requests.") and is_backed_by_devices(name[len("requests.") :])
    huge_pages = name.startswith(("hugepages-", "requests.hugepages-"))
    return name in _POD_NAMES or name == _COUNT + PODS or extended or huge_pages


def _pod_usage(pod: Object, now: int) -> ResourceList:
    if not charges_compute(pod, now):
        return {_COUNT + PODS: ONE}
    used = compute_usage(charged_requests(pod), charged_limits(pod))
    return {_COUNT + PODS: ONE, PODS: ONE, **used}


def charges_compute(pod: Object, now: int) -> bool:
    """Return whether a pod charges more than its number: it has not finished or outlived itself."""
    if section(pod, "status").get("phase") in ("Succeeded", "Failed"):
        return False
    metadata = section(pod, "metadata")
    deleted, grace = metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")
    if deleted is None or not isinstance(grace, int):
        return True
    return now <= parse_time(deleted) // NANOS + grace


def compute_usage(requests: ResourceList, limits: ResourceList) -> ResourceList:
    """Return what requests and limits charge, by the resource names of quotas."""
    used: dict[str, ResourceQuantity] = {}
    for name, amount in requests.items():
        if name in _COMPUTE or name.startswith("hugepages-"):
            used[name] = used[f"requests.{name}"] = amount
        elif is_backed_by_devices(name):
            used[f"requests.{name}"] = amount
    used.update({f"limits.{name}": q for name, q in limits.items() if name in _COMPUTE})
    return used


def _missing_of_pod(pod: Object, names: Collection[str]) -> str:
    """Return the message of the resources that containers must specify for a quota."""
    required = _MUST_BE_SPECIFIED.intersection(names)
    if not required or has_pod_level_resources(pod):
        return ""
    spec = section(pod, "spec")
    missing: dict[str, set[str]] = {}
    for group in ("containers", "initContainers"):
        for container in objects_at(spec, group):
            lists = (container_resources(container, field) for field in ("requests", "limits"))
            for name in required.difference(compute_usage(*lists)):
                missing.setdefault(name, set()).add(str(container.get("name", "")))
    parts = [f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing)]
    return f"must specify {'; '.join(parts)}" if parts else ""


def _pod_update(subresource: str, pod: Object, old: Object) -> bool:
    if subresource:
        return subresource == "resize"
    return is_terminating(pod) is not is_terminating(old)


def _service_usage(service: Object, _now: int) -> ResourceList:
    spec = section(service, "spec")
    kind, ports = spec.get("type"), list(objects_at(spec, "ports"))
    node_ports = len(ports) if kind in ("NodePort", "LoadBalancer") else 0
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
        node_ports = sum(1 for port in ports if port.get("nodePort"))
    return {
        _COUNT + SERVICES: ONE,
        SERVICES: ONE,
        "services.nodeports": count(node_ports),
        "services.loadbalancers": ONE if kind == "LoadBalancer" else ZERO,
    }


def _affects_volume_claims(name: str) -> bool:
    of_class = tuple(_OF_STORAGE_CLASS + each for each in _CLAIM_NAMES)
    return name in _CLAIM_NAMES or name == _COUNT + VOLUME_CLAIMS or name.endswith(of_class)


def _volume_claim_usage(claim: Object, _now: int) -> ResourceList:
    used = {_COUNT + VOLUME_CLAIMS: ONE, VOLUME_CLAIMS: ONE}
    storage_class = _storage_class(claim)
    if storage_class:
        used[f"{storage_class}{_OF_STORAGE_CLASS}{VOLUME_CLAIMS}"] = ONE
    storage = _requested_storage(claim)
    if storage is not None:
        used["requests.storage"] = storage
        if storage_class:
            used[f"{storage_class}{_OF_STORAGE_CLASS}requests.storage"] = storage
    return used


def _storage_class(claim: Object) -> str:
    annotated = section(claim, "metadata", "annotations").get(
        "volume.beta.kubernetes.io/storage-class"
    )
    return str(annotated or section(claim, "spec").get("storageClassName") or "")


def _requested_storage(claim: Object) -> ResourceQuantity | None:
    """Return the requested or the larger allocated storage, in whole bytes."""
    requested = read_resource_list(section(claim, "spec", "resources", "requests"))
    allocated = read_resource_list(section(claim, "status", "allocatedResources"))
    if "storage" not in requested:
        return None
    found = largest(requested, allocated)["storage"]
    return (
        ResourceQuantity(units(found.nanos) * NANOS, found.form) if found.nanos % NANOS else found
    )


def _affects_resource_claims(name: str) -> bool:
    return name == _COUNT + RESOURCE_CLAIMS or name.endswith(_OF_DEVICE_CLASS)


def _resource_claim_usage(claim: Object, _now: int) -> ResourceList:
    charges = [
        largest(*map(_devices, objects_at(request, "firstAvailable")))
        if request.get("firstAvailable")
        else _devices(section(request, "exactly"))
        for request in objects_at(section(claim, "spec", "devices"), "requests")
    ]
    return total({_COUNT + RESOURCE_CLAIMS: ONE}, *charges)


def _devices(request: Object) -> ResourceList:
    """Return the devices of a request; "All" are as many as can be allocated."""
    if not request:
        return NOTHING
    mode, number = request.get("allocationMode"), request.get("count")
    devices = _MOST_DEVICES if mode == "All" else 0
    if mode == "ExactCount" and isinstance(number, int):
        devices = number
    return {f"{request.get('deviceClassName', '')}{_OF_DEVICE_CLASS}": count(devices)}


def _whole_object(subresource: str, _object: Object, _old: Object) -> bool:
    return not subresource


_SPECIAL: Final = {
    PODS: Evaluator(PODS, _pod_usage, _affects_pods, pod_in_scope, _pod_update, _missing_of_pod),
    SERVICES: Evaluator(
        SERVICES,
        _service_usage,
        lambda name: name in _SERVICE_NAMES or name == _COUNT + SERVICES,
        on_update=_whole_object,
    ),
    VOLUME_CLAIMS: Evaluator(
        VOLUME_CLAIMS,
        _volume_claim_usage,
        _affects_volume_claims,
        claim_in_scope,
        lambda subresource, _new, _old: subresource in ("", "status"),
    ),
    RESOURCE_CLAIMS: Evaluator(
        RESOURCE_CLAIMS,
        _resource_claim_usage,
        _affects_resource_claims,
        on_update=_whole_object,
    ),
}
