"""Printers of nodes, namespaces, configuration, events, leases and devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fakeapi.apiserver.printers.human_readable import (
    NONE,
    UNKNOWN,
    Cell,
    RowPrinter,
    age,
    at,
    conditions,
    deleted,
    flag,
    join_or_none,
    mapping,
    name,
    name_and_age,
    number,
    objects,
    parse_time,
    since,
    text,
    texts,
)

Document = Mapping[str, Any]

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_ROLE_LABEL: Final = "kubernetes.io/role"


def _node(document: Document, now: int) -> list[Cell]:
    information = at(document, "status", "nodeInfo")
    kernel = text(information, "kernelVersion", absent=UNKNOWN)
    architecture = text(information, "architecture")
    return [
        name(document),
        _node_status(document),
        join_or_none(_roles(document)),
        age(document, now),
        text(information, "kubeletVersion"),
        _address(document, "InternalIP"),
        _address(document, "ExternalIP"),
        text(information, "osImage", absent=UNKNOWN),
        f"{kernel} ({architecture})" if architecture else kernel,
        text(information, "containerRuntimeVersion", absent=UNKNOWN),
    ]


def _node_status(document: Document) -> str:
    ready = conditions(document).get("Ready")
    status = "Unknown"
    if ready is not None:
        status = "Ready" if text(ready, "status") == "True" else "NotReady"
    return status + (",SchedulingDisabled" if flag(document, "spec", "unschedulable") else "")


def _roles(document: Document) -> list[str]:
    found = mapping(document, "metadata", "labels")
    roles = {label.removeprefix(_ROLE_PREFIX) for label in found if label.startswith(_ROLE_PREFIX)}
    return sorted((roles | {text(found, _ROLE_LABEL)}) - {""})


def _address(document: Document, kind: str) -> str:
    addresses = objects(document, "status", "addresses")
    return next((text(a, "address") for a in addresses if text(a, "type") == kind), NONE)


def _namespace(document: Document, now: int) -> list[Cell]:
    return [name(document), text(document, "status", "phase"), age(document, now)]


def _config_map(document: Document, now: int) -> list[Cell]:
    size = len(mapping(document, "data")) + len(mapping(document, "binaryData"))
    return [name(document), size, age(document, now)]


def _secret(document: Document, now: int) -> list[Cell]:
    size = len(mapping(document, "data"))
    return [name(document), text(document, "type"), size, age(document, now)]


def _event(document: Document, now: int) -> list[Cell]:
    """Return an Event's cells; its two groups store the same data under different field names."""
    subject = at(document, "involvedObject") or at(document, "regarding")
    first, last, count = _times(document, now)
    named_kind = (text(subject, "kind").lower(), text(subject, "name"))
    return [
        last,
        text(document, "type"),
        text(document, "reason"),
        "/".join(filter(None, named_kind)),
        text(subject, "fieldPath"),
        _event_source(document),
        (text(document, "message") or text(document, "note")).strip(),
        first,
        count,
        name(document),
    ]


def _times(document: Document, now: int) -> tuple[str, str, int]:
    """Return the ages of an Event's first and last occurrence, and its count."""
    first_seen = _either(document, "firstTimestamp", "deprecatedFirstTimestamp")
    ended = _either(document, "lastTimestamp", "deprecatedLastTimestamp")
    if parse_time(first_seen) is None:
        first_seen = at(document, "eventTime")
    first = since(first_seen, now)
    last = first if parse_time(ended) is None else since(ended, now)
    count = number(document, "count") or number(document, "deprecatedCount") or 1
    series = at(document, "series")
    if series is not None:
        last, count = since(at(series, "lastObservedTime"), now), number(series, "count")
    return first, last, count


def _event_source(document: Document) -> str:
    source = _either(document, "source", "deprecatedSource")
    controller = _either(document, "reportingComponent", "reportingController") or ""
    component = text(source, "component") or str(controller)
    host = text(source, "host") or text(document, "reportingInstance")
    return ", ".join((component, host)) if host else component


