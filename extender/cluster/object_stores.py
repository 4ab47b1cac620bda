"""Object stores: the objects of reflectors by key and, for pods, also by node.

A store corresponds to client-go's Store. It calls its owner for each object that changed, but not
if the decoded fields are equal. An object that cannot be decoded is skipped with one warning; if it
is a pod that occupies a node, it is kept and marks the node.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, KeysView, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

import structlog

from extender.cluster.assumed_preemptions import AssumedPreemptions
from extender.cluster.preemption_history import PreemptionHistory
from extender.kube.decoders.typed_decoder import Unreadable
from policies.kubernetes.default_selector import PodSelectingObject
from policies.kubernetes.snapshot import Node, NodeState, Pod, build_node_state

T = TypeVar("T")
P = TypeVar("P", Pod, Unreadable)


def _ignore_change(_: object) -> None:
    """Ignore a change: a store that is filled from files has no observers."""


class ObjectStore(Generic[T]):
    """The objects of one kind by key, filled by their reflector."""

    def __init__(
        self, key: Callable[[T], str], on_change: Callable[[T], None] = _ignore_change
    ) -> None:
        self._key = key
        self._notify = on_change
        self._warn = DecodeWarnings()
        self._view: tuple[T, ...] | None = ()
        self.by_key: dict[str, T] = {}

    def view(self) -> tuple[T, ...]:
        """Return all objects; the same tuple as before if none has changed."""
        if self._view is None:
            self._view = tuple(self.by_key.values())
        return self._view

    def replace(self, items: Sequence[T | Unreadable]) -> None:
        """Replace all objects by a list."""
        listed = {self._key_of(item) for item in items}
        for key in [key for key in self.by_key if key not in listed]:
            self._forget(key)
        self._warn.forget_all_but(listed)
        for item in items:
            self.upsert(item)

    def upsert(self, item: T | Unreadable) -> None:
        """Add or update an object; one that cannot be decoded removes its predecessor."""
        if isinstance(item, Unreadable):
            self._warn(item)
            self._forget(item.key)
            return
        key = self._key(item)
        if self.by_key.get(key) != item:
            self.by_key[key] = item
            self._change(item)

    def remove(self, item: T | Unreadable) -> None:
        """Remove an object."""
        key = self._key_of(item)
        self._warn.forget(key)
        self._forget(key)

    def unlist(self) -> None:
        """Forget all objects: they are no longer known."""
        self.replace(())

    def _key_of(self, item: T | Unreadable) -> str:
        return item.key if isinstance(item, Unreadable) else self._key(item)

    def _forget(self, key: str) -> None:
        item = self.by_key.pop(key, None)
        if item is not None:
            self._change(item)

    def _change(self, item: T) -> None:
        self._view = None
        self._notify(item)


class PodObserver(Protocol):
    """Observes each change to a pod."""

    def observe(self, old: Pod | None, pod: Pod) -> None:
        """Observe a pod; ``old`` is the same pod as it was before, or None if it is new.

        It is ``pod`` itself if the pod could not be decoded before.
        """
        ...

    def observe_deletion(self, uid: str) -> None:
        """Observe that a pod was deleted, whether it could be decoded or not."""
        ...


class PodStore:
    """Pods by key, and by the node that they are on, are nominated to, or occupy undecoded.

    ``pending`` are those without a node, by UID. ``members`` are the bound pods of PodGroups,
    ``unplaced_members`` the keys of pods of PodGroups that may be on a node, decoded or not.
    ``observer`` observes the changes.
    """

    def __init__(
        self,
        mark_nodes: Callable[[Iterable[str]], None],
        assumed: AssumedPreemptions,
        preemptions: PreemptionHistory,
    ) -> None:
        self._mark_nodes = mark_nodes
        self._assumed = assumed
        self._preemptions = preemptions
        self._warn = DecodeWarnings()
        self._on: dict[str, dict[str, Pod]] = {}
        self._nominated_to: dict[str, dict[str, Pod]] = {}
        self._unread_on: dict[str, dict[str, Unreadable]] = {}
        self._repelling: dict[str, Pod] = {}
        self._repelling_view: tuple[Pod, ...] | None = ()
        self.by_key: dict[str, Pod | Unreadable] = {}
        self.pending: dict[str, Pod] = {}
        self.members = GroupIndex[Pod]()
        self.unplaced_members = GroupIndex[str]()
        self.observer: PodObserver | None = None

    def repelling(self) -> tuple[Pod, ...]:
        """Return the bound pods with required anti-affinity; the same tuple if none has changed."""
        if self._repelling_view is None:
            self._repelling_view = tuple(self._repelling.values())
        return self._repelling_view

    @property
    def occupied_nodes(self) -> KeysView[str]:
        """The names of the nodes with bound pods, whether the nodes are known or not."""
        return self._on.keys()

    def node_state(self, node: Node) -> NodeState:
        """Return the state of ``node``: its pods, nominated pods, and undecoded pods."""
        return build_node_state(
            node,
            self._on.get(node.name, {}).values(),
            self._nominated_to.get(node.name, {}).values(),
            sorted(self._unread_on.get(node.name, {})),
        )

    def replace(self, items: Sequence[Pod | Unreadable]) -> None:
        """Replace all objects by a list."""
        listed = {item.key for item in items}
        for key in [key for key in self.by_key if key not in listed]:
            self._drop(key)
        # New pods come last: the observer has then seen that those which they replace have left.
        for item in sorted(items, key=lambda item: item.key not in self.by_key):
            self.upsert(item)
        for item in items:  # the preemptor of a victim may stand behind it in the list
            if isinstance(item, Pod):
                self._observe_victim(item)

    def upsert(self, item: Pod | Unreadable) -> None:
        """Add or update a pod; one with equal decoded fields changes nothing."""
        key = item.key
        if self.by_key.get(key) != item:
            self._replace(key, item)
        if isinstance(item, Pod):
            self._mark_nodes(self._assumed.observe_pod(item))
            self._observe_victim(item)

    def _observe_victim(self, pod: Pod) -> None:
        if pod.preempted and pod.node_name is not None:
            nominated = self._nominated_to.get(pod.node_name, {})
            self._preemptions.observe(pod, nominated.values())

    def remove(self, item: Pod | Unreadable) -> None:
        """Remove a pod."""
        self._drop(item.key)

    def _replace(self, key: str, item: Pod | Unreadable) -> None:
        old = self._remove_from_node(key)
        if old is not None and old.uid != item.uid:
            self._observe_deletion(old)  # another pod has taken the name
            old = None
        self.by_key[key] = item
        if isinstance(item, Pod) and self.observer is not None:
            self.observer.observe(item if isinstance(old, Unreadable) else old, item)
        if isinstance(item, Unreadable):
            self._warn(item)
            self._add_undecoded(item)
        else:
            self._add_to_node(key, item)

    def _drop(self, key: str) -> None:
        self._warn.forget(key)
        removed = self._remove_from_node(key)
        self.by_key.pop(key, None)
        if removed is not None:
            self._observe_deletion(removed)

    def _observe_deletion(self, pod: Pod | Unreadable) -> None:
        if isinstance(pod, Pod):
            self._mark_nodes(self._assumed.observe_deletion(pod))
        if self.observer is not None:
            self.observer.observe_deletion(pod.uid)

    def _add_to_node(self, key: str, pod: Pod) -> None:
        if pod.finished:
            return
        if pod.node_name is not None:
            self._put(self._on, pod.node_name, key, pod)
            if pod.anti_affinity:
                self._repelling[key] = pod
                self._repelling_view = None
            self.members.put(pod, pod)
            return
        self.pending[pod.uid] = pod
        if pod.may_be_assumed or pod.nominated_node is None:
            self.unplaced_members.put(pod, key)
        if pod.nominated_node is not None:
            self._put(self._nominated_to, pod.nominated_node, key, pod)

    def _add_undecoded(self, pod: Unreadable) -> None:
        self.unplaced_members.put(pod, pod.key)
        if pod.node_name is not None:
            self._put(self._unread_on, pod.node_name, pod.key, pod)

    def _remove_from_node(self, key: str) -> Pod | Unreadable | None:
        """Remove a pod from its node.

        Its entry by key stays: to delete it and add it again at each change would grow the dict.
        """
        old = self.by_key.get(key)
        if old is None:
            return None
        if self._repelling.pop(key, None) is not None:
            self._repelling_view = None
        if isinstance(old, Unreadable):
            self._take(self._unread_on, old.node_name, key)
        else:
            self.pending.pop(old.uid, None)
            self._take(self._on, old.node_name, key)
            self._take(self._nominated_to, old.nominated_node, key)
            self.members.drop(old)
        self.unplaced_members.drop(old)
        return old

    def _put(self, index: dict[str, dict[str, P]], node: str, key: str, pod: P) -> None:
        index.setdefault(node, {})[key] = pod
        self._mark_nodes((node,))

    def _take(self, index: dict[str, dict[str, P]], node: str | None, key: str) -> None:
        pods = index.get(node or "")
        if pods is not None and pods.pop(key, None) is not None:
            self._mark_nodes((node or "",))
            if not pods:
                del index[node or ""]


class GroupIndex(Generic[T]):
    """A value for each of some pods of PodGroups, by the key of the group and of the pod."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[str, T]] = {}
        self._stale: set[str] = set()
        self._view: Mapping[str, tuple[T, ...]] = {}

    def put(self, pod: Pod | Unreadable, value: T) -> None:
        """Add or update a pod, if it is of a group."""
        if pod.group:
            group = f"{pod.namespace}/{pod.group}"
            self._by_group.setdefault(group, {})[pod.key] = value
            self._stale.add(group)

    def drop(self, pod: Pod | Unreadable) -> None:
        """Remove a pod."""
        group = f"{pod.namespace}/{pod.group}"
        values = self._by_group.get(group) if pod.group else None
        if values is not None and values.pop(pod.key, None) is not None:
            self._stale.add(group)
            if not values:
                del self._by_group[group]

    def view(self) -> Mapping[str, tuple[T, ...]]:
        """Return the values by group; the same mapping as before if none has changed."""
        if self._stale:
            stale = {group: tuple(self._by_group.get(group, {}).values()) for group in self._stale}
            view = {**self._view, **stale}
            self._view = {group: values for group, values in view.items() if values}
            self._stale.clear()
        return self._view


