"""The resource requests of a pod, summed as kube-scheduler sums them.

Containers run together, init containers one after another, and restartable init containers
(sidecars) from their turn to the end. With sidecar S1 before init I1, and app container A:

    while I1 runs:   S1 + I1
    afterwards:      S1 + A
    the pod requests, of each resource, the larger of the two, plus its overhead

Pod-level requests (cpu, memory and huge pages of ``spec.resources``) replace the containers' sum.
For a running pod, what the kubelet reports as allocated or in force may exceed the spec (in-place
resize); which of these counts, and when, depends on the release.

Source: PodRequests in k8s.io/component-helpers/resource/helpers.go and NodeInfo in
pkg/scheduler/framework/types.go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from policies.kubernetes.devices import IMPLICIT_RESOURCE, ExtendedRequest
from policies.kubernetes.feature_gates import FeatureGate
from policies.kubernetes.quantity import milli, units
from policies.kubernetes.releases import Release, StatusResources
from policies.kubernetes.snapshot import Resources

Amounts = Mapping[str, int]
"""Resource name → nanos (see policies.kubernetes.quantity)."""

NO_AMOUNTS: Amounts = {}


@dataclass(frozen=True, slots=True)
class ContainerRequests:
    """One container: the requests of its spec and of its status (None: not reported).

    ``allocated`` is status.allocatedResources, ``actuated`` status.resources.requests, and
    ``reported`` whether status.resources is present at all.
    """

    spec: Amounts = field(default_factory=dict)
    allocated: Amounts | None = None
    actuated: Amounts | None = None
    reported: bool = False
    restartable: bool = False


@dataclass(frozen=True, slots=True)
class PodResources:
    """A pod's containers, its init containers in order, and the resources of the pod as a whole.

    ``pod_level`` is spec.resources.requests; ``pod_actuated`` and ``pod_allocated`` are the same in
    the status; ``resize_infeasible``: the kubelet cannot grant the resize that the spec requests,
    by its condition; ``resize_status_infeasible``: by status.resize, which counts before 1.33.
    """

    containers: tuple[ContainerRequests, ...] = ()
    init_containers: tuple[ContainerRequests, ...] = ()
    overhead: Amounts = field(default_factory=dict)
    pod_level: Amounts = field(default_factory=dict)
    pod_actuated: Amounts | None = None
    pod_allocated: Amounts | None = None
    resize_infeasible: bool = False
    resize_status_infeasible: bool = False


_POD_LEVEL_RESIZE = FeatureGate.IN_PLACE_POD_LEVEL_RESOURCES_VERTICAL_SCALING

Choice = Callable[[ContainerRequests], Amounts]


def pod_requests(pod: PodResources, release: Release) -> Resources:
    """Return the requests of ``pod`` by the rules of ``release``: milliCPU, else whole units."""
    total = dict(_container_requests(pod, release))
    if FeatureGate.POD_LEVEL_RESOURCES in release.gates:
        effective = _pod_level(pod, release)
        total.update({name: n for name, n in effective.items() if is_pod_level(name)})
    return as_resources(_sum((total, pod.overhead)))


def container_spec_total(pod: PodResources) -> Amounts:
    """Return the requests of the containers' specs alone, over the pod's life, in nanos."""
    return _aggregate(pod, _spec, _spec)


def extended_requests(pod: PodResources) -> tuple[ExtendedRequest, ...]:
    """Return the device requests for the extended resources of ``pod``, sorted by name.

    Each container has one for each resource. Init containers that run once reuse devices of those
    that start later and keep running; for what is missing they share one request, the largest.
    Source: createRequestsAndMappings in
    pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go.
    """
    requested: dict[str, dict[int, ExtendedRequest]] = {}
    for number, container in enumerate((*pod.init_containers, *pod.containers)):
        for place, name in enumerate(sorted(container.spec)):
            if is_backed_by_devices(name):
                request_name = f"container-{number}-request-{place}"
                request = ExtendedRequest(request_name, name, units(container.spec[name]))
                requested.setdefault(name, {})[number] = request
    once = {n for n, each in enumerate(pod.init_containers) if not each.restartable}
    found = (each for name in sorted(requested) for each in _device_requests(requested[name], once))
    return tuple(sorted(found, key=lambda each: each.name))


def _device_requests(
    requests: dict[int, ExtendedRequest], once: Collection[int]
) -> Iterator[ExtendedRequest]:
    """Yield the requests for one resource, which are by container; ``once`` are those run once."""
    kept_later = largest = 0
    shared = None
    for number in reversed(requests):
        count = requests[number].count
        if number not in once:
            kept_later += count
        elif count - kept_later > 0 and count - kept_later >= largest:
            shared, largest = number, count - kept_later
    for number, request in requests.items():
        if number == shared:
            yield replace(request, count=largest)
        elif number not in once and request.count > 0:
            yield request


def is_pod_level(name: str) -> bool:
    """Return whether a pod as a whole may request a resource (IsSupportedPodLevelResource)."""
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def as_resources(amounts: Amounts) -> Resources:
    """Round a resource list to the units of NodeResourcesFit; unknown names are left out."""
    return Resources(
        milli_cpu=milli(amounts.get("cpu", 0)),
        memory=units(amounts.get("memory", 0)),
        ephemeral_storage=units(amounts.get("ephemeral-storage", 0)),
        scalars={n: units(v) for n, v in amounts.items() if v and is_scalar(n)},
    )


def is_extended(name: str) -> bool:
    """Return whether a resource is an extended one, such as ``example.com/gpu``.

    Source: IsExtendedResourceName in pkg/apis/core/v1/helper/helpers.go; names are valid already.
    """
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def is_backed_by_devices(name: str) -> bool:
    """Return whether a DeviceClass may back a resource (IsDRAExtendedResourceName)."""
    return is_extended(name) or name.startswith(IMPLICIT_RESOURCE)


def is_scalar(name: str) -> bool:
    """Return whether a resource is counted by name: extended, huge pages, attachable volumes.

    Source: IsScalarResourceName in pkg/scheduler/util/utils.go. The API server validates names, so
    only the families are distinguished here.
    """
    if "/" not in name:
        return name.startswith(("hugepages-", "attachable-volumes-"))
    return "kubernetes.io/" in name or not name.startswith("requests.")


def _container_requests(pod: PodResources, release: Release) -> Amounts:
    match release.status_resources:
        case StatusResources.IGNORED:
            return _aggregate(pod, _spec, _spec)
        case StatusResources.ALLOCATED:
            return _aggregate(pod, lambda c: _larger_of_two(c, c.allocated, pod), _spec)
        case StatusResources.ACTUATED:
            return _aggregate(pod, lambda c: _larger_of_two(c, _actuated(c), pod), _spec)
        case StatusResources.PER_CONTAINER:
            return _aggregate(pod, lambda c: _larger_of_container(c, pod), _spec)
        case StatusResources.PER_POD:
            return _larger_of_sums(pod, release)


def _larger_of_two(
    container: ContainerRequests, reported: Amounts | None, pod: PodResources
) -> Amounts:
    if reported is None or container.restartable:
        return container.spec
    return reported if pod.resize_status_infeasible else _largest((container.spec, reported))


def _actuated(container: ContainerRequests) -> Amounts | None:
    return container.actuated or NO_AMOUNTS if container.reported else None


def _larger_of_container(container: ContainerRequests, pod: PodResources) -> Amounts:
    if not container.reported:
        return container.spec
    reported = (container.actuated or NO_AMOUNTS, container.allocated or NO_AMOUNTS)
    return _largest(reported if pod.resize_infeasible else (container.spec, *reported))


def _larger_of_sums(pod: PodResources, release: Release) -> Amounts:
    fallback = _none if pod.resize_infeasible else _spec
    pod_level_status = _POD_LEVEL_RESIZE in release.gates
    if pod_level_status and pod.pod_allocated is not None and pod.pod_actuated is not None:
        reported: tuple[Amounts, ...] = (pod.pod_actuated, pod.pod_allocated)
    else:
        choices: tuple[Choice, Choice] = (
            lambda c: _first(c.actuated, c.allocated, fallback(c)),
            lambda c: _first(c.allocated, fallback(c)),
        )
        reported = tuple(_aggregate(pod, choice, choice) for choice in choices)
    spec = () if pod.resize_infeasible else (_aggregate(pod, _spec, _spec),)
    return _largest((*spec, *reported))


def _pod_level(pod: PodResources, release: Release) -> Amounts:
    if not any(is_pod_level(name) for name in pod.pod_level):
        return NO_AMOUNTS
    if _POD_LEVEL_RESIZE not in release.gates or pod.pod_actuated is None:
        return pod.pod_level
    spec = NO_AMOUNTS if pod.resize_infeasible else pod.pod_level
    effective = _largest((spec, pod.pod_actuated, pod.pod_allocated or NO_AMOUNTS))
    if release.status_resources is StatusResources.PER_POD:
        return effective
    return {name: effective.get(name, 0) for name in pod.pod_level}


def _aggregate(pod: PodResources, chosen: Choice, chosen_once: Choice) -> Amounts:
    """Sum over the pod's life; ``chosen_once`` is for init containers that run once and end."""
    running = [chosen(c) for c in pod.containers]
    sidecars: Amounts = NO_AMOUNTS
    peaks: list[Amounts] = []
    for container in pod.init_containers:
        own = chosen(container) if container.restartable else chosen_once(container)
        total = _sum((sidecars, own))
        peaks.append(total)
        if container.restartable:
            sidecars = total
    return _largest((_sum((*running, sidecars)), *peaks))


def _spec(container: ContainerRequests) -> Amounts:
    return container.spec


def _none(_: ContainerRequests) -> Amounts:
    return NO_AMOUNTS


def _first(*choices: Amounts | None) -> Amounts:
    return next((choice for choice in choices if choice is not None), NO_AMOUNTS)


def _sum(lists: Iterable[Amounts]) -> Amounts:
    total: dict[str, int] = {}
    for amounts in lists:
        for name, nanos in amounts.items():
            total[name] = total.get(name, 0) + nanos
    return total


def _largest(lists: Iterable[Amounts]) -> Amounts:
    largest: dict[str, int] = {}
    for amounts in lists:
        for name, nanos in amounts.items():
            largest[name] = max(largest.get(name, nanos), nanos)
    return largest
