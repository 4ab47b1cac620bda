"""Kinds that are served in two versions and stored in one.

An event is the same object below ``/api/v1`` and below ``/apis/events.k8s.io/v1``; a
HorizontalPodAutoscaler is the same in autoscaling/v1 and v2. Autoscalers are stored in the newer
version, events in the older one. PodGroups and Workloads have the same fields in
scheduling.k8s.io/v1alpha3 and v1beta1, and are stored in v1beta1.

    events.k8s.io/v1   {"note": "...", "regarding": {...}}
    v1                 {"message": "...", "involvedObject": {...}}

Of the metrics of an autoscaler, v1 has CPU utilization only. Upstream keeps the others in
annotations; here v1 does not show them, and replacing a whole object through v1 drops them.

Sources: pkg/apis/events/v1/conversion.go, pkg/apis/autoscaling/v1/conversion.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from fakeapi.apiserver.kinds import ResourceInfo, ResourceRegistry
from fakeapi.apiserver.store.object_store import Document

Convert = Callable[[Document], Document]


@dataclass(frozen=True, slots=True)
class VersionConversion:
    """The conversion between a served version and the stored one.

    ``stored`` is the stored version: group, version, plural. ``to_stored`` and ``to_served``
    convert documents, or fragments such as merge patches; they do not change kind and apiVersion.
    ``names`` maps served field names to stored ones, for fields that are only renamed.
    """

    stored: tuple[str, str, str]
    to_stored: Convert
    to_served: Convert
    names: Mapping[str, str]

    def stored_kind(self, kinds: ResourceRegistry) -> ResourceInfo | None:
        """Return the stored kind; None if it is not served here."""
        return kinds.at(*self.stored)


def conversion_of(kind: ResourceInfo) -> VersionConversion | None:
    """Return the conversion of a kind; None if it is stored as it is served."""
    return _CONVERSIONS.get((kind.group, kind.version, kind.plural))


def to_stored_version(
    kinds: ResourceRegistry, kind: ResourceInfo, document: Document
) -> tuple[ResourceInfo, Document]:
    """Return the stored kind and version of a document; most documents are unchanged."""
    conversion = conversion_of(kind)
    stored = conversion.stored_kind(kinds) if conversion is not None else None
    if conversion is None or stored is None:
        return kind, document
    header = {"kind": stored.kind, "apiVersion": stored.api_version}
    return stored, {**conversion.to_stored(document), **header}


def _rename(names: Mapping[str, str], document: Document) -> Document:
    return {names.get(name, name): value for name, value in document.items()}


_EVENT_NAMES: Final = MappingProxyType(
    {
        "regarding": "involvedObject",
        "note": "message",
        "reportingController": "reportingComponent",
        "deprecatedSource": "source",
        "deprecatedFirstTimestamp": "firstTimestamp",
        "deprecatedLastTimestamp": "lastTimestamp",
        "deprecatedCount": "count",
    }
)
_EVENT_NAMES_BACK: Final = {stored: served for served, stored in _EVENT_NAMES.items()}

_TARGET: Final = "targetCPUUtilizationPercentage"
_CURRENT: Final = "currentCPUUtilizationPercentage"
_NO_REPLICAS: Final = {"currentReplicas": 0, "desiredReplicas": 0}  # v2 omits zeros
_STATUS_OF_V2: Final = ("conditions", "currentMetrics")


def _cpu_metric(role: str, share: int) -> dict[str, Any]:
    value: dict[str, Any] = {"averageUtilization": share}
    if role == "target":
        value = {"type": "Utilization", **value}
    return {"type": "Resource", "resource": {"name": "cpu", role: value}}


def _autoscaler_to_stored(document: Document) -> Document:
    stored = dict(document)
    for part, share, metrics, role in (
        ("spec", _TARGET, "metrics", "target"),
        ("status", _CURRENT, "currentMetrics", "current"),
    ):
        if isinstance(stored.get(part), dict) and share in stored[part]:
            members = dict(stored[part])
            value = members.pop(share)
            members[metrics] = [_cpu_metric(role, value)] if isinstance(value, int) else value
            stored[part] = members
    return stored


def _autoscaler_to_served(document: Document) -> Document:
    spec, status = (
        dict(document.get("spec") or {}),
        {**_NO_REPLICAS, **(document.get("status") or {})},
    )
    spec.pop("behavior", None)
    target = _cpu_utilization(spec.pop("metrics", None), "target")
    current = _cpu_utilization(status.get("currentMetrics"), "current")
    for member in _STATUS_OF_V2:
        status.pop(member, None)
    if target is not None:
        spec[_TARGET] = target
    if current is not None:
        status[_CURRENT] = current
    return {**document, "spec": spec, "status": status}


def _cpu_utilization(metrics: Any, role: str) -> int | None:
    for metric in metrics if isinstance(metrics, list) else ():
        match metric:
            case {"type": "Resource", "resource": {"name": "cpu", **resource}}:
                value = resource.get(role)
                share = value.get("averageUtilization") if isinstance(value, dict) else None
                return share if isinstance(share, int) else None
    return None


_SCHEDULING: Final = "scheduling.k8s.io"

_CONVERSIONS: Final[Mapping[tuple[str, str, str], VersionConversion]] = {
    ("events.k8s.io", "v1", "events"): VersionConversion(
        stored=("", "v1", "events"),
        to_stored=partial(_rename, _EVENT_NAMES),
        to_served=partial(_rename, _EVENT_NAMES_BACK),
        names=_EVENT_NAMES,
    ),
    **{
        (_SCHEDULING, "v1alpha3", plural): VersionConversion(
            stored=(_SCHEDULING, "v1beta1", plural),
            to_stored=dict,
            to_served=dict,
            names=MappingProxyType({}),
        )
        for plural in ("podgroups", "workloads")
    },
    ("autoscaling", "v1", "horizontalpodautoscalers"): VersionConversion(
        stored=("autoscaling", "v2", "horizontalpodautoscalers"),
        to_stored=_autoscaler_to_stored,
        to_served=_autoscaler_to_served,
        names=MappingProxyType({}),
    ),
}
