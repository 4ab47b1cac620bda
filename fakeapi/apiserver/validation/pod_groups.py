"""Validation of workloads, pod groups and composite pod groups.

Of a pod group only the size of its gang may change: constraints, claims, disruption mode and
priority are immutable. Templates may be neither added nor removed.

Sources: the markers of k8s.io/api/scheduling/{v1beta1,v1alpha3}/types.go,
pkg/apis/scheduling/validation/validation.go, v1.37.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fakeapi.apiserver.validation.declared_rules import (
    Rule,
    at_least_one,
    at_most,
    immutable_errors,
    max_items,
    one_of,
    optional_name,
    required_name,
    unique_items,
)
from fakeapi.apiserver.wire.errors import (
    Cause,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
)
from policies.kubernetes.name_validation import (
    invalid_dns_label,
    invalid_label_key,
    invalid_path_segment,
    invalid_subdomain,
)

Object = Mapping[str, Any]

_HIGHEST_USER_PRIORITY: Final = 1_000_000_000
_MAX_TEMPLATES: Final = 8
_MAX_DEPTH: Final = 4
_MAX_CLAIMS: Final = 4
_GROUPS: Final = "podGroupTemplates"
_COMPOSITES: Final = "compositePodGroupTemplates"
_PLACEMENT: Final = ("schedulingConstraints", "resourceClaims", "disruptionMode")
_PRIORITY: Final = ("priorityClassName", "priority", "preemptionPolicy")


_PRIORITY_RULES: Final = (
    optional_name("priorityClassName", invalid_subdomain),
    at_most("priority", _HIGHEST_USER_PRIORITY),
)
_CLAIM_RULES: Final = (
    max_items("resourceClaims", _MAX_CLAIMS),
    unique_items("resourceClaims", "name"),
)
_TEMPLATE_LISTS: Final = tuple(
    rule
    for name in (_GROUPS, _COMPOSITES)
    for rule in (max_items(name, _MAX_TEMPLATES), unique_items(name, "name"))
)
_TYPES: Final[Mapping[str, tuple[Rule, ...]]] = {
    "CompositeDisruptionMode": (one_of("single", "all"),),
    "CompositeGangSchedulingPolicy": (at_least_one("minGroupCount"),),
    "CompositePodGroupSchedulingConstraints": (max_items("topology", 1),),
    "CompositePodGroupSchedulingPolicy": (one_of("basic", "gang"),),
    "CompositePodGroupTemplate": (
        required_name("name", invalid_dns_label),
        *_PRIORITY_RULES,
        *_TEMPLATE_LISTS,
    ),
    "DisruptionMode": (one_of("single", "all"),),
    "GangSchedulingPolicy": (at_least_one("minCount"),),
    "PodGroupResourceClaim": (
        required_name("name", invalid_dns_label),
        one_of("resourceClaimName", "resourceClaimTemplateName"),
        optional_name("resourceClaimName", invalid_subdomain),
        optional_name("resourceClaimTemplateName", invalid_subdomain),
    ),
    "PodGroupSchedulingConstraints": (max_items("topology", 1),),
    "PodGroupSchedulingPolicy": (one_of("basic", "gang"),),
    "PodGroupSpec": (
        optional_name("parentCompositePodGroupName", invalid_subdomain),
        *_CLAIM_RULES,
        *_PRIORITY_RULES,
    ),
    "PodGroupTemplate": (
        required_name("name", invalid_dns_label),
        *_CLAIM_RULES,
        *_PRIORITY_RULES,
    ),
    "TopologyConstraint": (required_name("key", invalid_label_key),),
    "TypedLocalObjectReference": (
        optional_name("apiGroup", invalid_subdomain),
        required_name("kind", invalid_path_segment),
        required_name("name", invalid_path_segment),
    ),
    "WorkloadReference": (
        required_name("workloadName", invalid_subdomain),
        required_name("templateName", invalid_dns_label),
    ),
    "WorkloadSpec": (one_of(_GROUPS, _COMPOSITES), *_TEMPLATE_LISTS),
}


def _composite_spec(spec: Object, path: str) -> Iterator[Cause]:
    yield from optional_name("parentCompositePodGroupName", invalid_subdomain)(spec, path)
    if spec.get("workloadRef") is None:
        yield required(f"{path}.workloadRef")
    for rule in _PRIORITY_RULES:
        yield from rule(spec, path)


POD_GROUP_FIELD_RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    **{f"scheduling.v1beta1.{name}": rules for name, rules in _TYPES.items()},
    **{f"scheduling.v1alpha3.{name}": rules for name, rules in _TYPES.items()},
    "scheduling.v1alpha3.CompositePodGroupSpec": (_composite_spec,),
}
"""The rules of single fields, by definition."""


def workload_errors(workload: Object, _path: str) -> Iterator[Cause]:
    """Yield the errors of a workload's tree of templates: names, depth, priority, leaves."""
    spec = workload.get("spec") or {}
    names = {template.get("name") for template in spec.get(_GROUPS) or ()}
    yield from _repeated_names(spec, "spec", names)
    for index, template in enumerate(spec.get(_COMPOSITES) or ()):
        if _depth(template) >= _MAX_DEPTH:
            detail = f"maximum template hierarchy depth is {_MAX_DEPTH}"
            yield invalid_value(f"spec.{_COMPOSITES}[{index}]", template.get(_COMPOSITES), detail)
    if len({_priority_of(template) for template in _templates(spec)}) > 1:
        detail = "detected multiple priority configurations"
        if not spec.get(_GROUPS):
            detail = (
                "all priority and priorityClassName values must be identical, "
                "detected multiple values"
            )
        yield invalid_value("spec", None, detail)
    yield from _childless(spec, "spec")


