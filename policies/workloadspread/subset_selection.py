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

from policies.kubernetes.integers import INT32_MAX, parse_integer
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
from policies.workloadspread.subset_counts import lenient_value

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


@dataclass(frozen=True, slots=True)
class VersionCounts:
    """The counts of a pod's version, by which its subset is selected."""

    version: str
    subsets: tuple[SubsetStatus, ...]

    def in_flight(self, name: str) -> SubsetStatus | None:
        """Return the subset in which the pod's creation or deletion is recorded."""
        return next((x for x in self.subsets if name in x.creating or name in x.deleting), None)


def initial_counts(
    subsets: Iterable[Subset], replicas: int, quirks: Quirks
) -> tuple[SubsetStatus, ...]:
    """Return the initial counts of a version without any; its existing pods are not counted."""
    return tuple(
        SubsetStatus(each.name, lenient_value(each.max_replicas, replicas, quirks, UNLIMITED))
        for each in subsets
    )


def ordinal(name: str) -> int:
    """Return the number at the end of a StatefulSet pod's name, or -1."""
    found = _ORDINAL.search(name)
    number = None if found is None else parse_integer(found[1], INT32_MAX)
    return -1 if number is None else number


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
    counts: VersionCounts,
    name: str,
    uid: str,
    now_ns: int,
    simulate: Simulate | None,
) -> SelectedSubset:
    """Select a subset for a new pod, and record the pod under its name, or under ``uid``.

    Without ``simulate`` there is no simulation.
    """
    recorded = counts.in_flight(name) if name else None
    if recorded is not None:
        return SelectedSubset(recorded.name)
    skipped: dict[str, str] = {}
    selected = _first_fit(spread, counts.subsets, simulate, skipped)
    if selected is None:
        return SelectedSubset(skipped=skipped)

    def simulated(status: SubsetStatus) -> SubsetStatus:
        return _with_simulation_result(status, selected, skipped, now_ns)

    updated = {each.name: simulated(each) for each in counts.subsets}
    recorded_uid = ""
    if selected.missing != UNLIMITED:
        recorded_uid = "" if name else uid
        updated[selected.name] = replace(
            updated[selected.name],
            creating={**selected.creating, name or uid: now_ns},
            missing=selected.missing - (selected.missing > 0),
        )
    changed = tuple(updated[each.name] for each in counts.subsets)
    if changed == counts.subsets:
        return SelectedSubset(selected.name, skipped=skipped)
    overall = tuple(simulated(each) for each in spread.status.subsets)
    status = _with_version(replace(spread.status, subsets=overall), counts.version, changed)
    return SelectedSubset(selected.name, status, recorded_uid, skipped)


def record_deletion(
    spread: WorkloadSpread, counts: VersionCounts, name: str, subset: str, now_ns: int
) -> SelectedSubset:
    """Record that a pod of ``subset`` is about to be deleted."""
    if counts.in_flight(name) is not None:
        return SelectedSubset()
    own = next((each for each in counts.subsets if each.name == subset), None)
    if own is None:
        return SelectedSubset()
    if own.missing == UNLIMITED:
        return SelectedSubset(own.name)
    updated = replace(
        own, deleting={**own.deleting, name: now_ns}, missing=own.missing + (own.missing >= 0)
    )
    changed = tuple(updated if each is own else each for each in counts.subsets)
    return SelectedSubset(own.name, _with_version(spread.status, counts.version, changed))


def _ordinals(limit: MaxReplicas) -> int:
    """Return how many ordinals a subset takes; with a percentage it takes none."""
    if limit is None:
        return INT32_MAX
    if isinstance(limit, int):
        return limit
    return max(parse_integer(limit) or 0, 0)


def _first_fit(
    spread: WorkloadSpread,
    counts: Iterable[SubsetStatus],
    simulate: Simulate | None,
    skipped: dict[str, str],
) -> SubsetStatus | None:
    """Return the first subset that lacks pods and fits the pod, or the first that lacks pods."""
    accepting = [each for each in counts if not is_unschedulable(each) and _accepts_pods(each)]
    for each, subset in _simulation_candidates(spread, accepting):
        problem = "" if simulate is None or subset is None else simulate(spread, subset)
        if not problem:
            return each
        skipped[each.name] = problem
    return next(iter(accepting), None)


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
    status: SubsetStatus, selected: SubsetStatus, skipped: Mapping[str, str], now_ns: int
) -> SubsetStatus:
    """Return the status with the simulation's condition, or without an outdated one.

    A subset that is unschedulable for another reason keeps that condition.
    """
    before = schedulable_condition(status)
    if before is not None and before.reason != SIMULATION_FAILED:
        before = None
    if status.name in skipped and not is_unschedulable(status):
        changed_ns = now_ns if before is None else before.changed_ns
        condition = SubsetCondition(
            SCHEDULABLE, "Unknown", SIMULATION_FAILED, skipped[status.name], changed_ns=changed_ns
        )
    elif status.name == selected.name and before is not None:
        condition = sufficient_condition(now_ns)
    else:
        return status
    others = [each for each in status.conditions if each.type != SCHEDULABLE]
    return replace(status, conditions=(*others, condition))


def _with_version(
    status: WorkloadSpreadStatus, version: str, counts: tuple[SubsetStatus, ...]
) -> WorkloadSpreadStatus:
    return replace(status, versions={**status.versions, version: counts})
