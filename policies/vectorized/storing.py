"""The volume and device filters, as far as columns can evaluate them.

Most of them read only the node, once the pod's claims are known: these are evaluated row by row, on
rows that no other filter refuses. Filters that count the volumes of other pods are evaluated for
all rows where such pods cannot matter; the other rows are reference rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from policies.columns.cells import TRAITS
from policies.columns.coded import Bools
from policies.decision import Rejection
from policies.filtering import Check, Filter
from policies.filtering.node_volume_limits import LimitsCheck
from policies.filtering.volume_restrictions import RestrictionsCheck
from policies.model import NodeState
from policies.vectorized.asking import Asked, Twin
from policies.vectorized.verdicts import Verdicts
from policies.vectorized.view import View, some


def by_node(each: Filter, asked: Asked) -> Twin | None:
    """Return a vectorized filter that reads only the node; None if it refuses every node."""
    prepared = each.prepare(asked.pod, asked.snapshot, asked.release)
    if prepared.conflict is not None:
        return None
    return Twin() if prepared.check is None else Twin((_ByNode(prepared.check, asked),))


def restrictions(each: Filter, asked: Asked) -> Twin | None:
    """Return the vectorized VolumeRestrictions.

    Rows with pods that have the same disks or claims are reference rows.
    """
    prepared = each.prepare(asked.pod, asked.snapshot, asked.release)
    if prepared.conflict is not None:
        return None
    check = prepared.check
    if not isinstance(check, RestrictionsCheck):
        return Twin()
    heeded = asked.columns.traits.storing(check.heeds) > 0
    rows = np.flatnonzero(some(heeded.take(asked.everything.channel(TRAITS)))).tolist()
    return Twin((_Elsewhere(check),), frozenset(rows), reads_other_pods=True)


def limits(each: Filter, asked: Asked) -> Twin | None:
    """Return the vectorized NodeVolumeLimits; rows close to a limit are reference rows."""
    prepared = each.prepare(asked.pod, asked.snapshot, asked.release)
    if prepared.conflict is not None:
        return None
    check, columns = prepared.check, asked.columns
    if not isinstance(check, LimitsCheck):
        return Twin()
    per_class = columns.traits.storing(lambda storage: len(storage.volumes))
    volumes = per_class.take(asked.everything.channel(TRAITS)).sum(axis=0).tolist()
    close = frozenset(
        row
        for row, state in enumerate(columns.states)
        if not check.has_room_beside(state.node, volumes[row])
    )
    return Twin((_ByNode(_Driver(check), asked),), close, reads_other_pods=True)


@dataclass(frozen=True)
class _Driver:
    """The part of the volume limits that applies where no limit can be exceeded."""

    limits: LimitsCheck

    def refuse(self, node: NodeState) -> Rejection | None:
        return self.limits.absent_driver(node.node)

    def removing(self, pod: object, node: NodeState) -> Check:  # noqa: ARG002 - see Check
        return self

    def adding(self, pod: object, node: NodeState) -> Check:  # noqa: ARG002 - see Check
        return self


@dataclass(frozen=True)
class _ByNode:
    """A filter plugin that reads only the node, with a cache of its results by row."""

    check: Check
    asked: Asked
    _known: dict[int, Rejection | None] = field(default_factory=dict)

    def judge(self, view: View, verdicts: Verdicts) -> None:
        fits = np.flatnonzero(verdicts.fits)
        for place, row in zip(fits.tolist(), view.numbers[fits].tolist(), strict=True):
            verdicts.settle(place, self._refusal(row))

    def footing(self, view: View) -> None:  # noqa: ARG002 - see Constraint
        return

    def _refusal(self, row: int) -> Rejection | None:
        if row not in self._known:
            self._known[row] = self.check.refuse(self.asked.columns.states[row])
        return self._known[row]


@dataclass(frozen=True)
class _Elsewhere:
    """The volume restrictions on rows without pods that share disks or claims."""

    check: RestrictionsCheck

    def judge(self, view: View, verdicts: Verdicts) -> None:
        if self.check.conflicts > 0:
            everywhere: Bools = np.ones(len(view), np.bool_)
            verdicts.refuse(everywhere, self.check.claim_in_use)

    def footing(self, view: View) -> None:  # noqa: ARG002 - see Constraint
        return
