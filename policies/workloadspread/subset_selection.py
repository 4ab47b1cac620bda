"""Subset selection: which subset a new pod is put into, and how the status records it.

A new pod is put into the first subset, in the order of the WorkloadSpread, that is schedulable and
that lacks a pod, by the count of the pod's own version. The webhook records each pod that it allows
in the status, because the controller sees it only later: the next pod must already find the subset
with one more, or one fewer, pod.

    subset      missing   becomes          for a new pod
    a           0         0
    b           2         1, creating web  ← selected
    c           -1        -1               (would be next, and nothing would be written)

Pods of StatefulSets are placed by their ordinal instead: with limits of 2, 3 and none, 0 and 1 are
put into the first subset, 2 to 4 into the second, all others into the third. Nothing is recorded.

*Simulation.* In adaptive mode the scheduling of a new pod can be simulated first: a subset none of
whose nodes the pod fits is skipped, and its condition has the reason. The last subset is not
simulated, because no other subset follows it; if all others are full, the first subset that was
skipped is selected.

Source: openkruise/kruise pkg/util/workloadspread/workloadspread.go (acquireSuitableSubset,
updateSubsetForPod, getSuitableSubset).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from policies.workloadspread.model import (
    UNLIMITED,
    MaxReplicas,
    Subset,
    SubsetCondition,
    SubsetStatus,
    WorkloadSpread,
    WorkloadSpreadStatus,
)
from policies.workloadspread.quirks import Quirks
from policies.workloadspread.reschedule import (
    SCHEDULABLE,
    SIMULATION_FAILED,
    is_unschedulable,
    schedulable_condition,
    sufficient_condition,
)
from policies.workloadspread.subset_counts import MaxReplicasError, scaled_value

_MAX_INT32: Final = 2**31 - 1
_ORDINAL: Final = re.compile(r"-([0-9]+)$", re.ASCII)

Simulate = Callable[[WorkloadSpread, Subset], str]
"""Simulates a pod on the nodes of a subset: "" if it fits a node, or why it fits none."""


@dataclass(frozen=True, slots=True)
class SelectedSubset:
    """The subset for a pod, and the status to write.

    ``subset`` is None if there is none. ``status`` is None if nothing is to be written. ``uid`` is
    the id under which a pod without a name was recorded. ``skipped`` maps the subsets that the
    simulation skipped to the reason.
    """

    subset: str | None = None
    status: WorkloadSpreadStatus | None = None
    uid: str = ""
    skipped: Mapping[str, str] = field(default_factory=dict)


def initial_counts(
    subsets: Iterable[Subset], replicas: int, quirks: Quirks
) -> tuple[SubsetStatus, ...]:
    """Return the initial counts of a version without any; its existing pods are not counted."""
    return tuple(
        SubsetStatus(subset.name, _initial_missing(subset.max_replicas, replicas, quirks))
        for subset in subsets
    )


def ordinal(name: str) -> int:
    """Return the number at the end of a StatefulSet pod's name, or -1."""
    found = _ORDINAL.search(name)
    number = -1 if found is None else int(found[1])
    return number if number <= _MAX_INT32 else -1


def select_by_ordinal(spread: WorkloadSpread, name: str) -> str | None:
    """Return the subset of a StatefulSet's pod."""
    overall = {each.name: each for each in spread.status.subsets}
    number, threshold = ordinal(name), 0
    for subset in spread.subsets:
        if is_unschedulable(overall.get(subset.name)):
            continue
        threshold += _ordinals(subset.max_replicas)
        if number < threshold:
            return subset.name
    return None


def record_creation(
    spread: WorkloadSpread,
    version: str,
    counts: tuple[SubsetStatus, ...],
    name: str,
    uid: str,
    now_ns: int,
    simulate: Simulate | None,
) -> SelectedSubset:
    """Select a subset for a new pod, and record the pod under its name, or under ``uid``.

    ``counts`` are those of the pod's ``version``. Without ``simulate`` there is no simulation.
    """
    recorded = _subset_in_flight(counts, name) if name else None
    if recorded is not None:
        return SelectedSubset(recorded.name)
    passed: dict[str, str] = {}
    chosen = _first_fit(spread, counts, simulate, passed)
    if chosen is None:
        return SelectedSubset(skipped=passed)
    told = {each.name: _with_simulation_result(each, chosen, passed, now_ns) for each in counts}
    given = ""
    if chosen.missing != UNLIMITED:
        given = "" if name else uid
        creating = {**chosen.creating, name or uid: now_ns}
        missing = chosen.missing - (chosen.missing > 0)
        told[chosen.name] = replace(told[chosen.name], creating=creating, missing=missing)
    changed = tuple(told[each.name] for each in counts)
    if changed == counts:
        return SelectedSubset(chosen.name, skipped=passed)
    overall = tuple(
        _with_simulation_result(each, chosen, passed, now_ns) for each in spread.status.subsets
    )
    status = _with_version(replace(spread.status, subsets=overall), version, changed)
    return SelectedSubset(chosen.name, status, given, passed)


