"""The object stores of the kinds behind volumes and device claims, combined in one value.

Unlike other kinds, these may be missing on a server, or forbidden. A kind is unknown until it has
been listed, and pods that it concerns are not evaluated. The same holds for a single object that
cannot be decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar, cast

from extender.cluster.object_stores import ObjectStore
from extender.kube.decoders.typed_decoder import Unreadable
from policies.kubernetes.devices import DeviceClass, DeviceTaintRule, ResourceSlice
from policies.kubernetes.storage import (
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    ResourceClaim,
    Storage,
    StorageClass,
    StorageKind,
    UnreadableObject,
    VolumeAttachment,
)

T = TypeVar("T")


class StorageStore(ObjectStore[T]):
    """The objects of one such kind by key."""

    def __init__(
        self, kind: StorageKind, key: Callable[[T], str], on_change: Callable[[object], None]
    ) -> None:
        super().__init__(key, on_change)
        self._on_change = on_change
        self._mapping: Mapping[str, T] | None = {}
        self.kind = kind
        self.listed = False
        self.unread: frozenset[UnreadableObject] = frozenset()

    def mapping(self) -> Mapping[str, T]:
        """Return all objects by key; the same mapping as before if none has changed."""
        if self._mapping is None:
            self._mapping = dict(self.by_key)
        return self._mapping

    def replace(self, items: Sequence[T | Unreadable]) -> None:
        """Replace all objects by a list."""
        super().replace(items)
        present = {self._key_of(item) for item in items}
        self._set_unread(each for each in self.unread if each.key in present)
        if not self.listed:
            self.listed = True
            self._on_change(self)

    def unlist(self) -> None:
        """Forget all objects; the kind is unknown again."""
        super().unlist()
        self.listed = False
        self._on_change(self)

    def upsert(self, item: T | Unreadable) -> None:
        """Add or update an object."""
        super().upsert(item)
        rest = self.unread - {UnreadableObject(self.kind, self._key_of(item))}
        entry = {UnreadableObject(self.kind, item.key)} if isinstance(item, Unreadable) else set()
        self._set_unread(rest | entry)

    def remove(self, item: T | Unreadable) -> None:
        """Remove an object."""
        super().remove(item)
        self._set_unread(self.unread - {UnreadableObject(self.kind, self._key_of(item))})

    def _change(self, item: T) -> None:
        self._mapping = None
        super()._change(item)

    def _set_unread(self, unread: Iterable[UnreadableObject]) -> None:
        now = frozenset(unread)
        if now != self.unread:
            self.unread = now
            self._on_change(self)


class VolumeAttachmentStore(StorageStore[VolumeAttachment]):
    """VolumeAttachments grouped by node; a change regroups only those of its node."""

    def __init__(self, on_change: Callable[[object], None]) -> None:
        super().__init__(StorageKind.ATTACHMENTS, lambda it: it.name, on_change)
        self._on: dict[str, dict[str, VolumeAttachment]] = {}
        self._node_of: dict[str, str] = {}
        self._stale: set[str] = set()
        self._grouped: Mapping[str, tuple[VolumeAttachment, ...]] = {}

    def by_node(self) -> Mapping[str, tuple[VolumeAttachment, ...]]:
        """Return each node's attachments; the same mapping as before if none has changed."""
        if self._stale:
            grouped = {**self._grouped, **{name: self._on_node(name) for name in self._stale}}
            self._grouped = {name: items for name, items in grouped.items() if items}
            self._on = {name: self._on[name] for name in self._grouped}
            self._stale.clear()
        return self._grouped

    def _on_node(self, node: str) -> tuple[VolumeAttachment, ...]:
        return tuple(self._on.get(node, {}).values())

    def _change(self, item: VolumeAttachment) -> None:
        before = self._node_of.pop(item.name, None)
        if before is not None:
            del self._on[before][item.name]
            self._stale.add(before)
        now = self.by_key.get(item.name)
        if now is not None:
            self._node_of[now.name] = now.node
            self._on.setdefault(now.node, {})[now.name] = now
            self._stale.add(now.node)
        super()._change(item)


class StorageStores:
    """The stores of all storage kinds; ``on_change`` is called with each changed object."""

    def __init__(self, on_change: Callable[[object], None]) -> None:
        self._on_change = on_change
        self._current: Storage | None = None
        changed = self._changed
        self.claims = StorageStore[PersistentVolumeClaim](
            StorageKind.CLAIMS, lambda it: it.key, changed
        )
        self.volumes = StorageStore[PersistentVolume](
            StorageKind.VOLUMES, lambda it: it.name, changed
        )
        self.classes = StorageStore[StorageClass](StorageKind.CLASSES, lambda it: it.name, changed)
        self.csi_nodes = StorageStore[CsiNode](StorageKind.CSI_NODES, lambda it: it.name, changed)
        self.drivers = StorageStore[CsiDriver](StorageKind.DRIVERS, lambda it: it.name, changed)
        self.capacities = StorageStore[CsiStorageCapacity](
            StorageKind.CAPACITIES, lambda it: it.key, changed
        )
        self.attachments = VolumeAttachmentStore(changed)
        self.devices = StorageStore[ResourceClaim](StorageKind.DEVICES, lambda it: it.key, changed)
        self.slices = StorageStore[ResourceSlice](StorageKind.SLICES, lambda it: it.name, changed)
        self.device_classes = StorageStore[DeviceClass](
            StorageKind.DEVICE_CLASSES, lambda it: it.name, changed
        )
        self.taint_rules = StorageStore[DeviceTaintRule](
            StorageKind.TAINT_RULES, lambda it: it.name, changed
        )

    def object_counts(self) -> Mapping[str, int]:
        """Return the number of known objects by kind."""
        return {each.kind.value: len(each.by_key) for each in self._all()}

    def storage(self) -> Storage:
        """Return the current state; the same object as before if nothing has changed."""
        if self._current is None:
            self._current = Storage(
                claims=self.claims.mapping(),
                volumes=self.volumes.mapping(),
                classes=self.classes.mapping(),
                csi_nodes=self.csi_nodes.mapping(),
                drivers=self.drivers.mapping(),
                capacities=self.capacities.mapping(),
                attachments=self.attachments.by_node(),
                devices=self.devices.mapping(),
                slices=self.slices.mapping(),
                device_classes=self.device_classes.mapping(),
                taint_rules=self.taint_rules.mapping(),
                unknown=frozenset(each.kind for each in self._all() if not each.listed),
                unreadable=frozenset().union(*(each.unread for each in self._all())),
            )
        return self._current

    def _changed(self, what: object) -> None:
        self._current = None
        self._on_change(what)

    def _all(self) -> tuple[StorageStore[object], ...]:
        # The stores differ in their type of object; only kinds and keys are read here.
        stores = (
            self.claims,
            self.volumes,
            self.classes,
            self.csi_nodes,
            self.drivers,
            self.capacities,
            self.attachments,
            self.devices,
            self.slices,
            self.device_classes,
            self.taint_rules,
        )
        return cast("tuple[StorageStore[object], ...]", stores)
