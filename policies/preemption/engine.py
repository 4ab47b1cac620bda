"""The engine interface: filtering and preemption on a cluster, from snapshot to snapshot.

:class:`policies.preemption.reference_engine.ReferenceEngine` is the specification.
:class:`policies.preemption.vectorized.VectorizedEngine` makes the same decisions on columns that it
keeps between them.

The time limit of a search is a callback that the search evaluates between two nodes. A dry run that
is cut short still has a result: each candidate found is complete, and the best of
them frees enough resources for the pod; only a better one may be missing. Filtering that is cut
short has no result: a node that was not evaluated is neither feasible nor refused. Operations of an
engine on all rows of its columns at once are not cut short.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol, TypeAlias

from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.decision import PreemptionDecision
from policies.preemption.filtering.status import FilterDecision
from policies.preemption.policy import SchedulerRules

HasTimeLeft: TypeAlias = Callable[[], bool]
"""Returns whether there is time left for one more node."""


class DeadlineExceededError(Exception):
    """The time limit ended filtering before every node was evaluated."""


def no_deadline() -> bool:
    """Return true: there is no time limit."""
    return True


class Engine(Protocol):
    """Decides by its rules about any snapshot, whether or not ``follow`` was called with it.

    When ``has_time_left`` returns false, filtering raises DeadlineExceededError, and a dry run
    evaluates no more nodes.
    """

    @property
    def rules(self) -> SchedulerRules:
        """The rules of every decision."""
        ...

    def follow(self, snapshot: Snapshot, changed: Collection[str] | None = None) -> None:
        """Prepare for decisions about ``snapshot``.

        ``changed`` names the nodes that differ from the snapshot of the last ``follow`` call,
        whatever snapshots were decided about in between; without it any node may differ.
        """
        ...

    def filter_nodes(
        self,
        pod: Pod,
        snapshot: Snapshot,
        among: Collection[str] | None = None,
        has_time_left: HasTimeLeft = no_deadline,
    ) -> FilterDecision:
        """Find the nodes that ``pod`` fits now.

        See :func:`policies.preemption.reference_engine.filter_nodes`.
        """
        ...

    def filter_with_terminating_pods(
        self,
        pod: Pod,
        snapshot: Snapshot,
        among: Collection[str],
        has_time_left: HasTimeLeft = no_deadline,
    ) -> FilterDecision:
        """Filter nodes that have departing pods.

        See :func:`policies.preemption.reference_engine.filter_with_terminating_pods`.
        """
        ...

    def preempt(
        self,
        pod: Pod,
        snapshot: Snapshot,
        potential: Collection[str] | None = None,
        among: Collection[str] | None = None,
        has_time_left: HasTimeLeft = no_deadline,
    ) -> PreemptionDecision:
        """Find the best node for ``pod`` and its victims there.

        See :func:`policies.preemption.reference_engine.preempt`.
        """
        ...
