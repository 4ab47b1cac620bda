"""The vectorized engine: decisions equal to the reference engine's, on columns of all nodes."""

from __future__ import annotations

from policies.preemption.vectorized.engine import VectorizedEngine

__all__ = ["VectorizedEngine"]
