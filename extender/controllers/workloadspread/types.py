"""Objects as controller and webhooks cache them: their identity, and the fields decisions read.

Objects are stored as clients wrote them, so a field may have the wrong type. Such an object is
cached with its decode error, and is treated as absent. Of a pod the whole JSON is kept as well:
whether it already matches a subset's patch is only known by applying the patch to it.

Informers requested with the same of these decoders are shared within the process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar

import msgspec

from extender.kube.decoders.cluster_objects import decode_node as read_node
from extender.kube.decoders.object_meta import ObjectMeta, decode_partial
from extender.kube.decoders.typed_decoder import ObjectError, object_decoder
from extender.kube.rest.client import Decode, Selection
from extender.kube.rest.resources import Resource
from extender.kube.workloadspread.spread_pods import decode_spread_pod
from extender.kube.workloadspread.spreads import StoredWorkloadSpread
from extender.kube.workloadspread.spreads import decode_workloadspread as read_spread
from extender.kube.workloadspread.types import CrdSpec, CustomResourceDefinitionV1
from extender.kube.workloadspread.workloads import (
    CONFIGURATION,
    ScaledKind,
    decode_allowed_kinds,
    decode_workload,
    scaled_kinds,
)
from policies.kubernetes.snapshot import Node
from policies.workloadspread.model import SpreadPod
from policies.workloadspread.object_references import KRUISE
from policies.workloadspread.workloads import AllowedKinds, TargetWorkload

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Kind = tuple[str, str]
"""A group and a kind."""

WORKLOAD_SPREAD: Final[Kind] = (KRUISE, "WorkloadSpread")
REPLICA_SET: Final[Kind] = ("apps", "ReplicaSet")

CONFIG_MAPS: Final = Resource("", "v1", "configmaps", namespaced=True)
DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
)
KRUISE_NAMESPACE: Final = "kruise-system"
CONFIGURATION_SELECTION: Final = Selection(
    KRUISE_NAMESPACE, field_selector=f"metadata.name={CONFIGURATION}"
)
CONFIGURATION_KEY: Final = f"{KRUISE_NAMESPACE}/{CONFIGURATION}"

_documents = msgspec.json.Decoder(dict[str, Any])


@dataclass(frozen=True, slots=True)
class CachedObject(Generic[T_co]):
    """A cached object; of its metadata only the identity is kept.

    ``value`` is None if the object cannot be decoded; ``problem`` is then the error.
    """

    metadata: ObjectMeta
    value: T_co | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class CachedRawObject:
    """A cached object with its whole document."""

    metadata: ObjectMeta
    document: dict[str, Any]


def decode_cached_object(raw: msgspec.Raw | bytes, read: Callable[[bytes], T]) -> CachedObject[T]:
    """Decode an object, with any ObjectError of ``read`` as its ``problem``."""
    document = bytes(raw)
    whole = decode_partial(document).metadata
    meta = ObjectMeta(whole.name, whole.namespace, whole.uid, whole.resource_version)
    try:
        return CachedObject(meta, read(document))
    except ObjectError as error:
        return CachedObject(meta, problem=str(error))


def decode_spread(raw: msgspec.Raw | bytes) -> CachedObject[StoredWorkloadSpread]:
    """Decode a WorkloadSpread of any version."""
    return decode_cached_object(raw, read_spread)


def decode_cached_document(raw: msgspec.Raw | bytes) -> CachedRawObject:
    """Decode an object of any kind."""
    whole = bytes(raw)
    return CachedRawObject(decode_partial(whole).metadata, _documents.decode(whole))


def decode_configuration(raw: msgspec.Raw | bytes) -> CachedObject[AllowedKinds]:
    """Decode OpenKruise's configuration."""
    return decode_cached_object(raw, decode_allowed_kinds)


@lru_cache(maxsize=256)
def workload_decoder(
    kind: str, scaled: tuple[ScaledKind, ...]
) -> Decode[CachedObject[TargetWorkload]]:
    """Return the decoder of a kind: the same function for the same kind and scales."""

    def decode(raw: msgspec.Raw | bytes) -> CachedObject[TargetWorkload]:
        return decode_cached_object(raw, lambda document: decode_workload(kind, document, scaled))

    return decode


@dataclass(frozen=True, slots=True)
class SpreadPodDocument:
    """A pod as decisions read it, and as JSON."""

    pod: SpreadPod
    document: bytes


@dataclass(frozen=True, slots=True)
class DefinedKind:
    """The kind that a CustomResourceDefinition defines, and the scales of its versions."""

    kind: Kind
    scaled: tuple[ScaledKind, ...]


def decode_pod(raw: msgspec.Raw | bytes) -> CachedObject[SpreadPodDocument]:
    """Decode a pod."""
    return decode_cached_object(
        raw, lambda document: SpreadPodDocument(decode_spread_pod(document), document)
    )


def decode_node(raw: msgspec.Raw | bytes) -> CachedObject[Node]:
    """Decode a node."""
    return decode_cached_object(raw, read_node)


def decode_definition(raw: msgspec.Raw | bytes) -> CachedObject[DefinedKind]:
    """Decode a CustomResourceDefinition."""
    return decode_cached_object(raw, _read_definition)


def _defined_kind(shape: CustomResourceDefinitionV1) -> DefinedKind:
    spec = shape.spec or CrdSpec()
    return DefinedKind((spec.group, spec.names.kind), tuple(scaled_kinds(shape)))


_read_definition = object_decoder(
    "CustomResourceDefinition", CustomResourceDefinitionV1, _defined_kind
)
