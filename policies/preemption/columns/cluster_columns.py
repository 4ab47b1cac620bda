"""The columns of one cluster, and how they follow its changes.

The pods of two states of one node are compared by identity.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import is_
from typing import TypeVar

import numpy as np

from policies.kubernetes.releases import NEWEST, Release
from policies.kubernetes.shared_mapping import replaced_keys
from policies.kubernetes.snapshot import NodeState, Pod, Snapshot
from policies.preemption.columns.disruption_budgets import DisruptionBudgetColumns
from policies.preemption.columns.encoded_column import Ints
from policies.preemption.columns.label_classes import LabelClasses, PodTraits
from policies.preemption.columns.node_columns import STANDARD, NodeColumns, NodeRowIndex, is_regular
from policies.preemption.columns.nominated_pods import NominatedPods
from policies.preemption.columns.pod_block import CLASS, FIRST_RESOURCE, FLAGS, TRAITS, PodBlock
from policies.preemption.columns.policy_columns import PolicyColumns
from policies.preemption.costs.groupings import Grouping
from policies.preemption.costs.pod_cost import MAX_COST
from policies.preemption.policy import Policy, start_time

T = TypeVar("T")

READY, TERMINATING, DEPARTING = 1, 2, 4
"""Bits of the FLAGS channel: ready; terminating; that, or an assumed victim."""

_FEW_RESOURCES = 32
_MIN_START_TIME = 1 - 2**63  # its negative has to fit int64, too


def diff_pods(before: Sequence[T], now: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
    """Return the removed and the added items, each in order; no item is twice in a state.

    Most often one item was removed and others, if any, were appended: that case needs no lookup of
    each item.
    """
    same = list(map(is_, before, now))
    start = same.index(False) if False in same else len(same)
    if start == len(before):
        return (), now[start:]
    rest = before[start + 1 :]
    if len(now) - start >= len(rest) and all(map(is_, rest, now[start:])):
        return before[start : start + 1], now[start + len(rest) :]
    known, present = set(map(id, before)), set(map(id, now))
    return (
        tuple([each for each in before if id(each) not in present]),
        tuple([each for each in now if id(each) not in known]),
    )


class ClusterColumns:
    """A snapshot as columns. Row ``i`` of everything is the node ``names[i]``; rows are dense.

    ``pods[i]`` are the node's pods in the policy's order, as in the pod block. ``departing`` names
    the nodes with departing pods or with nominated ones that may be assumed, ``with_grouped`` those
    with pods of a pod group, ``irregular`` those that the columns cannot represent: amounts beyond
    64 bits, also of nominated pods, pods that share a UID, or pods that could not be decoded.
    """

    def __init__(self, policy: Policy, release: Release) -> None:
        self.order = policy.victims
        self.policy = PolicyColumns(policy)
        self._unbounded: dict[int, Pod] = {}
        self._departing: list[int] = []
        self._grouped: list[int] = []
        self._most_resources = _FEW_RESOURCES
        self.snapshot = Snapshot()
        self.version = 0
        self.row_names = NodeRowIndex()
        self.names, self.index = self.row_names.names, self.row_names.index
        self.states: list[NodeState] = []
        self.pods: list[tuple[Pod, ...]] = []
        self.nominated = NominatedPods()
        self.departing: dict[str, None] = {}
        self.with_grouped: dict[str, None] = {}
        self.irregular: dict[str, None] = {}
        self.pod_block = PodBlock(FIRST_RESOURCE + len(STANDARD))
        self.nodes = NodeColumns()
        self.classes = LabelClasses()
        self.traits = PodTraits()
        self.budgets = DisruptionBudgetColumns(self.classes, release)
        self.strict_budgets = (
            DisruptionBudgetColumns(self.classes, NEWEST) if policy.strict_budgets else None
        )

    def follow(self, snapshot: Snapshot, changed: Collection[str] | None = None) -> None:
        """Update the columns to ``snapshot``.

        ``changed`` names the nodes that differ from the snapshot of the columns; without it all
        nodes are compared, by identity, unless both snapshots share them.
        """
        self.version += 1
        if len(self.nodes.resources) > self._most_resources:
            self._forget_resources()
        for name in self._differing(snapshot) if changed is None else changed:
            state = snapshot.nodes.get(name)
            if state is not None:
                self._put_node(name, state)
            elif name in self.index:
                self._drop_node(name)
        for budgets in self._budget_columns():
            budgets.follow(snapshot.budgets)
        self.snapshot = snapshot

    def versions(self) -> Ints:
        """Return by row the version of the columns that changed the node, its pods or budgets last.

        ``version`` is that of the columns now.
        """
        versions = self.nodes.versions[: len(self.names)]
        classes = self.budgets.changed_classes()
        if classes is not None:
            versions[classes.take(self.pod_block.used()[CLASS]).any(axis=0)] = self.version
        return versions

    def pods_of(self, name: str, state: NodeState) -> Sequence[Pod]:
        """Return the pods of a node in the policy's order, whatever the columns follow now."""
        row = self.index.get(name)
        if row is not None and self.states[row] is state:
            return self.pods[row]
        return self.order.sort(state.pods)

    def ensure_resource(self, name: str) -> int:
        """Return the index of a resource among the columns; add it if it is new."""
        if name not in self.nodes.resources:
            self.nodes.add_resource(name)
            self.pod_block.add_channel()
        return self.nodes.resources[name]

    def requests_of_groups(self, resource: str, grouping: Grouping) -> Ints:
        """Return what pods that do not depart request of a resource, by the number of their group.

        The request of each pod is clamped as costs are.
        """
        found = np.zeros(len(self.policy.groups(grouping)), np.int64)
        if (place := self.nodes.resources.get(resource)) is not None:
            block, channel = self.pod_block.used(), self.policy.group_channel(grouping)
            requests = np.clip(block[FIRST_RESOURCE + place], -MAX_COST, MAX_COST)
            staying = np.where(block[FLAGS] & DEPARTING, 0, requests)
            np.add.at(found, self.policy.block.used()[channel].ravel(), staying.ravel())
        return found

    def _forget_resources(self) -> None:
        """Drop the resources that no pod requests, such as those of earlier preemptors."""
        amounts = self.pod_block.used()[FIRST_RESOURCE:]
        kept = [i for i in range(len(amounts)) if i < len(STANDARD) or amounts[i].any()]
        self.nodes.keep_resources(kept)
        self.pod_block.keep_channels([*range(FIRST_RESOURCE), *(FIRST_RESOURCE + i for i in kept)])
        self._most_resources = 2 * len(kept) + _FEW_RESOURCES

    def _differing(self, snapshot: Snapshot) -> list[str]:
        nodes = snapshot.nodes
        if nodes is self.snapshot.nodes:
            return []
        known, states = self.index, self.states
        replaced = replaced_keys(self.snapshot.nodes, nodes)
        if replaced is not None:
            return [name for name in replaced if states[known[name]] is not nodes[name]]
        removed = [name for name in self.names if name not in nodes]
        return removed + [
            name
            for name, state in nodes.items()
            if name not in known or states[known[name]] is not state
        ]

    def _put_node(self, name: str, state: NodeState) -> None:
        row = self.index.get(name)
        before: Sequence[Pod] = ()
        if row is None:
            row = self._append(name, state)
        else:
            known, self.states[row] = self.states[row], state
            before = known.pods
            if known.node is not state.node:
                self.nodes.set(row, state.node)
        self._replace_pods(row, before, state.pods)
        self.nodes.set_requested(row, state.requested)
        self.nodes.versions[row] = self.version
        self.nominated.set(name, state.nominated)
        assumable = any(pod.may_be_assumed for pod in state.nominated)
        _mark(self.departing, name, assumable or self._departing[row])
        _mark(self.with_grouped, name, self._grouped[row])
        plain = self.nodes.regular[row] and not state.unreadable and is_regular(state.requested)
        plain = plain and all(is_regular(pod.requests) for pod in state.nominated)
        _mark(self.irregular, name, not (plain and self._are_regular(row)))

    def _are_regular(self, row: int) -> bool:
        pods = self.pods[row]
        bounded = not self._unbounded or all(id(pod) not in self._unbounded for pod in pods)
        return bounded and len({pod.uid for pod in pods}) == len(pods)

    def _append(self, name: str, state: NodeState) -> int:
        row = self.row_names.append(name)
        self.states.append(state)
        self.pods.append(())
        self._departing.append(0)
        self._grouped.append(0)
        self.nodes.append(state.node)
        self.pod_block.append_node()
        self.policy.append_node()
        return row

    def _drop_node(self, name: str) -> None:
        row = self.index[name]
        self._replace_pods(row, self.states[row].pods, ())
        self.row_names.drop(name)
        _replace_by_last(self.states, row)
        _replace_by_last(self.pods, row)
        _replace_by_last(self._departing, row)
        _replace_by_last(self._grouped, row)
        self.nodes.drop(row)
        self.nodes.versions[row] = self.version
        self.pod_block.drop_node(row)
        self.policy.drop_node(row)
        self.nominated.set(name, ())
        for marks in (self.departing, self.with_grouped, self.irregular):
            marks.pop(name, None)

    def _replace_pods(self, row: int, before: Sequence[Pod], now: Sequence[Pod]) -> None:
        """Remove the pods that left the row and add the new ones; replace those that changed."""
        removed, added = diff_pods(before, now)
        for pod in added:
            for name in pod.requests.scalars:
                self.ensure_resource(name)
        if removed:
            exchanged = self._take_pods(row, removed, {pod.uid: pod for pod in added})
            added = [pod for pod in added if id(pod) not in exchanged]
        if self.pods[row]:
            for pod in added:
                self._place_pod(row, pod)
        elif added:
            ordered = self.order.sort(added)
            self.pods[row] = tuple(ordered)
            self.policy.fill(row, ordered)
            self.pod_block.fill(
                row, [self._add_pod_row(row, pod, self._acquire(pod)) for pod in ordered]
            )

    def _take_pods(
        self, row: int, removed: Sequence[Pod], changed: Mapping[str, Pod]
    ) -> Collection[int]:
        """Remove pods from the row; exchange those that have ``changed``, by UID, if they can stay.

        Return the identities of the changed pods that are on the row.
        """
        ids, exchanged, left = list(map(id, self.pods[row])), set[int](), list[int]()
        for pod in removed:
            place, current = ids.index(id(pod)), changed.get(pod.uid, pod)
            is_new = current is not pod and id(current) not in exchanged
            if is_new and self._belongs_at(row, place, current):
                self._exchange_pods(row, place, current)
                exchanged.add(id(current))
            else:
                left.append(place)
        for place in sorted(left, reverse=True):
            self._take_pod(row, place)
        return exchanged

    def _belongs_at(self, row: int, place: int, pod: Pod) -> bool:
        """Return whether a pod may replace another in place, as one that has changed little may."""
        key, pods = self.order.key, self.pods[row]
        mine = key(pod)
        if mine == key(pods[place]):
            return True
        follows = place == 0 or key(pods[place - 1]) <= mine
        return follows and (place + 1 == len(pods) or mine <= key(pods[place + 1]))

    def _exchange_pods(self, row: int, place: int, pod: Pod) -> None:
        pods, block = self.pods[row], self.pod_block.block
        old = pods[place]
        self._discount(row, old)
        if _are_alike(old, pod):
            classes = block.item(CLASS, place, row), block.item(TRAITS, place, row)
        else:
            self._release(row, place)
            classes = self._acquire(pod)
        self.pod_block.write(row, place, self._add_pod_row(row, pod, classes))
        self.policy.write(row, place, pod)
        changed = list(pods)
        changed[place] = pod
        self.pods[row] = tuple(changed)

    def _take_pod(self, row: int, place: int) -> None:
        pods = self.pods[row]
        self._discount(row, pods[place])
        self._release(row, place)
        self.pod_block.remove(row, place)
        self.policy.remove(row, place)
        changed = list(pods)
        del changed[place]
        self.pods[row] = tuple(changed)

    def _place_pod(self, row: int, pod: Pod) -> None:
        key, pods = self.order.key, self.pods[row]
        place = bisect_left(pods, key(pod), key=key)
        self.pod_block.insert(row, place, self._add_pod_row(row, pod, self._acquire(pod)))
        self.policy.insert(row, place, pod)
        changed = list(pods)
        changed.insert(place, pod)
        self.pods[row] = tuple(changed)

    def _acquire(self, pod: Pod) -> tuple[int, int]:
        """Count one more pod of its classes; return their numbers, by labels and by traits."""
        number, new = self.classes.acquire(pod)
        if new:
            for budgets in self._budget_columns():
                budgets.add_class(number, pod)
        return number, self.traits.acquire(pod)

    def _release(self, row: int, place: int) -> None:
        """Count one pod less of its classes."""
        block = self.pod_block.block
        number = block.item(CLASS, place, row)
        if self.classes.release(number):
            for budgets in self._budget_columns():
                budgets.remove_class(number)
        self.traits.release(block.item(TRAITS, place, row))

    def _budget_columns(self) -> Iterator[DisruptionBudgetColumns]:
        yield self.budgets
        if self.strict_budgets is not None:
            yield self.strict_budgets

    def _discount(self, row: int, pod: Pod) -> None:
        if pod.departing:
            self._departing[row] -= 1
        if pod.group:
            self._grouped[row] -= 1
        if self._unbounded:
            self._unbounded.pop(id(pod), None)

    def _add_pod_row(self, row: int, pod: Pod, classes: tuple[int, int]) -> list[int]:
        """Count one more pod of the row, and return its values of all channels."""
        flags = self._flags(pod)
        if flags & DEPARTING:
            self._departing[row] += 1
        if pod.group:
            self._grouped[row] += 1
        if not is_regular(pod.requests):
            self._unbounded[id(pod)] = pod
        began = max(start_time(pod), _MIN_START_TIME)
        return [pod.priority, began, *classes, flags, *self.nodes.amounts(pod.requests)]

    def _flags(self, pod: Pod) -> int:
        flags = READY if pod.ready else 0
        if pod.terminating:
            flags |= TERMINATING
        return flags | DEPARTING if pod.departing else flags


def _are_alike(one: Pod, other: Pod) -> bool:
    """Return whether two pods are of the same classes."""
    return (
        one.namespace == other.namespace
        and one.labels == other.labels
        and one.host_ports == other.host_ports
        and one.anti_affinity == other.anti_affinity
        and one.storage == other.storage
    )


def _mark(marks: dict[str, None], name: str, because: object) -> None:
    if because:
        marks[name] = None
    else:
        marks.pop(name, None)


def _replace_by_last(rows: list[T], row: int) -> None:
    last = rows.pop()
    if row < len(rows):
        rows[row] = last