def _either(document: Document, one: str, other: str) -> Any:
    return document.get(one) or document.get(other)


def _component_status(document: Document, _now: int) -> list[Cell]:
    healthy = next(
        (c for c in objects(document, "conditions") if text(c, "type") == "Healthy"), None
    )
    if healthy is None:
        return [name(document), "Unknown", "", ""]
    status = "Healthy" if text(healthy, "status") == "True" else "Unhealthy"
    return [name(document), status, text(healthy, "message"), text(healthy, "error")]


def _lease(document: Document, now: int) -> list[Cell]:
    return [name(document), text(document, "spec", "holderIdentity"), age(document, now)]


def _runtime_class(document: Document, now: int) -> list[Cell]:
    return [name(document), text(document, "handler"), age(document, now)]


def _definition(document: Document, _now: int) -> list[Cell]:
    versions = [
        text(version, "name") + ("(storage)" if flag(version, "storage") else "")
        for version in objects(document, "spec", "versions")
        if flag(version, "served")
    ]
    return [
        name(document),
        text(document, "spec", "scope"),
        ",".join(sorted(versions)),
        text(document, "metadata", "creationTimestamp"),
        text(document, "spec", "group"),
        text(document, "spec", "names", "kind"),
        ",".join(texts(document, "spec", "names", "shortNames")),
        text(conditions(document).get("Established"), "status") == "True",
    ]


def _api_service(document: Document, now: int) -> list[Cell]:
    service = at(document, "spec", "service")
    where = "Local" if service is None else f"{text(service, 'namespace')}/{text(service, 'name')}"
    return [name(document), where, _availability(document), age(document, now)]


def _availability(document: Document) -> str:
    available = conditions(document).get("Available")
    if available is None:
        return "Unknown"
    status, reason = text(available, "status"), text(available, "reason")
    return f"{status} ({reason})" if reason and status != "True" else status


def _claim(document: Document, now: int) -> list[Cell]:
    states = ["deleted"] if deleted(document) else []
    if at(document, "status", "allocation") is not None:
        states.append("allocated")
        states += ["reserved"] if objects(document, "status", "reservedFor") else []
    elif not states:
        states = ["pending"]
    return [name(document), ",".join(states), age(document, now)]


def _resource_slice(document: Document, now: int) -> list[Cell]:
    return [
        name(document),
        text(document, "spec", "nodeName"),
        text(document, "spec", "driver"),
        text(document, "spec", "pool", "name"),
        age(document, now),
    ]


def _taint_rule(document: Document, now: int) -> list[Cell]:
    taint = at(document, "spec", "taint")
    added = at(taint, "timeAdded")
    return [
        name(document),
        text(taint, "key"),
        text(taint, "value"),
        text(taint, "effect"),
        "" if added is None else since(added, now),
        age(document, now),
    ]


PRINTERS: Mapping[str, RowPrinter] = {
    "Node": _node,
    "Namespace": _namespace,
    "ConfigMap": _config_map,
    "Secret": _secret,
    "ServiceAccount": name_and_age,
    "Event": _event,
    "Event.events.k8s.io": _event,
    "ComponentStatus": _component_status,
    "Lease.coordination.k8s.io": _lease,
    "RuntimeClass.node.k8s.io": _runtime_class,
    "CustomResourceDefinition.apiextensions.k8s.io": _definition,
    "APIService.apiregistration.k8s.io": _api_service,
    "DeviceClass.resource.k8s.io": name_and_age,
    "ResourceClaim.resource.k8s.io": _claim,
    "ResourceClaimTemplate.resource.k8s.io": name_and_age,
    "ResourceSlice.resource.k8s.io": _resource_slice,
    "DeviceTaintRule.resource.k8s.io": _taint_rule,
}