def _repeated_names(parent: Object, path: str, names: set[Any]) -> Iterator[Cause]:
    templates = parent.get(_COMPOSITES) or ()
    for index, template in enumerate(templates):
        if template.get("name") in names:
            yield duplicate(f"{path}.{_COMPOSITES}[{index}].name", template.get("name"))
    names |= {template.get("name") for template in templates}
    for index, template in enumerate(templates):
        where = f"{path}.{_COMPOSITES}[{index}]"
        groups = template.get(_GROUPS) or ()
        for place, group in enumerate(groups):
            if group.get("name") in names:
                yield duplicate(f"{where}.{_GROUPS}[{place}].name", group.get("name"))
        names |= {group.get("name") for group in groups}
        yield from _repeated_names(template, where, names)


def _depth(template: Object) -> int:
    """Return the number of levels of a composite template, itself included."""
    return 1 + max(map(_depth, template.get(_COMPOSITES) or ()), default=0)


def _templates(parent: Object) -> Iterator[Object]:
    yield from parent.get(_GROUPS) or ()
    for template in parent.get(_COMPOSITES) or ():
        yield template
        yield from _templates(template)


def _priority_of(template: Object) -> tuple[str, int | None]:
    return template.get("priorityClassName") or "", template.get("priority")


def _childless(parent: Object, path: str) -> Iterator[Cause]:
    for index, template in enumerate(parent.get(_COMPOSITES) or ()):
        where = f"{path}.{_COMPOSITES}[{index}]"
        if not template.get(_GROUPS) and not template.get(_COMPOSITES):
            detail = "must have at least one child PodGroupTemplate or CompositePodGroupTemplate"
            yield invalid_value(where, template.get("name", ""), detail)
        yield from _childless(template, where)


def pod_group_changes(group: Object, old: Object) -> Iterator[Cause]:
    """Yield the errors of an update of a pod group."""
    new, before = group.get("spec") or {}, old.get("spec") or {}
    names = ("parentCompositePodGroupName", "workloadRef")
    yield from immutable_errors("spec", new, before, *names)
    yield from _placement_changes("spec", new, before)


def composite_pod_group_changes(group: Object, old: Object) -> Iterator[Cause]:
    """Yield the errors of an update of a composite pod group: its spec is immutable."""
    names = ("parentCompositePodGroupName", "workloadRef", "schedulingPolicy")
    new, before = group.get("spec") or {}, old.get("spec") or {}
    yield from immutable_errors("spec", new, before, *names, *_PLACEMENT, *_PRIORITY)


def workload_changes(workload: Object, old: Object) -> Iterator[Cause]:
    """Yield the errors of an update of a workload."""
    new, before = workload.get("spec") or {}, old.get("spec") or {}
    yield from immutable_errors("spec", new, before, "controllerRef")
    yield from _template_changes("spec", new, before)


def _template_changes(path: str, new: Object, old: Object) -> Iterator[Cause]:
    for name in (_GROUPS, _COMPOSITES):
        before = {template.get("name"): template for template in old.get(name) or ()}
        templates = new.get(name) or ()
        for index, template in enumerate(templates):
            where = f"{path}.{name}[{index}]"
            if template.get("name") not in before:
                yield forbidden_field(where, "item may not be added")
                continue
            yield from _placement_changes(where, template, before[template.get("name")])
            yield from _template_changes(where, template, before[template.get("name")])
        if before.keys() - {template.get("name") for template in templates}:
            yield forbidden_field(f"{path}.{name}", "item may not be removed")


def _placement_changes(path: str, new: Object, old: Object) -> Iterator[Cause]:
    """Yield the errors of a change of policy, constraints, claims, disruption or priority."""
    where = f"{path}.schedulingPolicy"
    policy, before = new.get("schedulingPolicy") or {}, old.get("schedulingPolicy") or {}
    yield from immutable_errors(where, policy, before, "basic")
    if "gang" in before and "gang" not in policy:
        yield invalid_value(f"{where}.gang", None, "field cannot be cleared once set")
    if "gang" in policy and "gang" not in before:
        yield invalid_value(f"{where}.gang", None, "field cannot be set once created")
    yield from immutable_errors(path, new, old, *_PLACEMENT, *_PRIORITY)


def pod_group_status_errors(group: Object, _old: Object) -> Iterator[Cause]:
    """Yield the errors of a pod group's status: it reports only claims of the spec."""
    names = {c.get("name") for c in (group.get("spec") or {}).get("resourceClaims") or ()}
    statuses = (group.get("status") or {}).get("resourceClaimStatuses") or ()
    for index, status in enumerate(statuses):
        if status.get("name") not in names:
            where = f"status.resourceClaimStatuses[{index}].name"
            detail = "must match the name of an entry in `spec.resourceClaims`"
            yield invalid_value(where, status.get("name", ""), detail)
