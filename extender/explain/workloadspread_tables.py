"""Tables that explain a WorkloadSpread: its subsets by version, and the deletion order of pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from extender.explain.workloadspread import SpreadExplanation
from extender.kube.workloadspread.pod_injection import InjectionResult
from extender.terminal.output import TableRows
from extender.terminal.plain_tables import plain_table
from policies.workloadspread.deletion_costs import DELETION_ORDER, Cost, SubsetRank
from policies.workloadspread.model import (
    FAKE_SUBSET,
    SECOND,
    UNLIMITED,
    SpreadPod,
    Subset,
    SubsetStatus,
    WorkloadSpread,
)
from policies.workloadspread.placement_validation import FieldValidationError
from policies.workloadspread.reconcile import ReconcileResult
from policies.workloadspread.reschedule import schedulable_condition

_MAX_SHOWN_PODS = 30


def spread_table(explained: SpreadExplanation, rows: TableRows) -> RenderableType:
    """Return the subsets in each version, the deletion order with reasons, and the next steps."""
    spread, outcome = explained.spread, explained.outcome
    parts: list[RenderableType] = [_heading(spread, outcome), _subsets_table(spread, outcome)]
    if outcome.costs:
        parts.append(_pods_table(spread, outcome, rows))
    parts.extend(_notes(outcome))
    if explained.injection is not None:
        parts.append(_injection_text(explained.injection))
    return Group(*parts)


def errors_table(key: str, errors: Iterable[FieldValidationError]) -> RenderableType:
    """Return the validation errors of a WorkloadSpread as text."""
    lines = [Text(str(error)) for error in errors]
    heading = f"{key} is not valid" if lines else f"{key} is valid"
    return Group(Text(heading, style="bold"), *lines)


def _heading(spread: WorkloadSpread, outcome: ReconcileResult) -> Text:
    pods = sum(len(pods) for pods in outcome.groups.subsets.values())
    target = "no target" if spread.target is None else str(spread.target)
    heading = f"{spread.key} spreads {target}: {pods} pods, {outcome.replicas} replicas wanted"
    return Text(heading, style="bold")


def _subsets_table(spread: WorkloadSpread, outcome: ReconcileResult) -> RenderableType:
    status = outcome.status
    versions = sorted(status.versions, key=lambda version: (version != outcome.newest, version))
    marked = [f"{each} (newest)" if each == outcome.newest else each for each in versions]
    table = plain_table("subset", "limit", *marked, "all", "schedulable")
    for subset in spread.subsets:
        overall = _find_status(status.subsets, subset)
        table.add_row(
            subset.name,
            "none" if subset.max_replicas is None else str(subset.max_replicas),
            *(_version_cell(outcome, version, subset) for version in versions),
            _count_text(overall),
            _condition_text(overall),
        )
    outside = outcome.groups.subsets.get(FAKE_SUBSET, ())
    if outside:
        counts = (_no_subset_cell(outcome, version) for version in versions)
        table.add_row("in no subset", "", *counts, str(len(outside)), "")
    return table


def _version_cell(outcome: ReconcileResult, version: str, subset: Subset) -> str:
    """Return the pod counts of a subset in a version, and the deletion costs of its pods."""
    text = _count_text(_find_status(outcome.status.versions[version], subset))
    costs = _cost_text(outcome, version, subset.name)
    return f"{text}; {costs}" if costs else text


def _no_subset_cell(outcome: ReconcileResult, version: str) -> str:
    count = len(outcome.groups.versions.get(version, {}).get(FAKE_SUBSET, ()))
    costs = _cost_text(outcome, version, FAKE_SUBSET)
    return f"{count}; {costs}" if costs else str(count)


def _cost_text(outcome: ReconcileResult, version: str, subset: str) -> str:
    """Return the deletion costs, lowest first; with the number of pods of each, if they differ."""
    pods = outcome.groups.versions.get(version, {}).get(subset, ())
    costs = [outcome.costs[pod.name].value for pod in pods if pod.name in outcome.costs]
    counted = sorted(Counter(costs).items())
    if len(counted) == 1:
        return f"cost {counted[0][0]}"
    text = ", ".join(f"{count} at {value}" for value, count in counted)
    return f"cost {text}" if text else ""


def _find_status(statuses: Iterable[SubsetStatus], subset: Subset) -> SubsetStatus | None:
    return next((each for each in statuses if each.name == subset.name), None)


def _count_text(status: SubsetStatus | None) -> str:
    """Return the numbers of replicas, of missing ones, and of those in creation or deletion."""
    if status is None:
        return ""
    text = [str(status.replicas)]
    if status.missing != UNLIMITED:
        text.append(f"{status.missing} missing" if status.missing else "full")
    if status.creating:
        text.append(f"{len(status.creating)} creating")
    if status.deleting:
        text.append(f"{len(status.deleting)} deleting")
    return ", ".join(text)


def _condition_text(status: SubsetStatus | None) -> str:
    found = schedulable_condition(status)
    if found is None:
        return ""
    return ": ".join(part for part in (found.status, found.reason, found.message) if part)


def _pods_table(
    spread: WorkloadSpread, outcome: ReconcileResult, rows: TableRows
) -> RenderableType:
    """Return the table of the pods that have a deletion cost, in deletion order."""
    table = plain_table("", "deleted first", "subset", "version", "cost", "because")
    versions = {
        pod.name: version
        for version, by_subset in outcome.groups.versions.items()
        for pods in by_subset.values()
        for pod in pods
    }
    subsets = {pod.name: name for name, pods in outcome.groups.subsets.items() for pod in pods}
    deleted = {each.pod.name for each in outcome.pods_to_delete}
    ranked = list(_ranked(outcome))
    shown = rows.at_most(_MAX_SHOWN_PODS)
    for pod in ranked[:shown]:
        cost, subset = outcome.costs[pod.name], subsets[pod.name]
        table.add_row(
            "→" if pod.name in deleted else "",
            pod.name,
            "" if subset == FAKE_SUBSET else subset,
            versions[pod.name],
            str(cost.value),
            _because(cost, subset, spread) + _old_version_remark(cost, versions[pod.name], outcome),
        )
    if len(ranked) > shown:
        table.add_row("", f"and {len(ranked) - shown} more", "", "", "", "")
    return table


def _ranked(outcome: ReconcileResult) -> Iterator[SpreadPod]:
    by_cost: dict[int, list[SpreadPod]] = {}
    for pods in outcome.groups.subsets.values():
        for pod in pods:
            if pod.name in outcome.costs:
                by_cost.setdefault(outcome.costs[pod.name].value, []).append(pod)
    for _, pods in sorted(by_cost.items()):
        yield from DELETION_ORDER.sort(pods)


def _because(cost: Cost, subset: str, spread: WorkloadSpread) -> str:
    match cost.subset_rank:
        case SubsetRank.OUTSIDE:
            return "it is in no subset"
        case SubsetRank.EXCESS:
            by = "" if cost.criterion is None else f", and is deleted first by {cost.criterion}"
            limits = {each.name: each.max_replicas for each in spread.subsets}
            return f"{subset} has more than {limits[subset]}{by}"
        case SubsetRank.WITHIN:
            places = [each.name for each in spread.subsets]
            return f"{subset} is number {places.index(subset) + 1} of {len(places)}"


def _old_version_remark(cost: Cost, version: str, outcome: ReconcileResult) -> str:
    """Return the remark on a pod of an old version, "" for others."""
    if version == outcome.newest or cost.subset_rank is SubsetRank.OUTSIDE:
        return ""
    return "; pods of an old version are deleted from the first subset on"


def _notes(outcome: ReconcileResult) -> Iterator[Text]:
    if outcome.failure:
        yield Text(
            f"nothing is written; the reconcile is retried: {outcome.failure}", style="yellow"
        )
    if outcome.pods_to_delete:
        names = ", ".join(f"{each.pod.name} ({each.subset})" for each in outcome.pods_to_delete)
        yield Text(f"deleted, because they are unschedulable: {names}")
    for event in outcome.events:
        yield Text(f"{event.type} {event.reason}: {event.message}")
    if outcome.requeue_after_ns is not None:
        yield Text(f"requeued after {outcome.requeue_after_ns / SECOND:g} s", style="italic")


def _injection_text(injection: InjectionResult) -> Text:
    admission = injection.admission
    if admission.error:
        return Text(f"the pod is rejected: {admission.error}", style="bold")
    if admission.spread is None:
        return Text("the pod is allowed: it belongs to no WorkloadSpread", style="bold")
    where = "no subset" if admission.subset is None else f"subset {admission.subset}"
    passed = "".join(f"\nskipped {name}: {problem}" for name, problem in admission.skipped.items())
    cost = "" if admission.cost is None else f", deletion cost {admission.cost}"
    text = f"the pod is allowed, in {where} of {admission.spread}{cost}{passed}"
    return Text(text, style="bold")
