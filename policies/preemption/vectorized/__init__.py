"""The vectorized engine: decisions equal to the reference engine's, on columns of all nodes.

:class:`VectorizedEngine` keeps the columns of one cluster and decides on them. Most rows are
evaluated together. Rows that need more than the columns hold are evaluated one by one with the
reference engine's own functions, and a pod that the columns cannot represent is left to the
reference engine altogether.
"""

from __future__ import annotations

from policies.preemption.vectorized.engine import VectorizedEngine

__all__ = ["VectorizedEngine"]
