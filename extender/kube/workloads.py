"""Services and controllers, decoded to the pods that they select."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from extender.kube import shapes
from extender.kube.decoding import Decode, decode_object, label_selector_of
from policies.selectors import LabelSelector, equals_all
from policies.workloads import (
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    SERVICE,
    STATEFUL_SET,
    PodSelectingObject,
)

_by_map = msgspec.json.Decoder(shapes.MapSelectorWorkloadV1)
_by_selector = msgspec.json.Decoder(shapes.LabelSelectorWorkloadV1)


def _decode_by_map(kind: str) -> Decode[PodSelectingObject]:
    def convert(shape: shapes.MapSelectorWorkloadV1) -> PodSelectingObject:
        labels = None if shape.spec is None else shape.spec.selector
        selector = None if labels is None else LabelSelector(equals_all(labels))
        return _workload(kind, shape.metadata, selector)

    return lambda raw: decode_object(kind, _by_map, raw, convert)


def _decode_by_selector(kind: str) -> Decode[PodSelectingObject]:
    def convert(shape: shapes.LabelSelectorWorkloadV1) -> PodSelectingObject:
        written = None if shape.spec is None else shape.spec.selector
        return _workload(kind, shape.metadata, label_selector_of("spec.selector", written))

    return lambda raw: decode_object(kind, _by_selector, raw, convert)


def _workload(
    kind: str, meta: shapes.ObjectMetaV1, selector: LabelSelector | None
) -> PodSelectingObject:
    return PodSelectingObject(kind, meta.namespace or "default", meta.name, selector)


WORKLOAD_DECODERS: Mapping[str, Callable[[bytes], PodSelectingObject]] = {
    SERVICE: _decode_by_map(SERVICE),
    REPLICATION_CONTROLLER: _decode_by_map(REPLICATION_CONTROLLER),
    REPLICA_SET: _decode_by_selector(REPLICA_SET),
    STATEFUL_SET: _decode_by_selector(STATEFUL_SET),
}
"""The decoder of each kind of workload; each raises ObjectError."""
