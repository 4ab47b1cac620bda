"""Objects as controller and webhooks keep them: their identity, and what decisions read of them.

Objects are stored as clients wrote them, so a field may have a type that makes no sense. Such an
object is kept with what is wrong with it, and counts as if it were not there.

Who asks for a copy with these decoders shares it with all others of the process who do.
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
from extender.kube.workloadspread.spreads import WrittenSpread
from extender.kube.workloadspread.spreads import decode_spread as read_spread
from extender.kube.workloadspread.workloads import (
    CONFIGURATION,
    ScaledKind,
    decode_whitelist,
    decode_workload,
)
from policies.spreading.workloads import Whitelist, Workload

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

CONFIG_MAPS: Final = Resource("", "v1", "configmaps", namespaced=True)
DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
)
KRUISE_NAMESPACE: Final = "kruise-system"
THE_CONFIGURATION: Final = Selection(
    KRUISE_NAMESPACE, field_selector=f"metadata.name={CONFIGURATION}"
)
THE_KEY: Final = f"{KRUISE_NAMESPACE}/{CONFIGURATION}"

_documents = msgspec.json.Decoder(dict[str, Any])


@dataclass(frozen=True, slots=True)
class Item(Generic[T_co]):
    """An object: of its metadata only what identifies it.

    ``value`` is None if it cannot be read, and ``problem`` says why.
    """

    metadata: ObjectMeta
    value: T_co | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Registered:
    """An object as it was seen, all of it."""

    metadata: ObjectMeta
    document: dict[str, Any]


def item_of(raw: msgspec.Raw | bytes, read: Callable[[bytes], T]) -> Item[T]:
    """Read an object, whatever it is like; ``read`` raises ObjectError."""
    document = bytes(raw)
    whole = decode_partial(document).metadata
    meta = ObjectMeta(whole.name, whole.namespace, whole.uid, whole.resource_version)
    try:
        return Item(meta, read(document))
    except ObjectError as error:
        return Item(meta, problem=str(error))


def decode_spread(raw: msgspec.Raw | bytes) -> Item[WrittenSpread]:
    """Read a WorkloadSpread of any version."""
    return item_of(raw, read_spread)


def decode_registered(raw: msgspec.Raw | bytes) -> Registered:
    """Read an object of any kind."""
    whole = bytes(raw)
    return Registered(decode_partial(whole).metadata, _documents.decode(whole))


def decode_configuration(raw: msgspec.Raw | bytes) -> Item[Whitelist]:
    """Read OpenKruise's configuration."""
    return item_of(raw, decode_whitelist)


@lru_cache(maxsize=256)
def workload_decoder(kind: str, scaled: tuple[ScaledKind, ...]) -> Decode[Item[Workload]]:
    """Return what reads objects of a kind, always the same function for the same kind and scales."""

    def decode(raw: msgspec.Raw | bytes) -> Item[Workload]:
        return item_of(raw, lambda document: decode_workload(kind, document, scaled))

    return decode
