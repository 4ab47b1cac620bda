"""Sinks: where informers put what the server shows, by key and, for pods, by node as well.

A sink tells its owner which objects changed, and says nothing about objects that differ in nothing
that is read. A broken object is set aside with one warning; a broken pod that occupies a node is
kept where it blocks it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Generic, TypeVar

import structlog

from extender.kube.decoding import Unreadable
from extender.overlay import Overlay
from policies.model import Node, NodeState, Pod, occupied

T = TypeVar("T")


class Table(Generic[T]):
    """Objects of one kind by key: the sink of their informer."""

    def __init__(self, key: Callable[[T], str], touch: Callable[[T], None]) -> None:
        self._key = key
        self._touch = touch
        self._warn = Warnings()
        self._view: tuple[T, ...] | None = ()
        self.by_key: dict[str, T] = {}

    def view(self) -> tuple[T, ...]:
        """Return all objects; the same tuple as before if none has changed."""
        if self._view is None:
            self._view = tuple(self.by_key.values())
        return self._view

    def replace(self, items: Sequence[T | Unreadable]) -> None:
        """Take a whole list in place of what was there."""
        listed = {self._key_of(item) for item in items}
        for key in [key for key in self.by_key if key not in listed]:
            self._forget(key)
        self._warn.forget_all_but(listed)
        for item in items:
            self.upsert(item)

    def upsert(self, item: T | Unreadable) -> None:
        """Take a new or changed object; a broken one takes its predecessor's place as a gap."""
        if isinstance(item, Unreadable):
            self._warn(item)
            self._forget(item.key)
            return
        key = self._key(item)
        if self.by_key.get(key) != item:
            self.by_key[key] = item
            self._change(item)

    def remove(self, item: T | Unreadable) -> None:
        """Drop an object."""
        key = self._key_of(item)
        self._warn.forget(key)
        self._forget(key)

    def _key_of(self, item: T | Unreadable) -> str:
        return item.key if isinstance(item, Unreadable) else self._key(item)

    def _forget(self, key: str) -> None:
        item = self.by_key.pop(key, None)
        if item is not None:
            self._change(item)

    def _change(self, item: T) -> None:
        self._view = None
        self._touch(item)


class PodTable:
    """Pods, by key and by the node they are on, are promised to, or block unread."""

    def __init__(self, touch: Callable[[Iterable[str]], None], overlay: Overlay) -> None:
        self._touch = touch
        self._overlay = overlay
        self._warn = Warnings()
        self._on: dict[str, dict[str, Pod]] = {}
        self._promised_to: dict[str, dict[str, Pod]] = {}
        self._unread_on: dict[str, dict[str, Unreadable]] = {}
        self._repelling: dict[str, Pod] = {}
        self._repelling_view: tuple[Pod, ...] | None = ()
        self.by_key: dict[str, Pod | Unreadable] = {}

    def repelling(self) -> tuple[Pod, ...]:
        """Return the bound pods with required anti-affinity; the same tuple if none has changed."""
        if self._repelling_view is None:
            self._repelling_view = tuple(self._repelling.values())
        return self._repelling_view

    def occupying(self, node: Node) -> NodeState:
        """Put on ``node`` what is there."""
        return occupied(
            node,
            self._on.get(node.name, {}).values(),
            self._promised_to.get(node.name, {}).values(),
            sorted(self._unread_on.get(node.name, {})),
        )

    def replace(self, items: Sequence[Pod | Unreadable]) -> None:
        """Take a whole list in place of what was there."""
        listed = {item.key for item in items}
        for key in [key for key in self.by_key if key not in listed]:
            self._drop(key)
        for item in items:
            self.upsert(item)

    def upsert(self, item: Pod | Unreadable) -> None:
        """Take a new or changed pod; one that differs in nothing that is read changes nothing."""
        if self.by_key.get(item.key) != item:
            self._replace(item)
        if isinstance(item, Pod):
            self._touch(self._overlay.saw(item))

    def remove(self, item: Pod | Unreadable) -> None:
        """Drop a pod."""
        self._drop(item.key)

    def _replace(self, item: Pod | Unreadable) -> None:
        old = self._unfile(item.key)
        if isinstance(old, Pod) and old.uid != item.uid:
            self._touch(self._overlay.lost(old))  # another pod has taken the name
        self.by_key[item.key] = item
        if isinstance(item, Unreadable):
            self._warn(item)
            self._file_unread(item)
        else:
            self._file(item)

    def _drop(self, key: str) -> None:
        self._warn.forget(key)
        gone = self._unfile(key)
        self.by_key.pop(key, None)
        if isinstance(gone, Pod):
            self._touch(self._overlay.lost(gone))

    def _file(self, pod: Pod) -> None:
        if pod.finished:
            return
        if pod.node_name is not None:
            self._put(self._on, pod.node_name, pod.key, pod)
            if pod.anti_affinity:
                self._repelling[pod.key] = pod
                self._repelling_view = None
        elif pod.nominated_node is not None:
            self._put(self._promised_to, pod.nominated_node, pod.key, pod)

    def _file_unread(self, pod: Unreadable) -> None:
        if pod.node_name is not None:
            self._put(self._unread_on, pod.node_name, pod.key, pod)

    def _unfile(self, key: str) -> Pod | Unreadable | None:
        """Take a pod off its node; its place by key stays, or each change would use up another."""
        old = self.by_key.get(key)
        if old is None:
            return None
        if self._repelling.pop(key, None) is not None:
            self._repelling_view = None
        if isinstance(old, Unreadable):
            self._take(self._unread_on, old.node_name, key)
        else:
            self._take(self._on, old.node_name, key)
            self._take(self._promised_to, old.nominated_node, key)
        return old

    def _put(self, index: dict[str, dict[str, P]], node: str, key: str, pod: P) -> None:
        index.setdefault(node, {})[key] = pod
        self._touch((node,))

    def _take(self, index: dict[str, dict[str, P]], node: str | None, key: str) -> None:
        pods = index.get(node or "")
        if pods is not None and pods.pop(key, None) is not None:
            self._touch((node or "",))
            if not pods:
                del index[node or ""]


P = TypeVar("P", Pod, Unreadable)


class Warnings:
    """Says once that an object cannot be read, and again only when the trouble is another one."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}
        self._log = structlog.get_logger()

    def __call__(self, item: Unreadable) -> None:
        """Log ``item``, unless that was done."""
        if self._said.get(item.key) != item.problem:
            self._said[item.key] = item.problem
            self._log.warning("object_skipped", kind=item.kind, key=item.key, problem=item.problem)

    def forget(self, key: str) -> None:
        """Take note that the object is gone."""
        self._said.pop(key, None)

    def forget_all_but(self, keys: Collection[str]) -> None:
        """Take note of all that are left."""
        self._said = {key: problem for key, problem in self._said.items() if key in keys}