def record_deletion(
    spread: WorkloadSpread,
    version: str,
    counts: tuple[SubsetStatus, ...],
    name: str,
    subset: str,
    now_ns: int,
) -> SelectedSubset:
    """Record that a pod of ``subset`` is about to be deleted."""
    if _subset_in_flight(counts, name) is not None:
        return SelectedSubset()
    own = next((each for each in counts if each.name == subset), None)
    if own is None:
        return SelectedSubset()
    if own.missing == UNLIMITED:
        return SelectedSubset(own.name)
    gone = replace(
        own, deleting={**own.deleting, name: now_ns}, missing=own.missing + (own.missing >= 0)
    )
    changed = tuple(gone if each is own else each for each in counts)
    return SelectedSubset(own.name, _with_version(spread.status, version, changed))


def _initial_missing(limit: MaxReplicas, replicas: int, quirks: Quirks) -> int:
    if limit is None:
        return UNLIMITED
    try:
        return scaled_value(limit, replicas, quirks)
    except MaxReplicasError:
        return 0


def _ordinals(limit: MaxReplicas) -> int:
    """Return how many ordinals a subset takes; with a percentage it takes none."""
    if limit is None:
        return _MAX_INT32
    if isinstance(limit, int):
        return limit
    return int(limit) if limit.isdecimal() and limit.isascii() else 0


def _subset_in_flight(counts: Iterable[SubsetStatus], name: str) -> SubsetStatus | None:
    return next((each for each in counts if name in each.creating or name in each.deleting), None)


def _first_fit(
    spread: WorkloadSpread,
    counts: Iterable[SubsetStatus],
    simulate: Simulate | None,
    passed: dict[str, str],
) -> SubsetStatus | None:
    """Return the first subset that lacks pods and fits the pod, or the first that lacks pods."""
    open_ones = [each for each in counts if not is_unschedulable(each) and _accepts_pods(each)]
    for each, subset in _simulation_candidates(spread, open_ones):
        problem = "" if simulate is None or subset is None else simulate(spread, subset)
        if not problem:
            return each
        passed[each.name] = problem
    return next(iter(open_ones), None)


def _simulation_candidates(
    spread: WorkloadSpread, counts: Iterable[SubsetStatus]
) -> Iterator[tuple[SubsetStatus, Subset | None]]:
    """Yield the candidate subsets, each with the subset to simulate; None for the last one."""
    simulated = {subset.name: subset for subset in spread.subsets[:-1]}
    for each in counts:
        yield each, simulated.get(each.name)


def _accepts_pods(status: SubsetStatus) -> bool:
    return status.missing > 0 or status.missing == UNLIMITED


def _with_simulation_result(
    status: SubsetStatus, chosen: SubsetStatus, passed: Mapping[str, str], now_ns: int
) -> SubsetStatus:
    """Return the status with the simulation's condition, or without an outdated one.

    A subset that is unschedulable for another reason keeps that condition.
    """
    known = schedulable_condition(status)
    said = known is not None and known.reason == SIMULATION_FAILED
    coming: SubsetCondition | None = None
    if status.name in passed and not is_unschedulable(status):
        coming = SubsetCondition(
            SCHEDULABLE, "Unknown", SIMULATION_FAILED, passed[status.name], changed_ns=now_ns
        )
        if said and known is not None:
            coming = replace(coming, changed_ns=known.changed_ns)
    elif status.name == chosen.name and said:
        coming = sufficient_condition(now_ns)
    if coming is None:
        return status
    others = [each for each in status.conditions if each.type != SCHEDULABLE]
    return replace(status, conditions=(*others, coming))


def _with_version(
    status: WorkloadSpreadStatus, version: str, counts: tuple[SubsetStatus, ...]
) -> WorkloadSpreadStatus:
    return replace(status, versions={**status.versions, version: counts})
