"""PodGroups and CompositePodGroups of scheduling.k8s.io, in every version with schedulingGroup.

The disruption mode is a union in v1alpha3, v1beta1 and v1 (``single: {}``, ``all: {}``), and a text
in v1alpha2 (``Pod``, ``PodGroup``). Both decoders raise ObjectError.
"""

from __future__ import annotations

from msgspec import Struct

from extender.kube.decoders import core_v1_types
from extender.kube.decoders.core_v1_types import Int32
from extender.kube.decoders.typed_decoder import FieldError, object_decoder
from policies.kubernetes.pod_groups import DisruptionMode, PodGroup

_TEXTS = {"Pod": DisruptionMode.SINGLE, "PodGroup": DisruptionMode.ALL}


class DisruptionModeUnion(Struct):
    """The disruption mode: one of its members is set."""

    single: object = None
    all: object = None


class GangPolicyV1(Struct):
    """The scheduling policy of a gang."""

    minCount: Int32 | None = None


class SchedulingPolicyV1(Struct):
    """The scheduling policy: one of its members is set."""

    gang: GangPolicyV1 | None = None


class PodGroupSpecV1(Struct):
    """The spec of both kinds."""

    parentCompositePodGroupName: str | None = None
    disruptionMode: DisruptionModeUnion | str | None = None
    priority: Int32 | None = None
    preemptionPolicy: str | None = None
    schedulingPolicy: SchedulingPolicyV1 | None = None


class PodGroupV1(Struct):
    """An object of either kind."""

    metadata: core_v1_types.ObjectMetaV1
    spec: PodGroupSpecV1 | None = None


def _pod_group(shape: PodGroupV1) -> PodGroup:
    meta, spec = shape.metadata, shape.spec or PodGroupSpecV1()
    gang = spec.schedulingPolicy and spec.schedulingPolicy.gang
    return PodGroup(
        namespace=meta.namespace or "default",
        name=meta.name,
        priority=spec.priority or 0,
        mode=_disruption_mode(spec.disruptionMode),
        parent=spec.parentCompositePodGroupName or "",
        preempts=spec.preemptionPolicy != "Never",
        min_count=(gang and gang.minCount) or 1,
        uid=meta.uid or "",
    )


def _disruption_mode(mode: DisruptionModeUnion | str | None) -> DisruptionMode:
    if mode is None:
        return DisruptionMode.SINGLE
    if isinstance(mode, str):
        if mode not in _TEXTS:
            raise FieldError("spec.disruptionMode", f"{mode!r}; expected Pod or PodGroup")
        return _TEXTS[mode]
    if mode.all is None and mode.single is None:
        raise FieldError("spec.disruptionMode", "no known member; expected single or all")
    return DisruptionMode.SINGLE if mode.all is None else DisruptionMode.ALL


decode_pod_group = object_decoder("PodGroup", PodGroupV1, _pod_group)
decode_composite_pod_group = object_decoder("CompositePodGroup", PodGroupV1, _pod_group)
