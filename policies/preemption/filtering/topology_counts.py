"""Counts of pods by topology domain, with cheap updates in a dry run.

A domain is a value of a node label, such as one zone. The whole cluster is counted once. A dry run
on one node keeps its additions and removals as a small overlay on that count, so it never copies
the counts of the other domains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple


class TopologyDomain(NamedTuple):
    """A topology domain: a value of a topology key, such as ``zone=a``."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class DomainCounts:
    """The number of pods (or terms) in each domain: a base, and the changes since."""

    base: Mapping[TopologyDomain, int]
    changes: Mapping[TopologyDomain, int] = field(default_factory=dict)

    def of(self, domain: TopologyDomain) -> int:
        """Return the count of a domain; 0 for one that was never counted."""
        return self.base.get(domain, 0) + self.changes.get(domain, 0)

    def changed(self, domain: TopologyDomain, by: int) -> DomainCounts:
        """Return the counts with ``by`` added to that of ``domain``."""
        changes = {**self.changes, domain: self.changes.get(domain, 0) + by}
        return replace(self, changes=changes)

    def any(self) -> bool:
        """Return whether any domain has a count other than 0."""
        return any(self.of(domain) for domain in self.changes) or any(
            count for domain, count in self.base.items() if domain not in self.changes
        )
