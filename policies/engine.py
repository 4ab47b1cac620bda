"""What decides: an engine, which follows one cluster from snapshot to snapshot.

:class:`policies.reference.Reference` is the specification, :class:`policies.vectorized.Vectorized`
the same decisions on columns that are kept between them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from policies.decision import FilterDecision, PreemptionDecision
from policies.model import Pod, Snapshot
from policies.patience import Patience, endless
from policies.rules import Rules


class Engine(Protocol):
    """Decides by its rules. It may be asked about any snapshot, told of before or not.

    Where ``patience`` ends, filtering raises OutOfTimeError, and a dry run tries no more nodes.
    """

    @property
    def rules(self) -> Rules:
        """What it decides by."""
        ...

    def follow(self, snapshot: Snapshot, changed: Collection[str] | None = None) -> None:
        """Make ready for a snapshot.

        ``changed`` names the nodes that differ from the one that it was made ready for last,
        whatever it was asked about since; without it all may.
        """
        ...

    def filter_nodes(
        self,
        pod: Pod,
        snapshot: Snapshot,
        among: Collection[str] | None = None,
        patience: Patience = endless,
    ) -> FilterDecision:
        """Find the nodes that ``pod`` fits now; see :func:`policies.reference.filter_nodes`."""
        ...

    def filter_leniently(
        self,
        pod: Pod,
        snapshot: Snapshot,
        among: Collection[str],
        patience: Patience = endless,
    ) -> FilterDecision:
        """Filter where pods depart; see :func:`policies.reference.filter_leniently`."""
        ...

    def preempt(
        self,
        pod: Pod,
        snapshot: Snapshot,
        potential: Collection[str] | None = None,
        among: Collection[str] | None = None,
        patience: Patience = endless,
    ) -> PreemptionDecision:
        """Decide where ``pod`` goes at whose cost; see :func:`policies.reference.preempt`."""
        ...
