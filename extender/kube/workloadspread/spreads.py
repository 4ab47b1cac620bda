"""WorkloadSpreads, decoded from either version, and their status, encoded as v1beta1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import msgspec

from extender.kube.decoders.object_meta import format_time
from extender.kube.decoders.pods import epoch_ns
from extender.kube.decoders.replicasets import time_to_ns
from extender.kube.decoders.typed_decoder import ObjectError, decode_object, label_selector_of
from extender.kube.workloadspread import types
from extender.kube.workloadspread.types import expression_of, term_of, toleration_of
from extender.kube.workloadspread.version_conversion import V1BETA1, UnknownVersionError, convert
from policies.workloadspread import model
from policies.workloadspread.object_references import WorkloadReference
from policies.workloadspread.validation import label_selector_error

IGNORE_PATCH: Final = "workloadspread.kruise.io/ignore-patch-existing-pods-metadata"

_KIND: Final = "WorkloadSpread"
_CACHE_SIZE: Final = 64
_decoder = msgspec.json.Decoder(types.WorkloadSpreadV1Beta1)
_documents = msgspec.json.Decoder(dict[str, Any])


@dataclass(frozen=True, slots=True)
class StoredWorkloadSpread:
    """A WorkloadSpread as decisions read it, and as v1beta1 JSON."""

    spread: model.WorkloadSpread
    document: Mapping[str, Any]

    def subset(self, name: str) -> Mapping[str, Any]:
        """Return a subset as JSON. Raise KeyError."""
        for subset in self.document["spec"]["subsets"]:
            if (subset.get("name") or "") == name:
                return MappingProxyType(subset)
        raise KeyError(name)


def decode_workloadspread(raw: bytes) -> StoredWorkloadSpread:
    """Decode a WorkloadSpread of any version. Raise ObjectError.

    A client that writes one receives it twice, in the response and in a watch event, which differ
    only in the newline; a status can name thousands of pods. So recent results are cached.
    """
    return _read(bytes(raw).strip())


@lru_cache(maxsize=_CACHE_SIZE)
def _read(raw: bytes) -> StoredWorkloadSpread:
    document = _document(raw)
    return StoredWorkloadSpread(
        decode_object(_KIND, _decoder, msgspec.json.encode(document), _spread), document
    )


def encode_status(status: model.WorkloadSpreadStatus) -> dict[str, Any]:
    """Return a status as JSON, without empty fields."""
    document: dict[str, Any] = {}
    if status.observed_generation:
        document["observedGeneration"] = status.observed_generation
    if status.subsets:
        document["subsetStatuses"] = list(map(_entry, status.subsets))
    if status.versions:
        document["versionedSubsetStatuses"] = {
            version: list(map(_entry, subsets)) for version, subsets in status.versions.items()
        }
    return document


def _document(raw: bytes) -> dict[str, Any]:
    """Decode the JSON, and convert it to v1beta1."""
    try:
        return convert(_documents.decode(raw), V1BETA1)
    except UnknownVersionError as error:
        raise ObjectError(f"{_KIND}: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        decode_object(_KIND, _decoder, raw, _spread)  # raises a more specific error
        raise ObjectError(f"{_KIND}: {error}") from None


def _spread(shape: types.WorkloadSpreadV1Beta1) -> model.WorkloadSpread:
    meta, spec = shape.metadata, shape.spec or types.WorkloadSpreadSpecV1Beta1()
    ignores = (meta.annotations or {}).get(IGNORE_PATCH, "").casefold() == "true"
    return model.WorkloadSpread(
        namespace=meta.namespace or "default",
        name=meta.name,
        target=_target(spec.target_ref),
        subsets=tuple(map(_subset, spec.subsets or ())),
        uid=meta.uid or "",
        resource_version=meta.resourceVersion or "",
        generation=meta.generation or 0,
        terminating=meta.deletionTimestamp is not None,
        target_filter=None if spec.target_filter is None else _filter(spec.target_filter),
        strategy=_strategy(spec.schedule_strategy or types.ScheduleStrategyV1Beta1()),
        ignores_patch_metadata=ignores,
        status=_status(shape.status or types.WorkloadSpreadStatusV1Beta1()),
    )


def _target(shape: types.TargetReferenceV1Beta1 | None) -> WorkloadReference | None:
    return None if shape is None else WorkloadReference(shape.api_version, shape.kind, shape.name)


def _filter(shape: types.TargetFilterV1Beta1) -> model.TargetFilter:
    paths = tuple(shape.replicas_path_list or ())
    selector = shape.selector
    if selector is None:
        return model.TargetFilter(replicas_paths=paths)
    expressions = map(expression_of, selector.matchExpressions or ())
    problem = label_selector_error(selector.matchLabels or {}, expressions)
    if problem:
        return model.TargetFilter(error=problem, replicas_paths=paths)
    return model.TargetFilter(label_selector_of("selector", selector), replicas_paths=paths)


def _strategy(shape: types.ScheduleStrategyV1Beta1) -> model.ScheduleStrategy:
    adaptive = shape.adaptive
    if adaptive is None:
        return model.ScheduleStrategy(shape.type or "")
    return model.ScheduleStrategy(
        shape.type or "",
        model.AdaptiveStrategy(
            simulates=not adaptive.disable_simulation_schedule,
            reschedule_critical_seconds=adaptive.reschedule_critical_seconds,
        ),
    )


def _subset(shape: types.SubsetV1Beta1) -> model.Subset:
    required = shape.required_node_selector
    return model.Subset(
        name=shape.name,
        max_replicas=shape.max_replicas,
        required=None if required is None else term_of(required),
        preferred=tuple(
            model.Preference(each.weight, term_of(each.preference))
            for each in shape.preferred_node_selector or ()
        ),
        tolerations=tuple(
            model.SubsetToleration(toleration_of(each), each.toleration_seconds is not None)
            for each in shape.tolerations or ()
        ),
        patched=shape.patch is not None,
    )


def _status(shape: types.WorkloadSpreadStatusV1Beta1) -> model.WorkloadSpreadStatus:
    versions = shape.versioned_subset_statuses or {}
    return model.WorkloadSpreadStatus(
        observed_generation=shape.observed_generation or 0,
        subsets=tuple(map(_subset_status, shape.subset_statuses or ())),
        versions={
            version: tuple(map(_subset_status, subsets or ()))
            for version, subsets in versions.items()
        },
    )


def _subset_status(shape: types.SubsetStatusV1Beta1) -> model.SubsetStatus:
    return model.SubsetStatus(
        name=shape.name,
        missing=shape.missing_replicas,
        replicas=shape.replicas,
        creating=_moments(shape.creating_pods),
        deleting=_moments(shape.deleting_pods),
        conditions=tuple(map(_condition, shape.conditions or ())),
    )


def _moments(written: Mapping[str, datetime] | None) -> Mapping[str, int]:
    return {name: epoch_ns(time) for name, time in (written or {}).items()}


def _condition(shape: types.SubsetConditionV1Beta1) -> model.SubsetCondition:
    return model.SubsetCondition(
        type=shape.type,
        status=shape.status,
        reason=shape.reason or "",
        message=shape.message or "",
        changed_ns=time_to_ns(shape.lastTransitionTime),
        observed_generation=shape.observed_generation or 0,
    )


def _entry(status: model.SubsetStatus) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": status.name, "replicas": status.replicas}
    if status.conditions:
        entry["conditions"] = [_written_condition(each) for each in status.conditions]
    entry["missingReplicas"] = status.missing
    for name, pods in (("creatingPods", status.creating), ("deletingPods", status.deleting)):
        if pods:
            entry[name] = {pod: format_time(at_ns) for pod, at_ns in pods.items()}
    return entry


def _written_condition(condition: model.SubsetCondition) -> dict[str, Any]:
    written: dict[str, Any] = {"type": condition.type, "status": condition.status}
    if condition.observed_generation:
        written["observedGeneration"] = condition.observed_generation
    changed = condition.changed_ns
    return {
        **written,
        "lastTransitionTime": None if changed is None else format_time(changed),
        "reason": condition.reason,
        "message": condition.message,
    }
