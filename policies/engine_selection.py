"""The engine that a process decides with.

The vectorized engine needs NumPy, which is the extra ``vectorized``. Without it, the reference
engine makes the same decisions, and takes longer in large clusters.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from policies.preemption.engine import Engine
from policies.preemption.policy import SchedulerRules
from policies.preemption.reference_engine import ReferenceEngine

VECTORIZED: Final = find_spec("numpy") is not None
"""Whether the extra ``vectorized`` is installed."""


def build_engine(rules: SchedulerRules) -> Engine:
    """Return the fastest engine that is installed."""
    if not VECTORIZED:
        return ReferenceEngine(rules)
    from policies.preemption.vectorized import VectorizedEngine  # needs NumPy

    return VectorizedEngine(rules)
