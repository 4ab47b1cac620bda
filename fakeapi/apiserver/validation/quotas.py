"""Validation of ResourceQuotas and LimitRanges that contradict themselves, in upstream's words.

    object          rules
    ResourceQuota   resource names and amounts; scopes that exclude each other, or that do not apply
                    to a resource; values that fit the operator of a scope selector
    LimitRange      types and resource names; min <= defaultRequest <= default <= max; ratios

Upstream reports the resources of a list in random order, here they are sorted.

Source: pkg/apis/core/validation/validation.go (ValidateResourceQuota, ValidateLimitRange),
pkg/apis/core/helper/helpers.go, v1.37.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fakeapi.apiserver.wire.errors import (
    Cause,
    duplicate,
    forbidden_field,
    go_formatted,
    invalid_value,
    required,
)
from fakeapi.quota.resource_list import (
    Object,
    ResourceList,
    ResourceQuantity,
    objects_at,
    read_resource_list,
    section,
)
from policies.kubernetes.name_validation import label_key_errors
from policies.kubernetes.pod_requests import is_extended
from policies.kubernetes.quantity import NANOS, milli

_COMPUTE: Final = frozenset(("cpu", "memory", "ephemeral-storage"))
_POD_COMPUTE: Final = frozenset(
    f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in ("cpu", "memory")
)
_COUNTS: Final = frozenset(
    (
        "configmaps",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
        "services.loadbalancers",
        "services.nodeports",
    )
)
_QUOTA_NAMES: Final = (
    _COUNTS
    | _POD_COMPUTE
    | {"ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage"}
    | {"requests.storage"}
)
_HUGE_PAGES: Final = "hugepages-"
_LIMIT_TYPES: Final = ("Pod", "Container", "PersistentVolumeClaim")
_POD_SCOPES: Final = (
    "Terminating",
    "NotTerminating",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
)
_SCOPE_NAMES: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(_POD_SCOPES, _POD_COMPUTE | {"pods"}),
    "BestEffort": frozenset(("pods",)),
    "VolumeAttributesClass": frozenset(("persistentvolumeclaims", "requests.storage")),
}
"""The standard resources to which a scope applies."""

_EXCLUSIVE: Final = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_ONLY_EXISTS: Final = frozenset(_SCOPE_NAMES) - {"PriorityClass", "VolumeAttributesClass"}
_EXISTS_RULE: Final = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
    "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
    "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_ONE_VALUE: Final = (
    "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
)
_NO_VALUE: Final = (
    "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
)


def quota_errors(quota: Object, _path: str) -> Iterator[Cause]:
    """Yield the errors of a ResourceQuota's spec."""
    spec = section(quota, "spec")
    yield from _amount_errors(section(spec, "hard"), "spec.hard")
    yield from _scope_errors(spec)
    if spec.get("scopeSelector") is not None:
        yield from _selector_errors(spec)


def quota_status_errors(quota: Object, _old: Object) -> Iterator[Cause]:
    """Yield the errors of a ResourceQuota's status."""
    for field in ("hard", "used"):
        yield from _amount_errors(section(quota, "status", field), f"status.{field}")


def quota_changes(quota: Object, old: Object) -> Iterator[Cause]:
    """Yield the error of an update that changes the scopes of a ResourceQuota."""
    scopes = section(quota, "spec").get("scopes")
    if set(scopes or ()) != set(section(old, "spec").get("scopes") or ()):
        yield invalid_value("spec.scopes", scopes, "field is immutable")


def _amount_errors(amounts: Object, path: str) -> Iterator[Cause]:
    for name, amount in sorted(read_resource_list(amounts).items()):
        where = f"{path}[{name}]"
        yield from _resource_name_errors(name, where)
        if "/" not in name and not _is_quota_name(name):
            yield invalid_value(where, name, "must be a standard resource for quota")
        if amount.nanos < 0:
            yield invalid_value(where, str(amount), "must be greater than or equal to 0")
        if (name in _COUNTS or is_extended(name)) and milli(amount.nanos) % 1000:
            yield invalid_value(where, str(amount), "must be an integer")


