"""Validation of device claims, device classes, resource slices and device taint rules.

CEL expressions, counters and the size of configurations are not checked.

Sources: pkg/apis/resource/validation/validation.go, the markers of k8s.io/api/resource/v1/types.go,
v1.37.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fakeapi.apiserver.validation.declared_rules import (
    Rule,
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
    go_formatted,
    invalid_value,
    required,
    too_many,
    unsupported_value,
)
from fakeapi.apiserver.wire.raw_json import json_equal
from policies.kubernetes.name_validation import (
    invalid_dns_label,
    invalid_label_value,
    invalid_subdomain,
    label_key_errors,
)

Object = Mapping[str, Any]

_MAX_REQUESTS: Final = 32
_MAX_ALTERNATIVES: Final = 8
_MAX_DEVICES: Final = 128
_MAX_ATTRIBUTES: Final = 32
_MAX_RESERVED: Final = 256
_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_OPERATORS: Final = ("Equal", "Exists")
_MODES: Final = ("All", "ExactCount")
_SELECTIONS: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_OF_DEVICE: Final = ("nodeName", "nodeSelector", "allNodes")
_ONE_SELECTION: Final = f"exactly one of {', '.join(f'`{s}`' for s in _SELECTIONS)} is required"
_ONE_REQUEST: Final = "exactly one of `exactly` or `firstAvailable` is required"
_REFERENCE: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest "
    "separated by '/'"
)
_ATTRIBUTE_TYPES: Final = (
    *("int", "bool", "string", "version"),
    *("ints", "bools", "strings", "versions"),
)


def _label(name: str) -> Rule:
    """Return the rule of a field that is a DNS label; an empty one is an invalid label."""

    def rule(target: Object, path: str) -> Iterator[Cause]:
        value = target.get(name) or ""
        if wrong := invalid_dns_label(value):
            yield invalid_value(f"{path}.{name}", value, wrong)

    return rule


def _present(name: str) -> Rule:
    def rule(target: Object, path: str) -> Iterator[Cause]:
        if target.get(name) is None:
            yield required(f"{path}.{name}")

    return rule


def _request(request: Object, path: str) -> Iterator[Cause]:
    yield from _label("name")(request, path)
    exactly, alternatives = request.get("exactly") is not None, request.get("firstAvailable")
    if exactly and alternatives:
        yield invalid_value(path, None, f"{_ONE_REQUEST}, but multiple fields are set")
    elif not exactly and not alternatives:
        yield required(path, _ONE_REQUEST)


def _count(request: Object, path: str) -> Iterator[Cause]:
    mode, count = request.get("allocationMode"), request.get("count") or 0
    if mode not in _MODES:
        yield unsupported_value(f"{path}.allocationMode", mode, _MODES)
    elif mode == "All" and count:
        detail = "must not be specified when allocationMode is 'All'"
        yield invalid_value(f"{path}.count", count, detail)
    elif mode == "ExactCount" and count <= 0:
        yield invalid_value(f"{path}.count", count, "must be greater than zero")


def _toleration(toleration: Object, path: str) -> Iterator[Cause]:
    operator, effect = toleration.get("operator"), toleration.get("effect")
    if operator not in _OPERATORS:
        yield unsupported_value(f"{path}.operator", operator, _OPERATORS)
    elif operator == "Exists" and toleration.get("value"):
        detail = "must be empty for operator `Exists`"
        yield invalid_value(f"{path}.value", toleration["value"], detail)
    if effect and effect not in _EFFECTS:
        yield unsupported_value(f"{path}.effect", effect, _EFFECTS)


def _taint(taint: Object, path: str) -> Iterator[Cause]:
    key, value, effect = taint.get("key") or "", taint.get("value") or "", taint.get("effect")
    for wrong in label_key_errors(key):
        yield invalid_value(f"{path}.key", key, wrong)
    if wrong := invalid_label_value(value):
        yield invalid_value(f"{path}.value", value, wrong)
    if not effect:
        yield required(f"{path}.effect")
    elif effect not in _EFFECTS:
        yield unsupported_value(f"{path}.effect", effect, _EFFECTS)


def _claim(claim: Object, path: str) -> Iterator[Cause]:
    names = _request_names(claim)
    for index, constraint in enumerate(claim.get("constraints") or ()):
        where = f"{path}.constraints[{index}]"
        yield from _reference_errors(constraint, where, names)
        yield from _attribute_errors(constraint, where)
    for index, config in enumerate(claim.get("config") or ()):
        where = f"{path}.config[{index}]"
        yield from _reference_errors(config, where, names)
        yield from _present("opaque")(config, where)


def _request_names(claim: Object) -> frozenset[str]:
    """Return what may refer to a request: its name, or its name and that of an alternative."""
    names = set()
    for request in claim.get("requests") or ():
        name = request.get("name", "")
        alternatives = request.get("firstAvailable") or ()
        names |= {name, *(f"{name}/{below.get('name', '')}" for below in alternatives)}
    return frozenset(names)


def _reference_errors(target: Object, path: str, names: frozenset[str]) -> Iterator[Cause]:
    for index, name in enumerate(target.get("requests") or ()):
        if name not in names:
            yield invalid_value(f"{path}.requests[{index}]", name, _REFERENCE)


def _attribute_errors(constraint: Object, path: str) -> Iterator[Cause]:
    named = [n for n in ("matchAttribute", "distinctAttribute") if constraint.get(n) is not None]
    if not named:
        detail = (
            'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple '
            "fields are set"
        )
        yield required(path, detail)
    elif "/" not in constraint[named[0]]:
        detail = "a fully qualified name must be a domain and a name separated by a slash"
        yield invalid_value(f"{path}.{named[0]}", constraint[named[0]], detail)


def _class(spec: Object, path: str) -> Iterator[Cause]:
    name = spec.get("extendedResourceName")
    if name is not None and "/" not in name:
        detail = "a name must be a domain-prefixed path, such as 'example.com/my-prop'"
        yield invalid_value(f"{path}.extendedResourceName", name, detail)


def _pool(pool: Object, path: str) -> Iterator[Cause]:
    name, generation = pool.get("name") or "", pool.get("generation") or 0
    if not name:
        yield required(f"{path}.name")
    for part in name.split("/") if name else ():
        if wrong := invalid_subdomain(part):
            yield invalid_value(f"{path}.name", part, wrong)
    slices = pool.get("resourceSliceCount") or 0
    if slices <= 0:
        yield invalid_value(f"{path}.resourceSliceCount", slices, "must be greater than zero")
    if generation < 0:
        detail = "must be greater than or equal to zero"
        yield invalid_value(f"{path}.generation", generation, detail)


def _slice(spec: Object, path: str) -> Iterator[Cause]:
    yield from required_name("driver", invalid_subdomain)(spec, path)
    yield from _node_selection(spec, path)
    devices = spec.get("devices") or ()
    if devices and spec.get("sharedCounters"):
        detail = "only one of `sharedCounters` or `devices` is allowed"
        yield invalid_value(path, "", detail)
    if len(devices) > _MAX_DEVICES:
        yield too_many(f"{path}.devices", len(devices), _MAX_DEVICES)
    seen: set[Any] = set()
    for index, device in enumerate(devices):
        where, name = f"{path}.devices[{index}]", device.get("name")
        if name and name in seen:
            yield duplicate(where, name)
        seen.add(name)
        yield from _device_selection(device, where, per_device=spec.get("perDeviceNodeSelection"))


def _node_selection(spec: Object, path: str) -> Iterator[Cause]:
    for name in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(name) is False:
            yield invalid_value(f"{path}.{name}", spec[name], "must be either unset or set to true")
    if spec.get("nodeName") == "":
        detail = "must be either unset or set to a non-empty string"
        yield invalid_value(f"{path}.nodeName", "", detail)
    yield from optional_name("nodeName", invalid_subdomain)(spec, path)
    chosen = [name for name in _SELECTIONS if spec.get(name)]
    if not chosen:
        yield required(path, _ONE_SELECTION)
    elif len(chosen) > 1:
        listed = ", ".join(f"`{name}`" for name in chosen)
        detail = f"{_ONE_SELECTION}, but multiple fields are set"
        yield invalid_value(path, f"{{{listed}}}", detail)


def _device_selection(device: Object, path: str, *, per_device: Any) -> Iterator[Cause]:
    chosen = [name for name in _OF_DEVICE if device.get(name) is not None]
    where = "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
    if chosen and not per_device:
        detail = f"`nodeName`, `nodeSelector` and `allNodes` can only be set if {where}"
        yield invalid_value(path, None, detail)
    elif per_device and not chosen:
        detail = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required"
        yield required(path, f"{detail} when {where}")


def _device(device: Object, path: str) -> Iterator[Cause]:
    yield from _label("name")(device, path)
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    total = len(attributes) + len(capacity)
    if total > _MAX_ATTRIBUTES:
        detail = f"the total number of attributes and capacities must not exceed {_MAX_ATTRIBUTES}"
        yield invalid_value(path, total, detail)
    for name, attribute in attributes.items():
        yield from one_of(*_ATTRIBUTE_TYPES)(attribute, f"{path}.attributes[{name}]")


_DEVICES: Final[tuple[Rule, ...]] = (
    required_name("deviceClassName", invalid_subdomain),
    _count,
)
DEVICE_FIELD_RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    "resource.v1.Device": (_device,),
    "resource.v1.DeviceClaim": (
        max_items("requests", _MAX_REQUESTS),
        unique_items("requests", "name"),
        _claim,
    ),
    "resource.v1.DeviceClassConfiguration": (_present("opaque"),),
    "resource.v1.DeviceClassSpec": (_class,),
    "resource.v1.DeviceRequest": (
        _request,
        max_items("firstAvailable", _MAX_ALTERNATIVES),
        unique_items("firstAvailable", "name"),
    ),
    "resource.v1.DeviceSelector": (_present("cel"),),
    "resource.v1.DeviceSubRequest": (_label("name"), *_DEVICES),
    "resource.v1.DeviceTaint": (_taint,),
    "resource.v1.DeviceTaintSelector": (
        optional_name("driver", invalid_subdomain),
        optional_name("device", invalid_dns_label),
    ),
    "resource.v1.DeviceToleration": (_toleration,),
    "resource.v1.ExactDeviceRequest": _DEVICES,
    "resource.v1.ResourcePool": (_pool,),
    "resource.v1.ResourceSliceSpec": (_slice,),
}
"""The rules of single fields, by definition."""


def claim_changes(claim: Object, old: Object) -> Iterator[Cause]:
    """Yield the error of an update of a claim's spec, which is immutable."""
    if not json_equal(claim.get("spec"), old.get("spec")):
        yield invalid_value("spec", None, "field is immutable")


