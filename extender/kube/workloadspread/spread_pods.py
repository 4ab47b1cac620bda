"""v1.Pod as WorkloadSpread reads it, and its annotation with the subset."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from extender.kube.decoders.replicasets import (
    ReplicaPodConditionV1,
    ReplicaPodStatusV1,
    max_restarts,
    ready_condition,
    sidecar_statuses,
    time_to_ns,
)
from extender.kube.decoders.typed_decoder import decode_unnamed_object
from extender.kube.workloadspread import types
from extender.kube.workloadspread.types import (
    controller_of,
    owner_of,
    term_of,
    toleration_of,
    uid_or_placeholder,
)
from policies.replicaset import DELETION_COST
from policies.workloadspread.model import NodeTerm, SpreadPod, SubsetInjection

MATCHED_WORKLOADSPREAD: Final = "apps.kruise.io/matched-workloadspread"

_pods = msgspec.json.Decoder(types.SpreadPodV1)
_maps = msgspec.json.Decoder(dict[str, Any])


def decode_spread_pod(raw: bytes) -> SpreadPod:
    """Decode a v1.Pod, which may have only a generateName. Raise ObjectError."""
    return decode_unnamed_object("Pod", _pods, raw, _pod)


def read_injection(text: str | None) -> SubsetInjection | None:
    """Decode the annotation of a pod that is in a subset; return None without a valid one.

    Keys are case-insensitive, as in Go's decoder.
    """
    try:
        written = _maps.decode(text or "")
    except (msgspec.DecodeError, RecursionError):
        return None
    fields = {"name": "", "subset": "", "uid": ""}
    for key, value in written.items():
        name = key.casefold()
        if name not in fields or value is None:
            continue
        if not isinstance(value, str):
            return None
        fields[name] = value
    return SubsetInjection(fields["name"], fields["subset"], fields["uid"])


def write_injection(injection: SubsetInjection) -> str:
    """Encode the annotation."""
    written = {"name": injection.spread, "subset": injection.subset}
    if injection.uid:
        written["uid"] = injection.uid
    return msgspec.json.encode(written).decode()


def _pod(shape: types.SpreadPodV1) -> SpreadPod:
    meta = shape.metadata
    spec, status = shape.spec or types.SpreadPodSpecV1(), shape.status or ReplicaPodStatusV1()
    annotations = meta.annotations or {}
    ready = ready_condition(status)
    return SpreadPod(
        namespace=meta.namespace or "default",
        name=meta.name,
        uid=uid_or_placeholder(meta.uid, "Pod", meta.name),
        labels=meta.labels or {},
        controller=controller_of(meta.ownerReferences),
        owners=frozenset(owner_of(each).uid for each in meta.ownerReferences or ()),
        phase=status.phase or "",
        terminating=meta.deletionTimestamp is not None,
        node=spec.nodeName or "",
        created_ns=time_to_ns(meta.creationTimestamp),
        ready=ready.status == "True",
        ready_since=time_to_ns(ready.lastTransitionTime),
        restarts=max_restarts(status.containerStatuses),
        sidecar_restarts=max_restarts(sidecar_statuses(spec, status)),
        unschedulable=any(map(_is_unschedulable, status.conditions or ())),
        tolerations=tuple(map(toleration_of, spec.tolerations or ())),
        node_terms=tuple(_terms(spec.affinity)),
        injection=read_injection(annotations.get(MATCHED_WORKLOADSPREAD)),
        deletion_cost=annotations.get(DELETION_COST),
    )


def _is_unschedulable(condition: ReplicaPodConditionV1) -> bool:
    found = condition.type, condition.status, condition.reason
    return found == ("PodScheduled", "False", "Unschedulable")


def _terms(affinity: types.SpreadAffinityV1 | None) -> Iterable[NodeTerm]:
    preferences = None if affinity is None else affinity.node_affinity
    required = None if preferences is None else preferences.required
    return map(term_of, () if required is None else required.node_selector_terms or ())
