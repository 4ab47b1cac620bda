"""The filters on volumes and devices, as far as columns can tell.

Most of them read nothing but the node, once the pod's claims are looked up: these are asked row by
row, where nothing else refuses the row. Those that count the volumes of other pods are settled for
all rows where such pods cannot matter; the others are left to be judged by hand.
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
    """Twin of a filter that reads only the node; None if it refuses the pod altogether."""
    prepared = each.prepare(asked.pod, asked.snapshot, asked.release)
    if prepared.conflict is not None:
        return None
    return Twin() if prepared.check is None else Twin((_ByNode(prepared.check, asked),))


def restrictions(each: Filter, asked: Asked) -> Twin | None:
    """Twin of VolumeRestrictions: pods with the same disks and claims matter on their own rows."""
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
    """Twin of NodeVolumeLimits: rows where a limit is in reach are left to be judged by hand."""
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
    """What is left of the limits where none is in reach."""

    limits: LimitsCheck

    def refuse(self, node: NodeState) -> Rejection | None:
        return self.limits.absent_driver(node.node)

    def removing(self, pod: object, node: NodeState) -> Check:  # noqa: ARG002 - see Check
        return self

    def adding(self, pod: object, node: NodeState) -> Check:  # noqa: ARG002 - see Check
        return self


@dataclass(frozen=True)
class _ByNode:
    """A check of the node alone, remembered for each row that it was asked about."""

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
    """The restrictions on rows that nobody who matters is on."""

    check: RestrictionsCheck

    def judge(self, view: View, verdicts: Verdicts) -> None:
        if self.check.conflicts > 0:
            everywhere: Bools = np.ones(len(view), np.bool_)
            verdicts.refuse(everywhere, self.check.claim_in_use)

    def footing(self, view: View) -> None:  # noqa: ARG002 - see Constraint
        return
