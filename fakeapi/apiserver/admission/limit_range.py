"""LimitRanger admission: defaults of containers, and limits of containers, pods and claims.

    type                     applies to                        compares
    Container                each container and init           requests and limits with min, max and
                             container of a pod                maxLimitRequestRatio; sets defaults
    Pod                      the sums over a pod               the same
    PersistentVolumeClaim    the storage that a claim requests requests with min and max

Pods are checked when they are created or resized, claims also when they are updated. All errors of
one LimitRange are reported together.

Source: kubernetes/plugin/pkg/admission/limitranger/admission.go, v1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.store.object_store import Document, Entry
from fakeapi.apiserver.wire.errors import forbidden
from fakeapi.quota.pod_resources import container_resources, spec_resources
from fakeapi.quota.resource_list import (
    NOTHING,
    Object,
    ResourceList,
    ResourceQuantity,
    objects_at,
    read_resource_list,
    section,
)
from policies.kubernetes.quantity import milli

_ANNOTATION: Final = "kubernetes.io/limit-ranger"
_GROUPS: Final = {"containers": "container", "initContainers": "init container"}

Constraint = Callable[[str, str, ResourceQuantity, ResourceList, ResourceList], str]
"""Returns the error of requests and limits, or ""; takes the limit's type and resource too."""


def set_container_defaults(ranges: Iterable[Entry], pod: Document) -> None:
    """Set the missing requests and limits of a pod's containers, and note them in an annotation."""
    for entry in ranges:
        requests, limits = _container_defaults(entry.document())
        notes = [
            note
            for group, noun in _GROUPS.items()
            for container in objects_at(section(pod, "spec"), group)
            for note in _complete(container, noun, requests, limits)
        ]
        if notes:
            metadata = pod["metadata"]
            annotations = metadata.get("annotations") or {}
            text = f"LimitRanger plugin set: {'; '.join(notes)}"
            metadata["annotations"] = {**annotations, _ANNOTATION: text}


def check_limit_ranges(ranges: Iterable[Entry], kind: ResourceInfo, document: Document) -> None:
    """Raise StatusError (403) if a pod or claim breaks a LimitRange of its namespace."""
    errors = _pod_errors if kind.plural == "pods" else _claim_errors
    for entry in ranges:
        limits = objects_at(section(entry.document(), "spec"), "limits")
        found = list(dict.fromkeys(error for limit in limits for error in errors(limit, document)))
        if found:
            detail = found[0] if len(found) == 1 else f"[{', '.join(found)}]"
            raise forbidden(kind, document["metadata"].get("name", ""), detail)


def _container_defaults(limit_range: Object) -> tuple[dict[str, Any], dict[str, Any]]:
    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for limit in objects_at(section(limit_range, "spec"), "limits"):
        if limit.get("type") == "Container":
            requests.update(section(limit, "defaultRequest"))
            limits.update(section(limit, "default"))
    return requests, limits


def _complete(
    container: Object, noun: str, requests: Mapping[str, Any], limits: Mapping[str, Any]
) -> Iterator[str]:
    """Set the missing resources of a container; yield a note for those that were set."""
    resources = container.get("resources") or {}
    for field, defaults, verb in (("requests", requests, "request"), ("limits", limits, "limit")):
        present = resources.get(field) or {}
        missing = {name: amount for name, amount in defaults.items() if name not in present}
        if missing:
            resources = {**resources, field: {**present, **missing}}
            yield f"{', '.join(sorted(missing))} {verb} for {noun} {container.get('name', '')}"
    if resources and isinstance(container, dict):
        container["resources"] = resources


def _pod_errors(limit: Object, pod: Object) -> Iterator[str]:
    kind = limit.get("type")
    if kind == "Container":
        for group in _GROUPS:
            for container in objects_at(section(pod, "spec"), group):
                lists = (container_resources(container, each) for each in ("requests", "limits"))
                yield from _limit_errors(limit, *lists)
    elif kind == "Pod":
        yield from _limit_errors(limit, *(spec_resources(pod, f) for f in ("requests", "limits")))


def _claim_errors(limit: Object, claim: Object) -> Iterator[str]:
    if limit.get("type") == "PersistentVolumeClaim":
        requests = read_resource_list(section(claim, "spec", "resources", "requests"))
        constraints = {"min": _minimum, "max": _maximum_request}
        yield from _constraint_errors(limit, constraints, requests, NOTHING)


def _limit_errors(limit: Object, requests: ResourceList, limits: ResourceList) -> Iterator[str]:
    constraints = {"min": _minimum, "max": _maximum, "maxLimitRequestRatio": _ratio}
    yield from _constraint_errors(limit, constraints, requests, limits)


def _constraint_errors(
    limit: Object,
    constraints: Mapping[str, Constraint],
    requests: ResourceList,
    limits: ResourceList,
) -> Iterator[str]:
    for field, constraint in constraints.items():
        for name, enforced in sorted(read_resource_list(section(limit, field)).items()):
            if error := constraint(str(limit["type"]), name, enforced, requests, limits):
                yield error


def _minimum(
    kind: str, name: str, least: ResourceQuantity, requests: ResourceList, limits: ResourceList
) -> str:
    rule = f"minimum {name} usage per {kind} is {least}"
    request, limit = requests.get(name), limits.get(name)
    if request is None:
        return f"{rule}.  No request is specified"
    if milli(request.nanos) < milli(least.nanos):
        return f"{rule}, but request is {request}"
    if limit is not None and milli(limit.nanos) < milli(least.nanos):
        return f"{rule}, but limit is {limit}"
    return ""


def _maximum(
    kind: str, name: str, most: ResourceQuantity, requests: ResourceList, limits: ResourceList
) -> str:
    rule = f"maximum {name} usage per {kind} is {most}"
    request, limit = requests.get(name), limits.get(name)
    if limit is None:
        return f"{rule}.  No limit is specified"
    if milli(limit.nanos) > milli(most.nanos):
        return f"{rule}, but limit is {limit}"
    if request is not None and milli(request.nanos) > milli(most.nanos):
        return f"{rule}, but request is {request}"
    return ""


def _maximum_request(
    kind: str, name: str, most: ResourceQuantity, requests: ResourceList, _limits: ResourceList
) -> str:
    rule = f"maximum {name} usage per {kind} is {most}"
    request = requests.get(name)
    if request is None:
        return f"{rule}.  No request is specified"
    return f"{rule}, but request is {request}" if milli(request.nanos) > milli(most.nanos) else ""


def _ratio(
    kind: str, name: str, most: ResourceQuantity, requests: ResourceList, limits: ResourceList
) -> str:
    rule = f"{name} max limit to request ratio per {kind} is {most}"
    request, limit = requests.get(name), limits.get(name)
    if request is None or not request.nanos:
        return f"{rule}, but no request is specified or request is 0"
    if limit is None or not limit.nanos:
        return f"{rule}, but no limit is specified or limit is 0"
    ratio = milli(limit.nanos) / milli(request.nanos)
    if ratio * 1000 > milli(most.nanos):
        return f"{rule}, but provided ratio is {ratio:f}"
    return ""
