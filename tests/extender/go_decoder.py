"""Answers as kube-scheduler's decoder and client read them.

Written after encoding/json (keys in any casing, unknown ones ignored, ``null`` leaves the zero
value, a wrong type is an error) and after HTTPExtender and callExtenders in pkg/scheduler, v1.37.
Whatever would be an error or a nil dereference there raises :class:`GoError` here.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from policies.kubernetes.releases import NEWEST, Release
from policies.kubernetes.snapshot import Snapshot


class GoError(AssertionError):
    """An answer that makes kube-scheduler fail the scheduling cycle, or crash."""


@dataclass
class FilterResult:
    """ExtenderFilterResult as decoded; nodes are by name, None where Go has a nil pointer."""

    nodes: list[str] | None = None
    names: list[str] | None = None
    failed: dict[str, str] = field(default_factory=dict)
    unresolvable: dict[str, str] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True)
class Victims:
    """MetaVictims as decoded."""

    uids: tuple[str, ...]
    violations: int


def decode_filter_result(body: bytes) -> FilterResult:
    fields = _struct(_parsed(body), "ExtenderFilterResult")
    nodes = fields.get("nodes")
    return FilterResult(
        nodes=None if nodes is None else [_node_name(each) for each in _items(nodes)],
        names=None if fields.get("nodenames") is None else _texts(fields["nodenames"]),
        failed=_text_map(fields.get("failednodes")),
        unresolvable=_text_map(fields.get("failedandunresolvablenodes")),
        error=_text(fields.get("error")),
    )


def decode_preemption_result(body: bytes) -> dict[str, Victims]:
    fields = _struct(_parsed(body), "ExtenderPreemptionResult")
    entries = fields.get("nodenametometavictims", {})
    if not isinstance(entries, dict):
        raise GoError(f"NodeNameToMetaVictims: cannot unmarshal {entries!r}")
    return {node: _victims(node, value) for node, value in entries.items()}


def filtered(body: bytes, sent: Collection[str], *, cached: bool) -> FilterResult:
    """Return the result as HTTPExtender.Filter reads it; ``cached`` is nodeCacheCapable."""
    result = decode_filter_result(body)
    if result.error:
        raise GoError(result.error)
    survivors = result.names if cached else result.nodes
    for name in survivors or ():
        if name not in sent:
            raise GoError(f"claims a filtered node {name!r} which is not found in the input list")
    named = {*(survivors or ()), *result.failed, *result.unresolvable}
    if dropped := set(sent) - named:
        raise GoError(f"dropped without a status, so preemption would skip them: {dropped}")
    return result


def preempted(body: bytes, snapshot: Snapshot, release: Release = NEWEST) -> dict[str, Victims]:
    """Return the victims as HTTPExtender.ProcessPreemption and callExtenders read them."""
    result = decode_preemption_result(body)
    for name, victims in result.items():
        if name not in snapshot.nodes:
            raise GoError(f"node {name!r} not found in the snapshot")
        present = {pod.uid for pod in snapshot.nodes[name].pods}
        for uid in victims.uids:
            if uid not in present:
                raise GoError(f"claims to preempt pod {uid!r} on node {name!r}, not found there")
        if not victims.uids and not release.victimless_candidates:
            raise GoError(f"expected at least one victim pod on node {name!r}")
    return result


def _victims(node: str, value: Any) -> Victims:
    if value is None:
        raise GoError(f"{node}: MetaVictims is nil and would be dereferenced")
    fields = _struct(value, "MetaVictims")
    pods = fields.get("pods", [])
    if not isinstance(pods, list):
        raise GoError(f"Pods: cannot unmarshal {pods!r}")
    if None in pods:
        raise GoError(f"{node}: a MetaPod is nil and would be dereferenced")
    uids = tuple(_text(_struct(pod, "MetaPod").get("uid")) for pod in pods)
    return Victims(uids, _int64(fields.get("numpdbviolations")))


def _parsed(body: bytes) -> Any:
    return json.loads(body, parse_constant=_refuse_constant)


def _refuse_constant(text: str) -> NoReturn:
    raise GoError(f"invalid character in literal {text}")


def _struct(value: Any, name: str) -> Mapping[str, Any]:
    """Return the fields by lower-case name; a null never overwrites what came before it."""
    if not isinstance(value, dict):
        raise GoError(f"cannot unmarshal {value!r} into {name}")
    return {key.lower(): each for key, each in value.items() if each is not None}


def _items(nodes: Any) -> list[Any]:
    items = _struct(nodes, "v1.NodeList").get("items", [])
    if not isinstance(items, list):
        raise GoError(f"items: cannot unmarshal {items!r}")
    return items


def _node_name(node: Any) -> str:
    return _text(_struct(_struct(node, "v1.Node").get("metadata", {}), "metadata").get("name"))


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise GoError(f"cannot unmarshal {value!r} into []string")
    return [_text(each) for each in value]


def _text_map(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise GoError(f"cannot unmarshal {value!r} into map[string]string")
    return {key: _text(each) for key, each in value.items()}


def _text(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise GoError(f"cannot unmarshal {value!r} into string")
    return value


def _int64(value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        raise GoError(f"cannot unmarshal {value!r} into int64")
    return value
