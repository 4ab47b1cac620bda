"""The dry run on all rows at once (DryRunPreemption).

As in :func:`policies.preemption.victim_selection.select_victims`: every pod of lower priority is
removed, the rows that the pod then fits are candidates, and along each of them pods are added back
where the preemptor still fits, first those whose eviction is a PDB violation. One step handles the
pods of one depth on all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from policies.columns.cells import FLAGS, PRIORITY
from policies.columns.coded import Bools, Ints
from policies.columns.table import GUARDED
from policies.decision import Code, unresolvable
from policies.vectorized.asking import Asked, Constraint, Footing
from policies.vectorized.charging import violating
from policies.vectorized.verdicts import Rejections, Verdicts
from policies.vectorized.view import View, some

_NO_VICTIMS = unresolvable(Code.NO_VICTIMS)


@dataclass(frozen=True)
class DryRun:
    """The result of a dry run on ``view``.

    ``statuses`` holds by row why it is no candidate. ``candidates`` are the other rows of ``view``;
    for these, column by column, ``potential`` and ``victims`` mark pods (depth, candidates), and
    ``violations`` counts the victims that are PDB violations.
    """

    verdicts: Verdicts
    candidates: View
    places: Ints
    potential: Bools
    victims: Bools
    violations: Ints


def dry_run(
    asked: Asked, constraints: Sequence[Constraint], view: View, rejections: Rejections
) -> DryRun:
    """Find the victims on each row of ``view``, or why preemption cannot help there."""
    potential = view.channel(PRIORITY) < asked.pod.priority
    potential &= view.channel(FLAGS) & GUARDED == 0
    verdicts = Verdicts(rejections, len(view))
    verdicts.refuse(~some(potential), _NO_VICTIMS)
    emptied = replace(view, gone=potential)
    for constraint in constraints:
        constraint.judge(emptied, verdicts)
    places = np.flatnonzero(verdicts.fits)
    fitting = emptied.picked(places)
    breaking, victims = _reprieve(asked, constraints, fitting)
    needed = some(victims)
    if not needed.all():
        verdicts.need_nobody(places[~needed])
        keep = np.flatnonzero(needed)
        places, fitting = places[keep], fitting.picked(keep)
        breaking, victims = breaking[:, keep], victims[:, keep]
    return DryRun(
        verdicts=verdicts,
        candidates=fitting,
        places=places,
        potential=fitting.away,
        victims=victims,
        violations=np.count_nonzero(breaking & victims, axis=0),
    )


def _reprieve(asked: Asked, constraints: Sequence[Constraint], view: View) -> tuple[Bools, Bools]:
    """Reprieve the pods that the rows can keep; return the PDB violations and the victims."""
    potential = view.away
    breaking = violating(view, potential, asked.release)
    footings = [f for f in (each.footing(view) for each in constraints) if f is not None]
    victims = potential.copy()
    for group in (breaking, potential & ~breaking):
        for depth in np.flatnonzero(group.any(axis=1)).tolist():
            spared = _put_back(footings, depth, group[depth])
            victims[depth] &= ~spared
    return breaking, victims


def _put_back(footings: Sequence[Footing], depth: int, pods: Bools) -> Bools:
    """Add back the pods of one depth where the preemptor still fits; return which were added."""
    spared = pods.copy()
    for footing in footings:
        spared &= footing.allows(depth)
    for footing in footings:
        footing.put_back(depth, spared)
    return spared
