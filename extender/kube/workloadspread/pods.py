"""v1.Pod as spreading reads it, and what its annotation says of its subset."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from extender.kube.decoding import decoded_unnamed
from extender.kube.workloadspread import shapes
from extender.kube.workloadspread.reading import (
    controller_of,
    moment,
    own_uid,
    owner_of,
    term_of,
    toleration_of,
)
from policies.spreading.model import Injection, NodeTerm, SpreadPod

MATCHED: Final = "apps.kruise.io/matched-workloadspread"
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"

_pods = msgspec.json.Decoder(shapes.PodShape)
_maps = msgspec.json.Decoder(dict[str, Any])


def decode_spread_pod(raw: bytes) -> SpreadPod:
    """Read a v1.Pod, which may have only a generateName. Raises ObjectError."""
    return decoded_unnamed("Pod", _pods, raw, _pod)


def read_injection(text: str | None) -> Injection | None:
    """Read the annotation of a pod that has been put into a subset; None if it says nothing.

    Keys may have any case, as Go decodes them.
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
    return Injection(fields["name"], fields["subset"], fields["uid"])


def write_injection(injection: Injection) -> str:
    """Write the annotation."""
    written = {"name": injection.spread, "subset": injection.subset}
    if injection.uid:
        written["uid"] = injection.uid
    return msgspec.json.encode(written).decode()


def _pod(shape: shapes.PodShape) -> SpreadPod:
    meta = shape.metadata
    spec, status = shape.spec or shapes.PodSpec(), shape.status or shapes.PodStatus()
    annotations = meta.annotations or {}
    conditions = status.conditions or []
    ready = next((c for c in conditions if c.type == "Ready"), shapes.ConditionShape())
    return SpreadPod(
        namespace=meta.namespace or "default",
        name=meta.name,
        uid=own_uid(meta.uid, "Pod", meta.name),
        labels=meta.labels or {},
        controller=controller_of(meta.ownerReferences),
        owners=frozenset(owner_of(each).uid for each in meta.ownerReferences or ()),
        phase=status.phase or "",
        terminating=meta.deletionTimestamp is not None,
        node=spec.node_name or "",
        created_ns=moment(meta.creationTimestamp),
        ready=ready.status == "True",
        ready_since=moment(ready.last_transition_time),
        restarts=max((each.restart_count for each in status.container_statuses or ()), default=0),
        sidecar_restarts=_sidecar_restarts(spec, status),
        unschedulable=any(map(_is_unschedulable, conditions)),
        tolerations=tuple(map(toleration_of, spec.tolerations or ())),
        node_terms=tuple(_terms(spec.affinity)),
        injection=read_injection(annotations.get(MATCHED)),
        deletion_cost=annotations.get(DELETION_COST),
    )


def _sidecar_restarts(spec: shapes.PodSpec, status: shapes.PodStatus) -> int:
    sidecars = {c.name for c in spec.init_containers or () if c.restart_policy == "Always"}
    statuses = status.init_container_statuses or ()
    return max((each.restart_count for each in statuses if each.name in sidecars), default=0)


def _is_unschedulable(condition: shapes.ConditionShape) -> bool:
    told = condition.type, condition.status, condition.reason
    return told == ("PodScheduled", "False", "Unschedulable")


def _terms(affinity: shapes.Affinity | None) -> Iterable[NodeTerm]:
    preferences = None if affinity is None else affinity.node_affinity
    required = None if preferences is None else preferences.required
    return map(term_of, () if required is None else required.node_selector_terms or ())
