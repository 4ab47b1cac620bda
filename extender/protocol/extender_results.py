"""The results of k8s.io/kube-scheduler/extender/v1, encoded with exactly Go's keys in Go's order.

Nodes are passed on as the received bytes, and packed names as their text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from policies.kubernetes.packed_names import PackedNames


class MetaPod(msgspec.Struct):
    """A victim by its UID."""

    UID: str


class MetaVictims(msgspec.Struct):
    """Victims on one node by their UIDs, most important first."""

    Pods: list[MetaPod]
    NumPDBViolations: int


class FilterResult(msgspec.Struct):
    """ExtenderFilterResult: the feasible nodes, and the reason for each other one."""

    Nodes: RawNodeList | None
    NodeNames: Sequence[str] | msgspec.Raw | None
    FailedNodes: dict[str, str]
    FailedAndUnresolvableNodes: dict[str, str]
    Error: str = ""


class RawNodeList(msgspec.Struct):
    """A v1.NodeList whose nodes are passed on unchanged."""

    metadata: dict[str, str]
    items: list[msgspec.Raw]


class PreemptionResult(msgspec.Struct):
    """ExtenderPreemptionResult: victims by UID, in either form of the request."""

    NodeNameToMetaVictims: dict[str, MetaVictims]


def encode(result: FilterResult | PreemptionResult) -> bytes:
    """Encode a result for Go's decoder."""
    return msgspec.json.encode(result)


def encodable_names(names: Sequence[str]) -> Sequence[str] | msgspec.Raw:
    """Return names for a result: packed ones as their text."""
    return msgspec.Raw(names.text) if isinstance(names, PackedNames) else tuple(names)


def meta_victims(uids: Iterable[str], violations: int) -> MetaVictims:
    """Return victims by UID, in the given order."""
    return MetaVictims([MetaPod(uid) for uid in uids], violations)
