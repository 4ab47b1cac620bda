"""Counts of pods by topology domain, cheap to change in a dry run.

A domain is a value of a node label, such as one zone. Counting the whole cluster is done once; what
a dry run removes and adds on one node is a small overlay on that count, so that trying a node never
copies the counts of all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple


class Domain(NamedTuple):
    """A value of a topology key: ``zone=a``."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class DomainCounts:
    """How many pods (or terms) count in each domain: a base, and what has changed since."""

    base: Mapping[Domain, int]
    changes: Mapping[Domain, int] = field(default_factory=dict)

    def of(self, domain: Domain) -> int:
        """Return the count of a domain; one that was never counted has none."""
        return self.base.get(domain, 0) + self.changes.get(domain, 0)

    def changed(self, domain: Domain, by: int) -> DomainCounts:
        """Return the counts with that of ``domain`` changed."""
        changes = {**self.changes, domain: self.changes.get(domain, 0) + by}
        return replace(self, changes=changes)

    def any(self) -> bool:
        """Return whether any domain has a count other than none."""
        return any(self.of(domain) for domain in self.changes) or any(
            count for domain, count in self.base.items() if domain not in self.changes
        )