def claim_status_errors(claim: Object, old: Object) -> Iterator[Cause]:
    """Yield the errors of a claim's status: consumers, and an allocation that is never changed."""
    status, before = claim.get("status") or {}, old.get("status") or {}
    allocation, consumers = status.get("allocation"), status.get("reservedFor") or ()
    yield from _consumer_errors(consumers)
    if consumers and allocation is None:
        detail = "may not be specified when `allocated` is not set"
        yield forbidden_field("status.reservedFor", detail)
    if allocation is None:
        return
    if before.get("allocation") is not None:
        if not json_equal(allocation, before["allocation"]):
            yield invalid_value("status.allocation", None, "field cannot be modified once set")
        return
    names = _request_names((claim.get("spec") or {}).get("devices") or {})
    results = (allocation.get("devices") or {}).get("results") or ()
    for index, result in enumerate(results):
        if result.get("request") not in names:
            where = f"status.allocation.devices.results[{index}].request"
            yield invalid_value(where, result.get("request", ""), _REFERENCE)


def _consumer_errors(consumers: Any) -> Iterator[Cause]:
    path, seen = "status.reservedFor", set()
    if len(consumers) > _MAX_RESERVED:
        yield too_many(path, len(consumers), _MAX_RESERVED)
    for index, consumer in enumerate(consumers):
        where = f"{path}[{index}]"
        if consumer.get("uid") in seen:
            yield duplicate(where, go_formatted(consumer))
        seen.add(consumer.get("uid"))
        for name in ("resource", "name", "uid"):
            if not consumer.get(name):
                yield required(f"{where}.{name}")


def slice_changes(slice_: Object, old: Object) -> Iterator[Cause]:
    """Yield the errors of an update of a slice: it keeps its driver, pool and nodes."""
    new, before = slice_.get("spec") or {}, old.get("spec") or {}
    for name in ("driver", "nodeName"):
        if new.get(name) != before.get(name):
            yield invalid_value(f"spec.{name}", new.get(name), "field is immutable")
    pool, pool_before = new.get("pool") or {}, before.get("pool") or {}
    if pool.get("name") != pool_before.get("name"):
        yield invalid_value("spec.pool.name", pool.get("name"), "field is immutable")
