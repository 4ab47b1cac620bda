"""The cluster as columns of integers, kept current by changes: what the fast engine decides on.

:class:`Columns` follows snapshots. A node that has changed is compared with what is known of it,
and only the pods that came or went are written; nothing is built anew for a decision.
"""

from __future__ import annotations

from policies.columns.table import Columns

__all__ = ["Columns"]
