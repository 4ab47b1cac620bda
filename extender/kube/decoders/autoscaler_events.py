"""Events of pods in which autoscalers announce nodes. The decoder raises ObjectError."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct, field

from extender.kube.decoders import core_v1_types
from extender.kube.decoders.pods import epoch_ns
from extender.kube.decoders.typed_decoder import object_decoder
from policies.kubernetes.policy_objects import EVENT, AutoscalerEvent


class ObjectReferenceV1(Struct):
    """v1.ObjectReference."""

    namespace: str | None = None
    name: str | None = None
    uid: str | None = None


class EventSeriesV1(Struct):
    """v1.EventSeries."""

    lastObservedTime: datetime | None = None


class EventV1(Struct):
    """v1.Event."""

    metadata: core_v1_types.ObjectMetaV1
    involvedObject: ObjectReferenceV1 = field(default_factory=ObjectReferenceV1)
    reason: str | None = None
    firstTimestamp: datetime | None = None
    lastTimestamp: datetime | None = None
    eventTime: datetime | None = None
    series: EventSeriesV1 | None = None


def _autoscaler_event(shape: EventV1) -> AutoscalerEvent:
    meta, pod = shape.metadata, shape.involvedObject
    series = shape.series or EventSeriesV1()
    # Recorders of either Event API write only some of these.
    observed = series.lastObservedTime or shape.lastTimestamp or shape.eventTime
    time = observed or shape.firstTimestamp or meta.creationTimestamp
    return AutoscalerEvent(
        key=f"{meta.namespace or 'default'}/{meta.name}",
        pod=pod.uid or f"{pod.namespace or 'default'}/{pod.name}",
        reason=shape.reason or "",
        at_ns=0 if time is None else epoch_ns(time),
    )


decode_autoscaler_event = object_decoder(EVENT, EventV1, _autoscaler_event)
