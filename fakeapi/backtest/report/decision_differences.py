"""The decisions in which two policies differ most, each explained by its data.

Decisions of two simulations of one segment and seed are about the same if they are for the same
pod of a job, and as many were made for it before; those of a ledger if they are of the same
attempt. They differ by the work that their victims lost: that of devices counts first, then that of
cpu, then how many victims only one of them has. Of a pod, only the seed and occurrence in which the
policies differ most are kept.

Results have only the costliest decisions of each simulation. So a decision that the other policy
does not have may be one that cost it less: the explanation then states this limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from extender.ledger_page.amounts import count_of, format_interval
from fakeapi.backtest.report.measures import (
    device_hours,
    device_suffix,
    format_number,
    hours,
    hours_unit,
    is_device,
)
from fakeapi.backtest.results import BacktestResults, UnitResult
from fakeapi.backtest.statistics import Amounts, RunStatistics, SimulatedDecision, SimulatedVictim

MAX_DIFFERENCES: Final = 10
_NAMED_VICTIMS: Final = 3


class PreemptionDifference(Struct, frozen=True, rename="camel"):
    """Two decisions for one pod of a job, by the first policy and by ``policy``; None: it has none.

    ``occurrence`` counts the decisions for the pod from 0. ``device_hours`` and ``cpu_hours`` are
    how much more work the decision of ``policy`` destroyed; negative if it destroyed less.
    ``explanation`` is a sentence for each of the two.
    """

    policy: str
    segment: int
    seed: int
    preemptor: str
    occurrence: int
    first: SimulatedDecision | None
    other: SimulatedDecision | None
    device_hours: float
    cpu_hours: float
    explanation: tuple[str, str]

    @property
    def heading(self) -> str:
        """The preemptor, and where the decisions were made."""
        decision = self.first or self.other
        known = f" {_kind(decision)}" if decision else ""
        return f"{self.preemptor}{known}, seed {self.seed}, segment {self.segment}"


def differing_decisions(results: BacktestResults) -> tuple[PreemptionDifference, ...]:
    """Return for each policy but the first its decisions that differ most, at most ten."""
    units = {(unit.policy, unit.segment, unit.seed): unit for unit in results.units}
    found: list[PreemptionDifference] = []
    for policy in results.policies[1:]:
        by_pod: dict[tuple[int, str], PreemptionDifference] = {}
        for first in results.units:
            other = units.get((policy, first.segment, first.seed))
            if first.policy == results.policies[0] and other is not None:
                for each in _differences(first, other):
                    pod = (each.segment, each.preemptor)
                    by_pod[pod] = min(by_pod.get(pod, each), each, key=_rank)
        found += sorted(by_pod.values(), key=_rank)[:MAX_DIFFERENCES]
    return tuple(found)


def _differences(first: UnitResult, other: UnitResult) -> Iterator[PreemptionDifference]:
    ours, theirs = _by_occurrence(first.statistics), _by_occurrence(other.statistics)
    for key in sorted({*ours, *theirs}):
        one, two = ours.get(key), theirs.get(key)
        if one is None or two is None or _outcome(one) != _outcome(two):
            preemptor, occurrence = key
            yield PreemptionDifference(
                policy=other.policy,
                segment=other.segment,
                seed=other.seed,
                preemptor=preemptor,
                occurrence=occurrence,
                first=one,
                other=two,
                device_hours=device_hours(_lost(two)) - device_hours(_lost(one)),
                cpu_hours=hours(_lost(two), "cpu") - hours(_lost(one), "cpu"),
                explanation=(_sentence(first, one), _sentence(other, two)),
            )


def _by_occurrence(statistics: RunStatistics) -> Mapping[tuple[str, int], SimulatedDecision]:
    occurrences: dict[str, int] = {}
    found = {}
    for each in sorted(statistics.decisions, key=lambda decision: decision.at_ns):
        occurrence = occurrences.get(each.preemptor, 0)
        occurrences[each.preemptor] = occurrence + 1
        found[each.preemptor, occurrence if each.attempt is None else each.attempt] = each
    return found


def _outcome(decision: SimulatedDecision) -> tuple[str, frozenset[str], Amounts]:
    return decision.node, _victims(decision), _lost(decision)


def _rank(difference: PreemptionDifference) -> tuple[float, float, int, int, int, str, int]:
    """Return what sorts differences: the largest first, and those of the first seed."""
    return (
        -abs(difference.device_hours),
        -abs(difference.cpu_hours),
        -len(_victims(difference.first) ^ _victims(difference.other)),
        difference.seed,
        difference.segment,
        difference.preemptor,
        difference.occurrence,
    )


def _victims(decision: SimulatedDecision | None) -> frozenset[str]:
    return frozenset(victim.name for victim in decision.victims) if decision else frozenset()


def _lost(decision: SimulatedDecision | None) -> Amounts:
    if decision is None:
        return {}
    resources = {resource for victim in decision.victims for resource in victim.lost}
    return {each: decision.lost(each) for each in sorted(resources)}


def _sentence(unit: UnitResult, decision: SimulatedDecision | None) -> str:
    """Return what a policy decided, in one sentence."""
    if decision is None:
        kept, made = len(unit.statistics.decisions), unit.statistics.preemptions
        if made > kept:
            limit = f"among the {kept:,} of its {made:,} preemptions that cost the most"
            return f"{unit.policy}: there is none for this pod {limit}."
        return f"{unit.policy}: no pod was preempted for this one."
    because = f", decided by {decision.reason}" if decision.reason else ""
    broken = decision.violations
    violations = f", with {count_of(broken, 'PDB violation')}" if broken else ""
    return (
        f"{unit.policy}: {_preempted(decision.victims)} on {decision.node} after "
        f"{format_interval(decision.at_ns)}{violations}{because}; "
        f"{_losses(_lost(decision))}."
    )


def _preempted(victims: Iterable[SimulatedVictim]) -> str:
    known = list(victims)
    names = [f"{each.name} {_kind(each)}" for each in known[:_NAMED_VICTIMS]]
    if len(known) > _NAMED_VICTIMS:
        names.append(f"{count_of(len(known) - _NAMED_VICTIMS, 'more pod')}")
    listed = " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
    return f"{listed or 'no pod'} {'were' if len(known) > 1 else 'was'} preempted"


def _kind(pod: SimulatedDecision | SimulatedVictim) -> str:
    tenant = f"{pod.tenant}, " if pod.tenant else ""
    return f"({tenant}priority {pod.priority:,})"


def _losses(lost: Amounts) -> str:
    """Return lost work in words; devices first."""
    resources = sorted((r for r in lost if r == "cpu" or is_device(r)), key=lambda r: r == "cpu")
    losses = [
        f"{format_number(hours(lost, each))} {hours_unit(each)}{device_suffix(each)}"
        for each in resources
        if lost[each]
    ]
    return f"{' and '.join(losses) or 'no work'} {'were' if losses else 'was'} lost"