def _scope_errors(spec: Object) -> Iterator[Cause]:
    scopes = list(spec.get("scopes") or ())
    for scope in scopes:
        if scope not in _SCOPE_NAMES:
            yield invalid_value("spec.scopes", scopes, "unsupported scope")
        for _ in _inapplicable(scope, spec):
            rule = "unsupported scope applied to resource"
            yield invalid_value("spec.scopes", scopes, rule)
    yield from _conflicts(scopes, spec, "spec.scopes")


def _selector_errors(spec: Object) -> Iterator[Cause]:
    path = "spec.scopeSelector.matchExpressions"
    expressions = list(objects_at(section(spec, "scopeSelector"), "matchExpressions"))
    for each in expressions:
        scope, operator = each.get("scopeName", ""), each.get("operator", "")
        values = each.get("values") or []
        if scope not in _SCOPE_NAMES:
            yield invalid_value(f"{path}.scopeName", scope, "unsupported scope")
        for _ in _inapplicable(scope, spec):
            rule = "unsupported scope applied to resource"
            yield invalid_value(path, _formatted_selector(expressions), rule)
        if scope in _ONLY_EXISTS and operator != "Exists":
            yield invalid_value(f"{path}.operator", operator, _EXISTS_RULE)
        if operator in ("In", "NotIn"):
            if not values:
                yield required(f"{path}.values", _ONE_VALUE)
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                yield invalid_value(f"{path}.values", values, _NO_VALUE)
        else:
            yield invalid_value(f"{path}.operator", operator, "not a valid selector operator")
    yield from _conflicts([each.get("scopeName") for each in expressions], spec, path)


def _formatted_selector(expressions: list[Object]) -> Any:
    names = {"scopeName": "ScopeName", "operator": "Operator", "values": "Values"}
    listed = [{shown: each.get(name) for name, shown in names.items()} for each in expressions]
    return go_formatted({"MatchExpressions": listed})


def _inapplicable(scope: str, spec: Object) -> Iterator[str]:
    """Yield the standard resources of a quota to which a scope does not apply."""
    names = _SCOPE_NAMES.get(scope)
    for name in section(spec, "hard"):
        if names is not None and _is_quota_name(name) and name not in names:
            yield name


def _conflicts(scopes: list[Any], spec: Object, path: str) -> Iterator[Cause]:
    for pair in _EXCLUSIVE:
        if pair.issubset(scopes):
            yield invalid_value(path, spec.get("scopes"), "conflicting scopes")


def _is_quota_name(name: str) -> bool:
    return name in _QUOTA_NAMES or name.startswith((_HUGE_PAGES, f"requests.{_HUGE_PAGES}"))


def _resource_name_errors(name: str, path: str) -> Iterator[Cause]:
    wrong = label_key_errors(name)
    for rule in wrong:
        yield invalid_value(path, name, rule)
    if not wrong and "/" not in name and name != "storage" and not _is_quota_name(name):
        yield invalid_value(path, name, "must be a standard resource type or fully qualified")


def limit_range_errors(limit_range: Object, _path: str) -> Iterator[Cause]:
    """Yield the errors of a LimitRange."""
    seen = set()
    for index, limit in enumerate(objects_at(section(limit_range, "spec"), "limits")):
        path, kind = f"spec.limits[{index}]", limit.get("type") or ""
        wrong = label_key_errors(kind)
        for rule in wrong:
            yield invalid_value(f"{path}.type", kind, rule)
        if not wrong and "/" not in kind and kind not in _LIMIT_TYPES:
            rule = "must be a standard limit type or fully qualified"
            yield invalid_value(f"{path}.type", kind, rule)
        if kind in seen:
            yield duplicate(f"{path}.type", kind)
        seen.add(kind)
        yield from _limit_errors(limit, kind, path)


