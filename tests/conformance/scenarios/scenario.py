"""A scenario: what there is beforehand, what runs of the control plane, and what happens then."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from tests.conformance.objects import Document
from tests.conformance.world import World


def nothing() -> Sequence[Document]:
    """Return a world without anything in it."""
    return ()


@dataclass(frozen=True, slots=True)
class Scenario:
    """``play`` runs once ``objects``, made for the scenario, and the controllers are there."""

    play: Callable[[World], Awaitable[None]]
    objects: Callable[[], Sequence[Document]] = nothing
    run: str = "none"

    @property
    def name(self) -> str:
        """Its name."""
        return self.play.__name__
