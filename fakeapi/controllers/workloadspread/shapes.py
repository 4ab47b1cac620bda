"""Objects as the controller keeps them: their identity, and what decisions read of them.

Objects are stored as clients wrote them, so a field may have a type that makes no sense. Such an
object is kept with what is wrong with it, and counts as if it were not there.

Of a pod the whole JSON is kept as well: whether it looks as a subset's patch would have it can only
be told by patching it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import msgspec

from extender.kube.decoding import ObjectError
from extender.kube.metadata import ObjectMeta, decode_partial
from extender.kube.objects import decode_node as read_node
from extender.kube.resources import Resource
from extender.kube.workloadspread.pods import decode_spread_pod
from extender.kube.workloadspread.spreads import WrittenSpread
from extender.kube.workloadspread.spreads import decode_spread as read_spread
from extender.kube.workloadspread.workloads import (
    ScaledKind,
    decode_scaled_kinds,
    decode_whitelist,
    decode_workload,
)
from policies.model import Node
from policies.spreading.model import SpreadPod
from policies.spreading.references import KRUISE
from policies.spreading.workloads import Whitelist, Workload

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Kind = tuple[str, str]
"""A group and a kind."""

SPREAD: Final[Kind] = (KRUISE, "WorkloadSpread")
REPLICA_SET: Final[Kind] = ("apps", "ReplicaSet")
DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
)
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", namespaced=True)
KRUISE_NAMESPACE: Final = "kruise-system"


@dataclass(frozen=True, slots=True)
class Item(Generic[T_co]):
    """An object: of its metadata only what identifies it.

    ``value`` is None if it cannot be read, and ``problem`` says why.
    """

    metadata: ObjectMeta
    value: T_co | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class WrittenPod:
    """A pod as decisions read it, and as JSON."""

    pod: SpreadPod
    document: bytes


@dataclass(frozen=True, slots=True)
class Definition:
    """The kind that a CustomResourceDefinition defines, and which scale its objects have."""

    kind: Kind
    scaled: tuple[ScaledKind, ...]


class _DefinedNames(msgspec.Struct):
    kind: str = ""


class _DefinitionSpec(msgspec.Struct):
    group: str = ""
    names: _DefinedNames = msgspec.field(default_factory=_DefinedNames)


class _DefinitionShape(msgspec.Struct):
    spec: _DefinitionSpec = msgspec.field(default_factory=_DefinitionSpec)


_definitions = msgspec.json.Decoder(_DefinitionShape)


def decode_pod(raw: msgspec.Raw | bytes) -> Item[WrittenPod]:
    """Read a pod."""
    return _item(raw, lambda document: WrittenPod(decode_spread_pod(document), document))


def decode_node(raw: msgspec.Raw | bytes) -> Item[Node]:
    """Read a node."""
    return _item(raw, read_node)


def decode_spread(raw: msgspec.Raw | bytes) -> Item[WrittenSpread]:
    """Read a WorkloadSpread of any version."""
    return _item(raw, read_spread)


def decode_configuration(raw: msgspec.Raw | bytes) -> Item[Whitelist]:
    """Read OpenKruise's configuration."""
    return _item(raw, decode_whitelist)


def decode_definition(raw: msgspec.Raw | bytes) -> Item[Definition]:
    """Read a CustomResourceDefinition."""
    return _item(raw, _definition)


def workload_decoder(
    kind: str, scaled: Iterable[ScaledKind]
) -> Callable[[msgspec.Raw | bytes], Item[Workload]]:
    """Give what reads objects of a kind; each call gives another function."""
    known = tuple(scaled)
    return lambda raw: _item(raw, lambda document: decode_workload(kind, document, known))


def _item(raw: msgspec.Raw | bytes, read: Callable[[bytes], T]) -> Item[T]:
    document = bytes(raw)
    whole = decode_partial(document).metadata
    meta = ObjectMeta(whole.name, whole.namespace, whole.uid, whole.resource_version)
    try:
        return Item(meta, read(document))
    except ObjectError as error:
        return Item(meta, problem=str(error))


def _definition(document: bytes) -> Definition:
    try:
        spec = _definitions.decode(document).spec
    except msgspec.ValidationError as error:
        raise ObjectError(f"CustomResourceDefinition: {error}") from None
    return Definition((spec.group, spec.names.kind), tuple(decode_scaled_kinds(document)))
