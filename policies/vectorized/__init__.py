"""The engine on columns: the same decisions as :mod:`policies.reference`, on all nodes at once.

:class:`Vectorized` keeps the columns of one cluster and decides on them. Most rows are decided
together; what needs a closer look goes to the reference engine's own functions, row by row, and a
pod that the columns cannot be asked about goes to the reference engine altogether.
"""

from __future__ import annotations

from policies.vectorized.engine import Vectorized

__all__ = ["Vectorized"]
