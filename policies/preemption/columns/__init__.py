"""A snapshot as columns of integers, updated by changes: the data of the vectorized engine.

:class:`ClusterColumns` follows snapshots. A changed node is compared with its last state, and only
the pods that were added or removed are written; nothing is rebuilt for a decision.
"""

from __future__ import annotations

from policies.preemption.columns.cluster_columns import ClusterColumns

__all__ = ["ClusterColumns"]
