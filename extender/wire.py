"""The extender protocol as Go speaks it: extender/v1 bytes to values and back.

Go's structs carry no JSON tags, so keys are capitalised Go names, unset pointers and maps arrive as
``null``, and Go's decoder takes any casing and ignores keys that it doesn't know. This module does
the same on the way in, and writes exactly Go's keys in Go's order on the way out. Embedded pods and
nodes are ordinary Kubernetes JSON and are kept as the bytes they came in.

Source: k8s.io/kube-scheduler/extender/v1/types.go and pkg/scheduler/extender.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)


class WireError(ValueError):
    """A body is not what the verb expects; the text says what is wrong and what was expected."""


class MetaPod(msgspec.Struct):
    """A victim by its UID."""

    UID: str


class MetaVictims(msgspec.Struct):
    """Victims on one node by their UIDs, the most important first."""

    Pods: list[MetaPod]
    NumPDBViolations: int


class FilterResult(msgspec.Struct):
    """ExtenderFilterResult: the nodes that are left, and why each other one is not."""

    Nodes: NodeList | None
    NodeNames: list[str] | None
    FailedNodes: dict[str, str]
    FailedAndUnresolvableNodes: dict[str, str]
    Error: str = ""


class NodeList(msgspec.Struct):
    """A v1.NodeList whose nodes are passed on untouched."""

    metadata: dict[str, str]
    items: list[msgspec.Raw]


class PreemptionResult(msgspec.Struct):
    """ExtenderPreemptionResult: always by UIDs, in either mode."""

    NodeNameToMetaVictims: dict[str, MetaVictims]


@dataclass(frozen=True, slots=True)
class FilterRequest:
    """What a filter call asks: a pod, and nodes by name or, without a node cache, as objects."""

    pod: bytes
    names: tuple[str, ...] | None
    nodes: tuple[msgspec.Raw, ...] | None


@dataclass(frozen=True, slots=True)
class Offer:
    """What kube-scheduler would evict on one node: UIDs, and how many budgets that breaks."""

    uids: tuple[str, ...]
    violations: int


@dataclass(frozen=True, slots=True)
class PreemptRequest:
    """What a preempt call asks: a pod, and kube-scheduler's own candidates."""

    pod: bytes
    offers: Mapping[str, Offer]


def decode_filter(body: bytes) -> FilterRequest:
    """Read ExtenderArgs. Raises WireError."""
    fields = _fields(body, "ExtenderArgs")
    names = _typed(fields, "NodeNames", list[str])
    nodes = _typed(fields, "Nodes", _Nodes)
    if names is None and nodes is None:
        raise WireError("ExtenderArgs: neither Nodes nor NodeNames is set; expected one of them")
    return FilterRequest(
        pod=_pod(fields, "ExtenderArgs"),
        names=None if names is None else tuple(names),
        nodes=None if nodes is None else tuple(nodes.items or ()),
    )


def decode_preempt(body: bytes) -> PreemptRequest:
    """Read ExtenderPreemptionArgs, with full victims or with their UIDs. Raises WireError."""
    fields = _fields(body, "ExtenderPreemptionArgs")
    by_uid = _victims(fields, "NodeNameToMetaVictims", dict[str, _MetaOffer | None])
    in_full = _victims(fields, "NodeNameToVictims", dict[str, _FullOffer | None])
    if by_uid is None and in_full is None:
        raise WireError(
            "ExtenderPreemptionArgs: neither NodeNameToVictims nor NodeNameToMetaVictims is set; "
            "expected one of them"
        )
    offers = {
        node: Offer(tuple(offer.uids()), offer.NumPDBViolations or 0)
        for node, offer in {**(in_full or {}), **(by_uid or {})}.items()
        if offer is not None
    }
    return PreemptRequest(_pod(fields, "ExtenderPreemptionArgs"), offers)


def encode(result: FilterResult | PreemptionResult) -> bytes:
    """Write a result as Go's decoder reads it."""
    return msgspec.json.encode(result)


def meta_victims(uids: Iterable[str], violations: int) -> MetaVictims:
    """Name victims by UID, in the order given."""
    return MetaVictims([MetaPod(uid) for uid in uids], violations)


class _Nodes(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


class _MetaPodIn(msgspec.Struct):
    UID: str = ""


class _MetaOffer(msgspec.Struct):
    Pods: list[_MetaPodIn | None] | msgspec.UnsetType | None = msgspec.UNSET
    NumPDBViolations: int | msgspec.UnsetType | None = msgspec.UNSET

    def uids(self) -> Iterable[str]:
        return (pod.UID for pod in self.Pods or () if pod is not None and pod.UID)


class _Identity(msgspec.Struct):
    uid: str = ""


class _Victim(msgspec.Struct):
    metadata: _Identity


class _FullOffer(msgspec.Struct):
    Pods: list[_Victim | None] | msgspec.UnsetType | None = msgspec.UNSET
    NumPDBViolations: int | msgspec.UnsetType | None = msgspec.UNSET

    def uids(self) -> Iterable[str]:
        return (pod.metadata.uid for pod in self.Pods or () if pod is not None)


O = TypeVar("O", _MetaOffer, _FullOffer)  # noqa: E741 - an offer

_RAW_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NULL = b"null"
_SPELLINGS = {name.lower(): name for name in ("Pods", "NumPDBViolations", "UID")}


def _fields(body: bytes, what: str) -> dict[str, msgspec.Raw]:
    """Split an object into its fields, keyed in lower case; those that are null are left out."""
    try:
        raw = _RAW_FIELDS.decode(body)
    except msgspec.ValidationError:
        raise WireError(f"{what}: expected a JSON object") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WireError(f"{what}: not JSON: {error}") from None
    return {name.lower(): value for name, value in raw.items() if bytes(value) != _NULL}


def _pod(fields: Mapping[str, msgspec.Raw], what: str) -> bytes:
    raw = fields.get("pod")
    if raw is None:
        raise WireError(f"{what}: Pod is missing; expected the pod to schedule")
    return bytes(raw)


T = TypeVar("T")


def _typed(fields: Mapping[str, msgspec.Raw], name: str, kind: type[T]) -> T | None:
    raw = fields.get(name.lower())
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise WireError(f"{name}: {error}".replace("`", "").replace(" - at $", " at ")) from None


def _victims(
    fields: Mapping[str, msgspec.Raw], name: str, kind: type[dict[str, O | None]]
) -> dict[str, O | None] | None:
    offers = _typed(fields, name, kind)
    if offers is None or not any(_is_spelled_otherwise(offer) for offer in offers.values()):
        return offers
    respelled = msgspec.json.encode(_respelled(msgspec.json.decode(fields[name.lower()])))
    return _typed({name.lower(): msgspec.Raw(respelled)}, name, kind)


def _is_spelled_otherwise(offer: _MetaOffer | _FullOffer | None) -> bool:
    # Go always writes both keys, so a missing one hints at another casing.
    return offer is not None and msgspec.UNSET in (offer.Pods, offer.NumPDBViolations)


def _respelled(victims: dict[str, dict[str, object] | None]) -> object:
    """Give the victims with Go's names for their keys, whatever their casing."""
    return {node: offer and _with_go_names(offer) for node, offer in victims.items()}


def _with_go_names(value: object) -> object:
    if isinstance(value, list):
        return [_with_go_names(item) for item in value]
    if isinstance(value, dict):
        return {_SPELLINGS.get(k.lower(), k): _with_go_names(v) for k, v in value.items()}
    return value