class DecodeWarnings:
    """Logs once that an object cannot be decoded, and again only if its error changes."""

    def __init__(self) -> None:
        self._logged: dict[str, str] = {}
        self._log = structlog.get_logger()

    def __call__(self, item: Unreadable) -> None:
        """Log the error of ``item``, unless it is logged already."""
        if self._logged.get(item.key) != item.problem:
            self._logged[item.key] = item.problem
            self._log.warning("object_skipped", kind=item.kind, key=item.key, problem=item.problem)

    def forget(self, key: str) -> None:
        """Forget an object that was deleted."""
        self._logged.pop(key, None)

    def forget_all_but(self, keys: Collection[str]) -> None:
        """Forget all objects but those with the given keys."""
        self._logged = {key: problem for key, problem in self._logged.items() if key in keys}


class WorkloadIndex:
    """Services and controllers by namespace; unchanged namespaces are shared with the last view."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[tuple[str, str], PodSelectingObject]] = {}
        self._stale: set[str] = set()
        self._view: Mapping[str, tuple[PodSelectingObject, ...]] = {}

    def put(self, workload: PodSelectingObject) -> None:
        """Add or update a workload."""
        workloads = self._by_namespace.setdefault(workload.namespace, {})
        workloads[workload.kind, workload.name] = workload
        self._stale.add(workload.namespace)

    def drop(self, workload: PodSelectingObject) -> None:
        """Remove a workload."""
        workloads = self._by_namespace.get(workload.namespace, {})
        workloads.pop((workload.kind, workload.name), None)
        self._stale.add(workload.namespace)

    def view(self) -> Mapping[str, tuple[PodSelectingObject, ...]]:
        """Return the workloads by namespace; the same mapping as before if none has changed."""
        if self._stale:
            view = dict(self._view)
            for namespace in self._stale:
                view[namespace] = tuple(self._by_namespace.get(namespace, {}).values())
            self._view = {name: workloads for name, workloads in view.items() if workloads}
            self._stale.clear()
        return self._view
