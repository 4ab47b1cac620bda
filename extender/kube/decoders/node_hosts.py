"""Nodes and pods as `advise eviction` reads them, in addition to what eviction itself reads.

A pod that cannot be decoded is kept with the error. A pod of a DaemonSet is marked, as the
DaemonSet would recreate it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
from msgspec import Struct, field

from extender.kube.decoders.kubelet.pods import decode_evictable_pod, static_pod_uid
from extender.kube.decoders.object_meta import ObjectMeta
from extender.kube.decoders.typed_decoder import ObjectError, identify_unreadable
from policies.eviction.kubelet_releases import EvictionRelease
from policies.eviction.pods import EvictablePod
from policies.eviction.signals import Pressure

_TERMINAL_PHASES = ("Succeeded", "Failed")
_PRESSURES = frozenset(Pressure)
_DAEMON_SET = "DaemonSet"  # of any group: others define DaemonSets as well


@dataclass(frozen=True, slots=True)
class AdvisedNode:
    """A node, whether it is cordoned, and the ``pressures`` that it reports."""

    name: str
    uid: str = ""
    unschedulable: bool = False
    pressures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AdvisedPod:
    """A pod on a node.

    ``pod`` is None if it cannot be decoded, and ``problem`` is the error; ``static_uid`` is the UID
    under which a kubelet knows the static pod of a mirror pod, else "".
    """

    key: str
    node: str
    pod: EvictablePod | None
    static_uid: str = ""
    active: bool = True
    terminating: bool = False
    daemon: bool = False
    problem: str = ""


class _NodeSpecFields(Struct):
    unschedulable: bool = False


class _NodeCondition(Struct):
    type: str = ""
    status: str = ""


class _NodeStatusFields(Struct):
    conditions: list[_NodeCondition] | None = None


class _NodeFields(Struct):
    metadata: ObjectMeta
    spec: _NodeSpecFields = field(default_factory=_NodeSpecFields)
    status: _NodeStatusFields = field(default_factory=_NodeStatusFields)


class _PodSpecFields(Struct, rename="camel"):
    node_name: str = ""


class _PodStatusFields(Struct):
    phase: str = ""


class _PodFields(Struct):
    metadata: ObjectMeta
    spec: _PodSpecFields = field(default_factory=_PodSpecFields)
    status: _PodStatusFields = field(default_factory=_PodStatusFields)


_nodes = msgspec.json.Decoder(_NodeFields)
_pods = msgspec.json.Decoder(_PodFields)


def decode_advised_node(raw: msgspec.Raw | bytes) -> AdvisedNode:
    """Decode a v1.Node; of a malformed one, only its name."""
    try:
        node = _nodes.decode(raw)
    except msgspec.ValidationError:
        return AdvisedNode(identify_unreadable("Node", bytes(raw), "").name)
    reported = (each.type for each in node.status.conditions or () if each.status == "True")
    pressures = tuple(sorted(each for each in reported if each in _PRESSURES))
    return AdvisedNode(node.metadata.name, node.metadata.uid, node.spec.unschedulable, pressures)


def advised_pod_decoder(release: EvictionRelease) -> Callable[[msgspec.Raw | bytes], AdvisedPod]:
    """Return a decoder of v1.Pod by the rules of a kubelet of ``release``; it raises nothing."""

    def decode(raw: msgspec.Raw | bytes) -> AdvisedPod:
        body = bytes(raw)
        try:
            return _advised_pod(_pods.decode(body), body, release)
        except (msgspec.ValidationError, ObjectError) as error:
            broken = identify_unreadable("Pod", body, str(error))
            key = f"{broken.namespace}/{broken.name}"
            return AdvisedPod(key, broken.node_name or "", None, problem=str(error))

    return decode


def _advised_pod(shape: _PodFields, raw: bytes, release: EvictionRelease) -> AdvisedPod:
    pod, meta = decode_evictable_pod(raw, release), shape.metadata
    owner = meta.controller
    return AdvisedPod(
        pod.key,
        shape.spec.node_name,
        pod,
        static_pod_uid(raw),
        shape.status.phase not in _TERMINAL_PHASES,
        meta.deleting,
        owner is not None and owner.kind == _DAEMON_SET,
    )
