"""The requests and limits of a pod: those of its spec, and those that a quota charges.

Both are the larger of what the containers use together and what each init container needs in its
turn, and resources of the pod as a whole replace those of its containers.

    used by          statuses of a resize    overhead    resources of the pod
    LimitRange       ignored                 ignored     cpu, memory
    ResourceQuota    the largest counts      added       cpu, memory, huge pages

Sources: plugin/pkg/admission/limitranger/admission.go (podRequests, podLimits);
k8s.io/component-helpers/resource/helpers.go (PodRequests, PodLimits), v1.37.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fakeapi.quota.resource_list import (
    NOTHING,
    Object,
    ResourceList,
    largest,
    objects_at,
    read_resource_list,
    section,
    total,
)
from policies.kubernetes.pod_requests import is_pod_level

Choice = Callable[[Object], ResourceList]
"""Returns the resources that count for a container."""

_LIMIT_RANGE_POD_LEVEL: Final = ("cpu", "memory")


def spec_resources(pod: Object, field: str) -> ResourceList:
    """Return the ``requests`` or ``limits`` of a pod's spec, as a LimitRange compares them."""
    of_pod = read_resource_list(section(pod, "spec", "resources", field))
    replaced = {name: q for name, q in of_pod.items() if name in _LIMIT_RANGE_POD_LEVEL}
    return {**_over_life(pod, lambda each: container_resources(each, field)), **replaced}


def charged_requests(pod: Object) -> ResourceList:
    """Return the requests that a quota charges for a pod."""
    actuated = _of_status(pod, ("resources", "requests"), ("allocatedResources",))
    allocated = _of_status(pod, ("allocatedResources",))
    return total(_charged(pod, "requests", actuated, allocated), _overhead(pod))


def charged_limits(pod: Object) -> ResourceList:
    """Return the limits that a quota charges for a pod."""
    limits = _charged(pod, "limits", _of_status(pod, ("resources", "limits")))
    overhead = {n: q for n, q in _overhead(pod).items() if n in limits and limits[n].nanos}
    return total(limits, overhead)


def has_pod_level_resources(pod: Object) -> bool:
    """Return whether a pod requests or limits resources as a whole."""
    resources = section(pod, "spec", "resources")
    names = (*section(resources, "requests"), *section(resources, "limits"))
    return any(map(is_pod_level, names))


def container_resources(container: Object, field: str) -> ResourceList:
    """Return the ``requests`` or ``limits`` of a container's spec."""
    return read_resource_list(section(container, "resources", field))


def _overhead(pod: Object) -> ResourceList:
    return read_resource_list(section(pod, "spec", "overhead"))


def _charged(pod: Object, field: str, *reported: Choice) -> ResourceList:
    fallback = _nothing if _resize_infeasible(pod) else _spec(field)
    lists = [_over_life(pod, _first(choose, fallback)) for choose in (fallback, *reported)]
    of_pod = read_resource_list(section(pod, "spec", "resources", field))
    return {**largest(*lists), **{name: q for name, q in of_pod.items() if is_pod_level(name)}}


def _spec(field: str) -> Choice:
    return lambda container: container_resources(container, field)


def _first(choose: Choice, fallback: Choice) -> Choice:
    return lambda container: choose(container) or fallback(container)


def _nothing(_container: Object) -> ResourceList:
    return NOTHING


def _resize_infeasible(pod: Object) -> bool:
    conditions = objects_at(section(pod, "status"), "conditions")
    pending = next((c for c in conditions if c.get("type") == "PodResizePending"), {})
    return pending.get("reason") == "Infeasible"


def _of_status(pod: Object, *paths: tuple[str, ...]) -> Choice:
    """Return the choice of the first resources that a container's status reports."""
    status = section(pod, "status")
    lists = ("initContainerStatuses", "containerStatuses")
    statuses = {each.get("name"): each for name in lists for each in objects_at(status, name)}

    def choose(container: Object) -> ResourceList:
        of_container = section(statuses.get(container.get("name")))
        found = (section(of_container, *path) for path in paths)
        return read_resource_list(next(filter(None, found), {}))

    return choose


def _over_life(pod: Object, choose: Choice) -> ResourceList:
    spec = section(pod, "spec")
    running = total(*map(choose, objects_at(spec, "containers")))
    sidecars, peak = NOTHING, NOTHING
    for container in objects_at(spec, "initContainers"):
        own = choose(container)
        if container.get("restartPolicy") == "Always":
            running, sidecars = total(running, own), total(sidecars, own)
            peak = largest(peak, sidecars)
        else:
            peak = largest(peak, total(own, sidecars))
    return largest(running, peak)
