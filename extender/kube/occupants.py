"""Nodes and pods as `advise eviction` reads them, in addition to what eviction itself reads.

Of a pod: its node, and whether it is active, terminating, or owned by a DaemonSet, which would
recreate it. A pod that cannot be decoded is kept with the error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
from msgspec import Struct, field

from extender.kube.decoding import ObjectError, unreadable
from extender.kube.evictable import decode_evictable, static_uid
from extender.kube.metadata import ObjectMeta
from policies.eviction.pods import EvictablePod
from policies.eviction.releases import EvictionRelease
from policies.eviction.signals import Pressure

_ENDED = ("Succeeded", "Failed")
_PRESSURES = frozenset(Pressure)
_DAEMONS = "DaemonSet"  # of any group: others define DaemonSets as well


@dataclass(frozen=True, slots=True)
class Host:
    """A node, whether it is cordoned, and the ``pressures`` that it reports."""

    name: str
    uid: str = ""
    closed: bool = False
    pressures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Occupant:
    """A pod on a node.

    ``pod`` is None if it cannot be decoded, and ``problem`` is the error; ``static_uid`` is the UID
    under which a kubelet knows the static pod of a mirror pod, else "".
    """

    key: str
    node: str
    pod: EvictablePod | None
    static_uid: str = ""
    active: bool = True
    leaving: bool = False
    daemon: bool = False
    problem: str = ""


class _NodeSpec(Struct):
    unschedulable: bool = False


class _Condition(Struct):
    type: str = ""
    status: str = ""


class _NodeStatus(Struct):
    conditions: list[_Condition] | None = None


class _Node(Struct):
    metadata: ObjectMeta
    spec: _NodeSpec = field(default_factory=_NodeSpec)
    status: _NodeStatus = field(default_factory=_NodeStatus)


class _PodSpec(Struct, rename="camel"):
    node_name: str = ""


class _PodStatus(Struct):
    phase: str = ""


class _Pod(Struct):
    metadata: ObjectMeta
    spec: _PodSpec = field(default_factory=_PodSpec)
    status: _PodStatus = field(default_factory=_PodStatus)


_nodes = msgspec.json.Decoder(_Node)
_pods = msgspec.json.Decoder(_Pod)


def decode_host(raw: msgspec.Raw | bytes) -> Host:
    """Decode a v1.Node; of a malformed one, only its name."""
    try:
        node = _nodes.decode(raw)
    except msgspec.ValidationError:
        return Host(unreadable("Node", bytes(raw), "").name)
    reported = (each.type for each in node.status.conditions or () if each.status == "True")
    pressures = tuple(sorted(each for each in reported if each in _PRESSURES))
    return Host(node.metadata.name, node.metadata.uid, node.spec.unschedulable, pressures)


def occupant_decoder(release: EvictionRelease) -> Callable[[msgspec.Raw | bytes], Occupant]:
    """Return a decoder of v1.Pod by the rules of a kubelet of ``release``; it raises nothing."""

    def decode(raw: msgspec.Raw | bytes) -> Occupant:
        body = bytes(raw)
        try:
            return _occupant(_pods.decode(body), body, release)
        except (msgspec.ValidationError, ObjectError) as error:
            broken = unreadable("Pod", body, str(error))
            key = f"{broken.namespace}/{broken.name}"
            return Occupant(key, broken.node_name or "", None, problem=str(error))

    return decode


def _occupant(shape: _Pod, raw: bytes, release: EvictionRelease) -> Occupant:
    pod, meta = decode_evictable(raw, release), shape.metadata
    owner = meta.controller
    return Occupant(
        pod.key,
        shape.spec.node_name,
        pod,
        static_uid(raw),
        shape.status.phase not in _ENDED,
        meta.deleting,
        owner is not None and owner.kind == _DAEMONS,
    )
