"""The garbage collector's graph of owners and dependents, built from watch events.

A node represents an object. An owner that has been referenced but not observed is a *virtual* node,
with the identity in the reference. It is checked against the server; it becomes real when its
object is observed, and is removed when the server does not have it. The graph makes no requests: it
adds the objects to check to its :class:`Worklist`.

    observed                                     added to the worklist
    an object with an unknown owner              the owner (does it exist?)
    an owner with another identity than named    the object (are its references valid?)
    an object is gone                            its dependents; its owners that wait for it
    deletion begins, finalizer foreground        its dependents, and itself
    deletion begins, finalizer orphan            the object, to be orphaned
    a blocking reference was removed             the owner

A reference identifies its owner by UID *and* by kind, name and, unless the owner is cluster-scoped,
its own namespace. Dependents that reference one UID with different identities are kept apart: only
those whose identity the server does not have are affected by its absence.

Upstream caches absent owners for a while, to save requests. Here the server is always asked: a
world that is restored has UIDs again that were gone.

Source: kubernetes/pkg/controller/garbagecollector/graph_builder.go, graph.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from extender.kube.decoders.object_meta import ObjectMeta, OwnerReference

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"


@dataclass(frozen=True, slots=True, order=True)
class ObjectIdentity:
    """An object's coordinates, in sort order; "" means no namespace."""

    kind: str
    api_version: str
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        place = f"namespace: {self.namespace}, name: {self.name}, uid: {self.uid}"
        return f"[{self.api_version}/{self.kind}, {place}]"


@dataclass(eq=False, slots=True)
class GraphNode:
    """An object, observed or only referenced (``virtual``)."""

    identity: ObjectIdentity
    owners: Sequence[OwnerReference] = ()
    dependents: dict[str, GraphNode] = field(default_factory=dict)
    virtual: bool = False
    deleting: bool = False
    deleting_dependents: bool = False

    @property
    def blocking_dependents(self) -> Collection[GraphNode]:
        """The dependents that block the object's foreground deletion."""
        return [
            dependent
            for dependent in self.dependents.values()
            if any(o.uid == self.identity.uid and o.block_owner_deletion for o in dependent.owners)
        ]


class Worklist(Protocol):
    """Receives the objects to check, by UID."""

    def attempt_to_delete(self, uid: str) -> None:
        """Check whether the object is garbage, and whether it exists."""
        ...

    def attempt_to_delete_later(self, uid: str) -> None:
        """Check the object as above, with backoff."""
        ...

    def attempt_to_orphan(self, uid: str) -> None:
        """Remove the object from its dependents' references, and then its finalizer."""
        ...

    def report_invalid_namespace(self, dependent: ObjectIdentity, owner: ObjectIdentity) -> None:
        """Record an Event about a reference to an owner in another namespace."""
        ...


