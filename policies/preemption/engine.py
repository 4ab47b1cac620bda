"""The engine interface: filtering and preemption on a cluster, from snapshot to snapshot.

:class:`policies.preemption.reference_engine.ReferenceEngine` is the specification.
:class:`policies.preemption.vectorized.VectorizedEngine` makes the same decisions on columns that it
keeps between them.

The time limit of a search is a callback that the search evaluates between its steps. A dry run that
is cut short between two nodes still has a result: each candidate found is complete, and the best of
them frees enough resources for the pod; only a better one may be missing. Any other part that is
cut short has no result: a node that was not evaluated is neither feasible nor refused.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.decision import PreemptionDecision
from policies.preemption.filtering.status import FilterDecision
from policies.preemption.policy import SchedulerRules
from policies.preemption.time_limit import HasTimeLeft, no_deadline


class Engine(Protocol):
    """Decides by its rules about any snapshot, whether or not ``follow`` was called with it.

    When ``has_time_left`` returns false, a dry run on single nodes evaluates no more of them; all
    else raises DeadlineExceededError.
    """

    @property
    def rules(self) -> SchedulerRules:
        """The rules of every decision."""
        ...

    def for_preemptor(self, pod: Pod) -> Engine:
        """Return the engine that decides by the policy that applies to a preemptor."""
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
