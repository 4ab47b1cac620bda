"""Pods, nodes and definitions as the controller caches them.

Of a pod the whole JSON is kept as well: whether it already matches a subset's patch is only known
by applying the patch to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from extender.kube.decoding import ObjectError
from extender.kube.objects import decode_node as read_node
from extender.kube.workloadspread.pods import decode_spread_pod
from extender.kube.workloadspread.workloads import ScaledKind, decode_scaled_kinds
from fakeapi.controllers.spreading.items import CachedObject, decode_cached_object
from policies.model import Node
from policies.spreading.model import SpreadPod
from policies.spreading.references import KRUISE

Kind = tuple[str, str]
"""A group and a kind."""

WORKLOAD_SPREAD: Final[Kind] = (KRUISE, "WorkloadSpread")
REPLICA_SET: Final[Kind] = ("apps", "ReplicaSet")


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


class _DefinedNames(msgspec.Struct):
    kind: str = ""


class _DefinitionSpec(msgspec.Struct):
    group: str = ""
    names: _DefinedNames = msgspec.field(default_factory=_DefinedNames)


class _DefinitionFields(msgspec.Struct):
    spec: _DefinitionSpec = msgspec.field(default_factory=_DefinitionSpec)


_definitions = msgspec.json.Decoder(_DefinitionFields)


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
    return decode_cached_object(raw, _definition)


def _definition(document: bytes) -> DefinedKind:
    try:
        spec = _definitions.decode(document).spec
    except msgspec.ValidationError as error:
        raise ObjectError(f"CustomResourceDefinition: {error}") from None
    return DefinedKind((spec.group, spec.names.kind), tuple(decode_scaled_kinds(document)))