class OwnerGraph:
    """Nodes by UID; the module docstring has the rules."""

    def __init__(self, worklist: Worklist) -> None:
        self._worklist = worklist
        self._nodes: dict[str, GraphNode] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def get(self, uid: str) -> GraphNode | None:
        """Return the node of a UID, or None."""
        return self._nodes.get(uid)

    def observe(
        self, identity: ObjectIdentity, meta: ObjectMeta, before: ObjectMeta | None = None
    ) -> None:
        """Process an object that is new, or was ``before`` until now."""
        node = self._nodes.get(identity.uid)
        if node is None:
            node = self._nodes[identity.uid] = GraphNode(identity)
        elif node.virtual:
            self._mark_observed(node, identity)
        node.identity = identity
        self._set_owners(node, tuple(meta.owner_references or ()))
        node.deleting = node.deleting or meta.deleting
        self._record_deletion(node, meta, before)

    def observe_deletion(self, identity: ObjectIdentity) -> None:
        """Process the deletion of a watched object."""
        node = self._nodes.get(identity.uid)
        if node is not None:
            self._remove(node)

    def observe_absence(self, identity: ObjectIdentity) -> None:
        """Process that the server has no object with this identity."""
        node = self._nodes.get(identity.uid)
        if node is None:
            return
        matching, others = partition_dependents(node.dependents.values(), identity)
        if node.virtual and not others:
            self._remove(node)
        elif node.virtual:
            self._enqueue_all(matching)
            if node.identity == identity:
                self._try_alternative(node, others)
        elif node.identity == identity:
            self._remove(node)
        else:
            self._enqueue_all(matching)

    def _mark_observed(self, node: GraphNode, identity: ObjectIdentity) -> None:
        if identity != node.identity:
            for dependent in partition_dependents(node.dependents.values(), identity)[1]:
                if identity.namespace not in ("", dependent.identity.namespace):
                    self._report(dependent, identity.uid)
                self._worklist.attempt_to_delete(dependent.identity.uid)
        node.virtual = False

    def _set_owners(self, node: GraphNode, owners: Sequence[OwnerReference]) -> None:
        before, after = ({owner.uid: owner for owner in each} for each in (node.owners, owners))
        node.owners = owners
        for uid, old in before.items():
            now = after.get(uid)
            if old.block_owner_deletion and not (now and now.block_owner_deletion):
                self._enqueue(uid)
        self._add_dependent([owner for uid, owner in after.items() if uid not in before], node)
        for uid in before:
            if uid not in after and (owner_node := self._nodes.get(uid)):
                owner_node.dependents.pop(node.identity.uid, None)

    def _add_dependent(self, owners: Iterable[OwnerReference], node: GraphNode) -> None:
        """Add a node to its owners' dependents; it is checked if a reference may be invalid."""
        doubtful = False
        for owner in owners:
            found = self._nodes.get(owner.uid)
            if found is None:
                named = identity_of(owner, node.identity.namespace)
                found = self._nodes[owner.uid] = GraphNode(named, virtual=True)
                self._worklist.attempt_to_delete(owner.uid)
            elif not doubtful:
                doubtful = self._may_be_invalid(owner, found, node)
            found.dependents[node.identity.uid] = node
        if doubtful:
            self._worklist.attempt_to_delete(node.identity.uid)

    def _may_be_invalid(self, owner: OwnerReference, found: GraphNode, node: GraphNode) -> bool:
        namespace = found.identity.namespace
        if namespace and namespace != node.identity.namespace:
            if not found.virtual:
                self._report(node, owner.uid)
            return True
        if identity_of(owner, namespace) != found.identity:
            return True
        return found.virtual and namespace != node.identity.namespace

    def _record_deletion(
        self, node: GraphNode, meta: ObjectMeta, before: ObjectMeta | None
    ) -> None:
        uid = node.identity.uid
        if _waits_for(meta, ORPHAN) and not _waits_for(before, ORPHAN):
            self._worklist.attempt_to_orphan(uid)
        elif _waits_for(meta, FOREGROUND) and not _waits_for(before, FOREGROUND):
            node.deleting_dependents = True
            for dependent in tuple(node.dependents):
                self._worklist.attempt_to_delete(dependent)
            self._worklist.attempt_to_delete(uid)

    def _remove(self, node: GraphNode) -> None:
        del self._nodes[node.identity.uid]
        for owner in node.owners:
            if found := self._nodes.get(owner.uid):
                found.dependents.pop(node.identity.uid, None)
        for dependent in tuple(node.dependents):
            self._worklist.attempt_to_delete(dependent)
        for owner in node.owners:
            owner_node = self._nodes.get(owner.uid)
            if owner_node is not None and owner_node.deleting_dependents:
                self._worklist.attempt_to_delete(owner.uid)

    def _enqueue_all(self, dependents: Sequence[GraphNode]) -> None:
        for dependent in dependents:
            self._worklist.attempt_to_delete(dependent.identity.uid)

    def _try_alternative(self, node: GraphNode, dependents: Sequence[GraphNode]) -> None:
        """Set a virtual node's identity to the next one that its dependents reference."""
        elsewhere = alternative_identity(dependents, node.identity)
        if elsewhere is not None:
            node.identity = elsewhere
            self._worklist.attempt_to_delete_later(elsewhere.uid)

    def _enqueue(self, uid: str) -> None:
        if uid in self._nodes:
            self._worklist.attempt_to_delete(uid)

    def _report(self, dependent: GraphNode, uid: str) -> None:
        for owner in dependent.owners:
            if owner.uid == uid:
                named = identity_of(owner, dependent.identity.namespace)
                self._worklist.report_invalid_namespace(dependent.identity, named)
                return


def identity_of(owner: OwnerReference, namespace: str) -> ObjectIdentity:
    """Return the identity of a referenced owner, as seen from a namespace."""
    return ObjectIdentity(owner.kind, owner.api_version, namespace, owner.name, owner.uid)


def partition_dependents(
    dependents: Iterable[GraphNode], owner: ObjectIdentity
) -> tuple[list[GraphNode], list[GraphNode]]:
    """Return the dependents that reference an owner by this identity, and those by others.

    A dependent with several references to the same UID can be in both lists.
    """
    matching, others = [], []
    for dependent in dependents:
        namespace = dependent.identity.namespace
        elsewhere = owner.namespace not in ("", namespace)
        named = [identity_of(o, owner.namespace) for o in dependent.owners if o.uid == owner.uid]
        if not elsewhere and any(each == owner for each in named):
            matching.append(dependent)
        if elsewhere or any(each != owner for each in named):
            others.append(dependent)
    return matching, others


def alternative_identity(
    dependents: Iterable[GraphNode], absent: ObjectIdentity
) -> ObjectIdentity | None:
    """Return the next identity after the absent one in sort order, wrapping around."""
    named = {
        _cluster_scoped(identity_of(owner, dependent.identity.namespace), absent)
        for dependent in dependents
        for owner in dependent.owners
        if owner.uid == absent.uid
    }
    others = sorted(named - {absent})
    return next((each for each in others if each > absent), next(iter(others), None))


def _cluster_scoped(named: ObjectIdentity, absent: ObjectIdentity) -> ObjectIdentity:
    """Drop the namespace if the absent identity shows that the kind is cluster-scoped."""
    same = (named.kind, named.api_version) == (absent.kind, absent.api_version)
    return replace(named, namespace="") if same and not absent.namespace else named


def _waits_for(meta: ObjectMeta | None, finalizer: str) -> bool:
    return meta is not None and meta.deleting and finalizer in (meta.finalizers or ())
