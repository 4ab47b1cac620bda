"""The engines by name: whatever one of them decides, all of them have to.

An engine follows the snapshots of one cluster and decides on the one that it followed last. A new
engine is one more line in :data:`ENGINES`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from policies import reference
from policies.decision import FilterDecision, PreemptionDecision
from policies.model import Pod, Snapshot
from policies.reference import Rules


class Engine(Protocol):
    """Decides on the snapshots that it follows."""

    def follow(self, snapshot: Snapshot, changed: Collection[str] | None) -> None:
        """Take a new snapshot; ``changed`` names the nodes that differ (None: compare all)."""
        ...

    def preempt(
        self, pod: Pod, snapshot: Snapshot, potential: Collection[str] | None = None
    ) -> PreemptionDecision:
        """Decide where ``pod`` may be placed at whose cost."""
        ...

    def filter_nodes(
        self, pod: Pod, snapshot: Snapshot, among: Collection[str] | None = None
    ) -> FilterDecision:
        """Find the nodes that ``pod`` fits now."""
        ...


@dataclass(frozen=True, slots=True)
class Reference:
    """The plain loops, which keep nothing between decisions."""

    rules: Rules

    def follow(self, snapshot: Snapshot, changed: Collection[str] | None) -> None:
        """Need nothing: each decision reads its snapshot."""

    def preempt(
        self, pod: Pod, snapshot: Snapshot, potential: Collection[str] | None = None
    ) -> PreemptionDecision:
        """Decide as the reference does."""
        return reference.preempt(pod, snapshot, self.rules, potential)

    def filter_nodes(
        self, pod: Pod, snapshot: Snapshot, among: Collection[str] | None = None
    ) -> FilterDecision:
        """Filter as the reference does."""
        return reference.filter_nodes(pod, snapshot, self.rules, among)


ENGINES: Final[Mapping[str, Callable[[Rules], Engine]]] = {
    "reference": Reference,
}

_PATIENCE: Final = {"reference": 1_000}
"""The most nodes that an engine decides on in about a second; others take any number."""


def able(nodes: int) -> list[str]:
    """Name the engines that can be asked about so many nodes again and again."""
    return [name for name in ENGINES if nodes <= _PATIENCE.get(name, nodes)]
