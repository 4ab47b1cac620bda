"""The engines by name: whatever one of them decides, all of them have to.

An engine follows the snapshots of one cluster and decides on the one that it followed last. A new
engine is one more line in :data:`ENGINES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from policies.preemption.engine import Engine
from policies.preemption.policy import SchedulerRules
from policies.preemption.reference_engine import ReferenceEngine
from policies.preemption.vectorized import VectorizedEngine

ENGINES: Final[Mapping[str, Callable[[SchedulerRules], Engine]]] = {
    "reference": ReferenceEngine,
    "vectorized": VectorizedEngine,
}

_PATIENCE: Final = {"reference": 1_000}
"""The most nodes that an engine decides on in about a second; others take any number."""


def able(nodes: int) -> list[str]:
    """Name the engines that can be asked about so many nodes again and again."""
    return [name for name in ENGINES if nodes <= _PATIENCE.get(name, nodes)]
