"""The scheduler cache: pods and nodes from the watches, with the scheduler's own decisions.

Beside the model that decisions read, each object is kept as JSON, which is sent to extenders. Three
decisions take effect before the watch shows them:

- a pod is *assumed* on a node from the decision to bind it until it is observed there, or binding
  fails;
- a pod is *nominated* to a node from the decision to preempt for it;
- a nomination is cleared likewise.

Source: pkg/scheduler/backend/cache and backend/queue/nominator.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import msgspec
from msgspec import structs

from extender.cluster.scheduler_cache import SchedulerCache
from extender.kube.decoders.cluster_objects import decode_node
from extender.kube.decoders.pods import decode_pod
from extender.kube.decoders.typed_decoder import Unreadable, identify_unreadable, tolerant_decoder
from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import Node, Pod

_NOTHING = msgspec.Raw(b"null")


class _SchedulingGate(msgspec.Struct):
    name: str = ""


class _SchedulingSpec(msgspec.Struct, rename="camel"):
    scheduling_gates: list[_SchedulingGate] | None = None


class _PodAnnotations(msgspec.Struct):
    annotations: msgspec.Raw = _NOTHING


class _RawPod(msgspec.Struct):
    metadata: msgspec.Raw = _NOTHING
    spec: msgspec.Raw = _NOTHING


@dataclass(frozen=True, slots=True)
class CachedPod:
    """A pod: the model that decisions read, and its JSON."""

    model: Pod | Unreadable
    raw: bytes
    gates: tuple[str, ...] = ()
    annotations: bytes = b""

    @property
    def namespace(self) -> str:
        """The pod's namespace."""
        return self.model.namespace

    @property
    def name(self) -> str:
        """The pod's name."""
        return self.model.name

    @property
    def scheduler(self) -> str:
        """The pod's schedulerName; "" if the pod cannot be decoded."""
        return "" if isinstance(self.model, Unreadable) else self.model.scheduler_name

    @property
    def uid(self) -> str:
        """The pod's UID."""
        return self.model.uid

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return self.model.key

    @property
    def node(self) -> str:
        """The node that the pod occupies; "" for a pod that is pending or has finished."""
        finished = isinstance(self.model, Pod) and self.model.finished
        return "" if finished else self.model.node_name or ""

    @property
    def scheduling_fields(self) -> tuple[Pod | None, bytes, tuple[str, ...]]:
        """The part of a pending pod on which filters and extenders depend, and its gates."""
        pending = self.pending
        return (
            pending and structs.replace(pending, nominated_node=None),
            self.annotations,
            self.gates,
        )

    @property
    def pending(self) -> Pod | None:
        """The pod if it can be scheduled, or None."""
        model = self.model
        if isinstance(model, Unreadable) or model.finished or model.node_name is not None:
            return None
        return model


@dataclass(frozen=True, slots=True)
class CachedNode:
    """A node: the model that decisions read, and its JSON."""

    model: Node | Unreadable
    raw: bytes

    @property
    def name(self) -> str:
        """The node's name."""
        return self.model.name


PodChangeHandler = Callable[[CachedPod | None, CachedPod | None], None]
NodeChangeHandler = Callable[[CachedNode | None, CachedNode | None], None]
"""Called with an object as it was and as it is now; None means absent."""


def pod_reader(release: Release) -> Callable[[bytes], CachedPod]:
    """Return a decoder of pods for a release."""
    read_model = tolerant_decoder("Pod", lambda raw: decode_pod(raw, release))
    written = msgspec.json.Decoder(_RawPod)
    specs, metas = msgspec.json.Decoder(_SchedulingSpec), msgspec.json.Decoder(_PodAnnotations)

    def read(view: bytes) -> CachedPod:
        raw = bytes(view)
        model = read_model(raw)
        if isinstance(model, Unreadable):
            return CachedPod(model, raw)
        try:
            whole = written.decode(raw)
            spec, meta = specs.decode(whole.spec), metas.decode(whole.metadata)
        except msgspec.ValidationError as error:
            return CachedPod(identify_unreadable("Pod", raw, str(error)), raw)
        gates = tuple(gate.name for gate in spec.scheduling_gates or ())
        return CachedPod(model, raw, gates, bytes(meta.annotations))

    return read


def read_node(view: bytes) -> CachedNode:
    """Decode a node."""
    raw = bytes(view)
    return CachedNode(_read_node_model(raw), raw)


_read_node_model = tolerant_decoder("Node", decode_node)


class NodeCache:
    """Caches nodes: the store of their reflector."""

    def __init__(self, cluster: SchedulerCache, on_change: NodeChangeHandler) -> None:
        self._cluster = cluster
        self._heed = on_change
        self.cached: dict[str, CachedNode] = {}

    def replace(self, items: Sequence[CachedNode]) -> None:
        """Replace all nodes by a new list."""
        listed = {item.name for item in items}
        for name in [name for name in self.cached if name not in listed]:
            self.remove(self.cached[name])
        for item in items:
            self.upsert(item)

    def upsert(self, item: CachedNode) -> None:
        """Add or update a node."""
        old = self.cached.get(item.name)
        self.cached[item.name] = item
        self._cluster.nodes.upsert(item.model)
        if old is None or old.model != item.model:
            self._heed(old, item)

    def remove(self, item: CachedNode) -> None:
        """Remove a node."""
        self.cached.pop(item.name, None)
        self._cluster.nodes.remove(item.model)
        self._heed(item, None)


