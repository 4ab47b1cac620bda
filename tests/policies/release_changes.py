"""One row of the table of what changed between releases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from policies.kubernetes.releases import RELEASES, Release


@dataclass(frozen=True)
class Change:
    """A rule that changed in ``minor``, what shows it, and what is seen before and since."""

    rule: str
    minor: int
    seen: Callable[[Release], object]
    before: object
    since: object

    @property
    def releases(self) -> tuple[Release, Release]:
        return RELEASES[f"1.{self.minor - 1}"], RELEASES[f"1.{self.minor}"]

    def __str__(self) -> str:
        return f"{self.rule}-1.{self.minor}"
