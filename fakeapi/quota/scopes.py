"""The scopes of a ResourceQuota: which objects it counts.

    Terminating, NotTerminating     whether a pod has an active deadline
    BestEffort, NotBestEffort       whether a pod has that QoS class
    PriorityClass                   the name of a pod's PriorityClass
    CrossNamespacePodAffinity       whether a pod's affinity names other namespaces
    VolumeAttributesClass           the classes of a claim: requested, current and targeted

``spec.scopes`` and the expressions of ``spec.scopeSelector`` must all match. An object of a kind
that a scope does not apply to does not match.

Sources: kubernetes/pkg/quota/v1/evaluator/core/{pods,persistent_volume_claims}.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from fakeapi.quota.pod_resources import container_resources
from fakeapi.quota.resource_list import ZERO, Object, objects_at, section


@dataclass(frozen=True, slots=True)
class ScopeRequirement:
    """One scope, and the values that it requires."""

    name: str
    operator: str = "Exists"
    values: tuple[str, ...] = ()

    def matches(self, value: str | None) -> bool:
        """Return whether a class name matches; None: the object names no class."""
        if self.operator == "In":
            return value in self.values
        if self.operator == "NotIn":
            return value not in self.values
        return (value is None) is (self.operator == "DoesNotExist")


InScope = Callable[[ScopeRequirement, Object], bool]


def scope_requirements(quota: Object) -> Iterator[ScopeRequirement]:
    """Yield the scopes of a quota that an object must match."""
    spec = section(quota, "spec")
    for name in spec.get("scopes") or ():
        yield ScopeRequirement(name)
    for each in objects_at(section(spec, "scopeSelector"), "matchExpressions"):
        values = tuple(each.get("values") or ())
        yield ScopeRequirement(each.get("scopeName", ""), each.get("operator", ""), values)


def in_no_scope(_required: ScopeRequirement, _object: Object) -> bool:
    """Return False: no scope applies to the kind."""
    return False


def pod_in_scope(required: ScopeRequirement, pod: Object) -> bool:
    """Return whether a pod matches a scope."""
    if required.name == "PriorityClass":
        return required.matches(section(pod, "spec").get("priorityClassName") or None)
    rule = _POD_SCOPES.get(required.name)
    return rule is not None and rule(pod)


def claim_in_scope(required: ScopeRequirement, claim: Object) -> bool:
    """Return whether a PersistentVolumeClaim matches a scope."""
    if required.name != "VolumeAttributesClass":
        return False
    classes = volume_attributes_classes(claim)
    return any(map(required.matches, classes)) if classes else required.matches(None)


def volume_attributes_classes(claim: Object) -> frozenset[str]:
    """Return the VolumeAttributesClasses of a claim: requested, current and targeted."""
    status = section(claim, "status")
    names = (
        section(claim, "spec").get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        section(status, "modifyVolumeStatus").get("targetVolumeAttributesClassName"),
    )
    return frozenset(name for name in names if name)


def is_terminating(pod: Object) -> bool:
    """Return whether a pod has an active deadline."""
    deadline = section(pod, "spec").get("activeDeadlineSeconds")
    return isinstance(deadline, int) and deadline >= 0


def is_best_effort(pod: Object) -> bool:
    """Return whether a pod has the QoS class BestEffort, which its status need not report yet."""
    if known := section(pod, "status").get("qosClass"):
        return bool(known == "BestEffort")
    spec = section(pod, "spec")
    containers = (spec, *objects_at(spec, "containers"), *objects_at(spec, "initContainers"))
    return not any(
        container_resources(each, field).get(name, ZERO).nanos
        for each in containers
        for field in ("requests", "limits")
        for name in ("cpu", "memory")
    )


def uses_other_namespaces(pod: Object) -> bool:
    """Return whether a term of a pod's affinity or anti-affinity names other namespaces."""
    affinity = section(pod, "spec", "affinity")
    return any(
        term.get("namespaces") or term.get("namespaceSelector") is not None
        for kind in ("podAffinity", "podAntiAffinity")
        for term in _terms(section(affinity, kind))
    )


def _terms(affinity: Object) -> Iterator[Object]:
    yield from objects_at(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
    for preferred in objects_at(affinity, "preferredDuringSchedulingIgnoredDuringExecution"):
        yield section(preferred, "podAffinityTerm")


_POD_SCOPES: Final[Mapping[str, Callable[[Object], bool]]] = {
    "Terminating": is_terminating,
    "NotTerminating": lambda pod: not is_terminating(pod),
    "BestEffort": is_best_effort,
    "NotBestEffort": lambda pod: not is_best_effort(pod),
    "CrossNamespacePodAffinity": uses_other_namespaces,
}