class PodCache:
    """Caches pods: the store of their reflector, with assumed and nominated pods."""

    def __init__(self, cluster: SchedulerCache, on_change: PodChangeHandler) -> None:
        self._cluster = cluster
        self._heed = on_change
        self._assumed: dict[str, str] = {}
        self._nominated: dict[str, str | None] = {}
        self.cached: dict[str, CachedPod] = {}
        self.departed: dict[str, bytes] = {}
        """Pods that have gone since this was cleared, by UID: a snapshot may still hold them."""

    def replace(self, items: Sequence[CachedPod]) -> None:
        """Replace all pods by a new list."""
        listed = {item.key for item in items}
        for key in [key for key in self.cached if key not in listed]:
            self.remove(self.cached[key])
        for item in items:
            self.upsert(item)

    def upsert(self, item: CachedPod) -> None:
        """Add or update a pod; one with another UID replaces the old one."""
        old = self.cached.get(item.key)
        if old is not None and old.uid != item.uid:
            self.remove(old)
            old = None
        self.cached[item.key] = item
        self._drop_observed(old, item)
        self._cluster.pods.upsert(self._effective_model(item))
        self._heed(old, item)

    def remove(self, item: CachedPod) -> None:
        """Remove a pod."""
        if (present := self.cached.get(item.key)) is None or present.uid != item.uid:
            return
        del self.cached[item.key]
        self.departed[item.uid] = present.raw
        was_assumed = self._assumed.pop(item.uid, None)
        self._nominated.pop(item.uid, None)
        self._cluster.pods.remove(item.model)
        if was_assumed is not None and isinstance(item.model, Pod):
            item = replace(item, model=structs.replace(item.model, node_name=was_assumed))
        self._heed(item, None)

    def document(self, pod: Pod) -> bytes:
        """Return the latest JSON of a pod in the current snapshot."""
        cached_pod = self.cached.get(pod.key)
        return (
            cached_pod.raw
            if cached_pod is not None and cached_pod.uid == pod.uid
            else self.departed[pod.uid]
        )

    def pending(self, key: str) -> tuple[CachedPod, Pod] | None:
        """Return a pod that can be scheduled, with its current model; or None."""
        cached_pod = self.cached.get(key)
        if cached_pod is None or cached_pod.pending is None or cached_pod.uid in self._assumed:
            return None
        model = self._effective_model(cached_pod)
        return None if isinstance(model, Unreadable) else (cached_pod, model)

    def pending_members(self, group: str) -> list[tuple[CachedPod, Pod]]:
        """Return the members of a pod group that can be scheduled, in the order of arrival."""
        models = (each.model for each in self.cached.values())
        keys = [
            model.key
            for model in models
            if isinstance(model, Pod)
            and model.group
            and f"{model.namespace}/{model.group}" == group
        ]
        return [found for key in keys if (found := self.pending(key)) is not None]

    def assume(self, pod: CachedPod, node: str) -> None:
        """Assume that a pod is bound to a node."""
        self._assumed[pod.uid] = node
        self._nominated.pop(pod.uid, None)
        self._publish(pod)

    def forget(self, pod: CachedPod) -> None:
        """Drop the assumption that a pod is bound, unless the watch has shown it."""
        if self._assumed.pop(pod.uid, None) is not None:
            self._publish(pod)

    def nominate(self, pod: CachedPod, node: str | None) -> None:
        """Nominate a pod to a node, or to none."""
        self._nominated[pod.uid] = node
        self._publish(pod)

    def _publish(self, pod: CachedPod) -> None:
        cached_pod = self.cached.get(pod.key)
        if cached_pod is not None and cached_pod.uid == pod.uid:
            self._cluster.pods.upsert(self._effective_model(cached_pod))

    def _effective_model(self, item: CachedPod) -> Pod | Unreadable:
        model = item.pending
        if model is None:
            return item.model
        if item.uid in self._assumed:
            return structs.replace(model, node_name=self._assumed[item.uid], nominated_node=None)
        nominated = self._nominated.get(item.uid, model.nominated_node)
        if nominated == model.nominated_node and not model.may_be_assumed:
            return model
        return structs.replace(model, nominated_node=nominated, may_be_assumed=False)

    def _drop_observed(self, old: CachedPod | None, new: CachedPod) -> None:
        """Drop decisions that the watch has shown or superseded."""
        if new.pending is None:
            self._assumed.pop(new.uid, None)
            self._nominated.pop(new.uid, None)
            return
        before = old.pending.nominated_node if old is not None and old.pending else None
        if new.pending.nominated_node != before:
            self._nominated.pop(new.uid, None)
