"""Objects as controller and webhooks cache them: their identity, and the fields decisions read.

Objects are stored as clients wrote them, so a field may have the wrong type. Such an object is
cached with its decode error, and is treated as absent.

Informers requested with the same of these decoders are shared within the process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar

import msgspec

from extender.kube.client import Decode, Selection
from extender.kube.decoding import ObjectError
from extender.kube.metadata import ObjectMeta, decode_partial
from extender.kube.resources import Resource
from extender.kube.workloadspread.spreads import StoredWorkloadSpread
from extender.kube.workloadspread.spreads import decode_workloadspread as read_spread
from extender.kube.workloadspread.workloads import (
    CONFIGURATION,
    ScaledKind,
    decode_allowed_kinds,
    decode_workload,
)
from policies.spreading.workloads import AllowedKinds, TargetWorkload

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

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