def _limit_errors(limit: Object, kind: str, path: str) -> Iterator[Cause]:
    fields = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"]
    if kind == "Pod":
        for field in ("default", "defaultRequest"):
            fields.remove(field)
            if limit.get(field):
                rule = "may not be specified when `type` is 'Pod'"
                yield forbidden_field(f"{path}.{field}", rule)
    lists = {field: read_resource_list(section(limit, field)) for field in fields}
    for field, amounts in lists.items():
        for name in sorted(amounts):
            yield from _limited_name_errors(kind, name, f"{path}.{field}[{name}]")
    if kind == "PersistentVolumeClaim" and not {"storage"} & {*lists["min"], *lists["max"]}:
        rule = "either minimum or maximum storage value is required, but neither was provided"
        yield required(f"{path}.limits", rule)
    for name in sorted({name for amounts in lists.values() for name in amounts}):
        yield from _order_errors(lists, name, path)
        yield from _ratio_errors(lists, name, path)


def _is_extended_name(name: str) -> bool:
    return is_extended(name) and not label_key_errors(f"requests.{name}")


def _limited_name_errors(kind: str, name: str, path: str) -> Iterator[Cause]:
    yield from _resource_name_errors(name, path)
    if kind not in ("Pod", "Container"):
        return
    if "/" not in name:
        if name not in _COMPUTE and not name.startswith(_HUGE_PAGES):
            yield invalid_value(path, name, "must be a standard resource for containers")
    elif "kubernetes.io/" not in name and not _is_extended_name(name):
        yield invalid_value(path, name, "doesn't follow extended resource name standard")


_Order = tuple[str, str, str, str, str]

_ORDERS: Final[tuple[_Order, ...]] = (
    ("min", "max", "min", "min", "min value {} is greater than max value {}"),
    (
        "min",
        "defaultRequest",
        "defaultRequest",
        "defaultRequest",
        "min value {} is greater than default request value {}",
    ),
    (
        "defaultRequest",
        "max",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than max value {}",
    ),
    (
        "defaultRequest",
        "default",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than default limit value {}",
    ),
    ("min", "default", "default", "min", "min value {} is greater than default value {}"),
    ("default", "max", "default", "max", "default value {} is greater than max value {}"),
)
"""Two amounts in order, the field of the error, the amount that it shows, and the rule."""


def _order_errors(lists: Mapping[str, ResourceList], name: str, path: str) -> Iterator[Cause]:
    for smaller, larger, field, shown, rule in _ORDERS:
        low, high = _amount(lists, smaller, name), _amount(lists, larger, name)
        if low is not None and high is not None and low.nanos > high.nanos:
            value = str(lists[shown][name])
            yield invalid_value(f"{path}.{field}[{name}]", value, rule.format(low, high))


def _ratio_errors(lists: Mapping[str, ResourceList], name: str, path: str) -> Iterator[Cause]:
    where = f"{path}.maxLimitRequestRatio[{name}]"
    ratio = _amount(lists, "maxLimitRequestRatio", name)
    if ratio is not None and ratio.nanos < NANOS:
        yield invalid_value(where, str(ratio), f"ratio {ratio} is less than 1")
    least, most = _amount(lists, "min", name), _amount(lists, "max", name)
    if ratio is not None and least is not None and most is not None and least.nanos > 0:
        limit = milli(most.nanos) / milli(least.nanos)
        if milli(ratio.nanos) / 1000 > limit:
            rule = f"ratio {ratio} is greater than max/min = {limit:f}"
            yield invalid_value(where, str(ratio), rule)
    default, request = _amount(lists, "default", name), _amount(lists, "defaultRequest", name)
    overcommit = ("/" not in name or "kubernetes.io/" in name) and not name.startswith(_HUGE_PAGES)
    if not overcommit and default and request and default.nanos != request.nanos:
        rule = f"default value {default} must equal to defaultRequest value {request} in {name}"
        yield invalid_value(f"{path}.defaultRequest[{name}]", str(request), rule)


def _amount(lists: Mapping[str, ResourceList], field: str, name: str) -> ResourceQuantity | None:
    return lists.get(field, {}).get(name)
