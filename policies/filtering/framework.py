"""How filters are prepared once per pod and then asked about node after node.

A :class:`Filter` looks at the pod and the snapshot first (upstream's PreFilter) and gives a
:class:`Preparation`: nothing to check, a conflict that no node can heal, or a :class:`Check` for
single nodes (upstream's Filter), possibly with the only nodes that can pass.

A check may need the whole cluster (topology spread, inter-pod affinity). Such a check carries its
own counts, and :meth:`Check.removing` and :meth:`Check.adding` give the check as it stands after a
pod has left or joined a node (upstream's PreFilterExtensions); a check that reads nothing but the
node's state returns itself. Checks are values: a dry run on one node never disturbs another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from policies.decision import Code, Rejection, unresolvable
from policies.model import NodeState, Pod, Snapshot
from policies.upstream import Release


class Check(Protocol):
    """One filter, prepared for one pod."""

    def refuse(self, node: NodeState) -> Rejection | None:
        """Say why the pod doesn't fit ``node``, or None if it does."""
        ...

    def removing(self, pod: Pod, node: NodeState) -> Check:
        """Return the check as it stands once ``pod`` has left ``node``."""
        ...

    def adding(self, pod: Pod, node: NodeState) -> Check:
        """Return the check as it stands once ``pod`` has joined ``node``."""
        ...


@dataclass(frozen=True, slots=True)
class NodeCheck:
    """A check that reads only the node it is asked about."""

    rule: Callable[[NodeState], Rejection | None]

    def refuse(self, node: NodeState) -> Rejection | None:
        """Apply the rule."""
        return self.rule(node)

    def removing(self, pod: Pod, node: NodeState) -> Check:  # noqa: ARG002 - see Check
        """Return itself: the node's state already says that the pod is gone."""
        return self

    def adding(self, pod: Pod, node: NodeState) -> Check:  # noqa: ARG002 - see Check
        """Return itself: the node's state already says that the pod is there."""
        return self


@dataclass(frozen=True, slots=True)
class Preparation:
    """What a filter found before looking at any node; with nothing set it has nothing to check.

    ``conflict`` refuses every node at once. ``only`` limits the nodes that are looked at.
    """

    check: Check | None = None
    conflict: Rejection | None = None
    only: frozenset[str] | None = None


NOTHING_TO_CHECK = Preparation()


class Filter(Protocol):
    """An in-tree filter."""

    @property
    def name(self) -> str:
        """The plugin's name, as kube-scheduler's configuration spells it."""
        ...

    def prepare(self, pod: Pod, snapshot: Snapshot, release: Release) -> Preparation:
        """Look at the pod and the cluster before any single node."""
        ...


@dataclass(frozen=True, slots=True)
class Pipeline:
    """All filters prepared for one pod, in kube-scheduler's order.

    ``only`` are the nodes left to look at (None: all) and ``limited_by`` the filters that said so.
    """

    pod: Pod
    checks: tuple[Check, ...]
    conflict: Rejection | None = None
    only: frozenset[str] | None = None
    limited_by: tuple[str, ...] = ()

    def refuse(self, node: NodeState) -> Rejection | None:
        """Return the first filter's objection to ``node``, pods nominated to it being respected.

        Pods of at least the pod's own priority that are promised to the node must fit beside it,
        and it must fit without them too, since they may end elsewhere. Source:
        RunFilterPluginsWithNominatedPods in pkg/scheduler/framework/runtime/framework.go.
        """
        promised = [
            pod
            for pod in node.nominated
            if pod.priority >= self.pod.priority and pod.uid != self.pod.uid
        ]
        if promised:
            crowded, crowd = self, node
            for pod in promised:
                crowd = crowd.with_pod(pod)
                crowded = crowded.adding(pod, crowd)
            rejection = crowded.first_objection(crowd)
            if rejection is not None:
                return rejection
        return self.first_objection(node)

    def first_objection(self, node: NodeState) -> Rejection | None:
        """Run the checks in order on ``node`` as it stands and give the first rejection."""
        if node.unreadable:
            return unresolvable(Code.UNREADABLE_POD, ", ".join(node.unreadable))
        for check in self.checks:
            rejection = check.refuse(node)
            if rejection is not None:
                return rejection
        return None

    def examine(self, node: NodeState) -> Rejection | None:
        """Do as :meth:`refuse`, after the limits that were found before any node was looked at.

        The limits don't hold for the node that the pod is nominated to: it is always looked at, and
        first. Source: evaluateNominatedNode in pkg/scheduler/schedule_one.go.
        """
        if self.conflict is not None:
            return self.conflict
        name = node.node.name
        if self.only is not None and name not in self.only and name != self.pod.nominated_node:
            return unresolvable(Code.NOT_EXAMINED, " ".join(self.limited_by))
        return self.refuse(node)

    def removing(self, pod: Pod, node: NodeState) -> Pipeline:
        """Return the pipeline as it stands once ``pod`` has left ``node``."""
        return replace(self, checks=tuple(check.removing(pod, node) for check in self.checks))

    def adding(self, pod: Pod, node: NodeState) -> Pipeline:
        """Return the pipeline as it stands once ``pod`` has joined ``node``."""
        return replace(self, checks=tuple(check.adding(pod, node) for check in self.checks))


def prepare(pod: Pod, snapshot: Snapshot, release: Release, filters: Sequence[Filter]) -> Pipeline:
    """Prepare ``filters`` in their order; the first conflict ends it, as upstream."""
    checks: list[Check] = []
    only: frozenset[str] | None = None
    limited_by: list[str] = []
    for each in filters:
        prepared = each.prepare(pod, snapshot, release)
        if prepared.conflict is not None:
            return Pipeline(pod, (), conflict=prepared.conflict)
        if prepared.check is not None:
            checks.append(prepared.check)
        if prepared.only is not None:
            only = prepared.only if only is None else only & prepared.only
            limited_by.append(each.name)
    return Pipeline(pod, tuple(checks), only=only, limited_by=tuple(sorted(limited_by)))
